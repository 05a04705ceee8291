//! What a connection value has in PEM form, looked at before the library gets it: of a text without any it says no more than that its transport
//! failed.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The text, if there are certificates in it and none is cut. The error is a sentence about the attribute.
pub(crate) fn certificates<'a>(attribute: &str, pem: &'a str) -> Result<&'a str, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(pem),
        Ok(_) => Err(format!("Its `{attribute}` holds no certificate in PEM form (\"-----BEGIN CERTIFICATE-----\").")),
        Err(_) => Err(format!("Its `{attribute}` holds a part in PEM form that can't be read: it is cut, or damaged.")),
    }
}

/// The text, if there is a private key in it, in one of the forms that the library reads. The error is a sentence or two about the attribute.
pub(crate) fn private_key<'a>(attribute: &str, pem: &'a str) -> Result<&'a str, String> {
    if PrivateKeyDer::from_pem_slice(pem.as_bytes()).is_ok() {
        return Ok(pem);
    }
    let refused = format!("Its `{attribute}` holds no private key in PEM form.");
    Err(if pem.contains("ENCRYPTED") { format!("{refused} An encrypted one is none, as nobody gives its passphrase.") } else { refused })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(label: &str) -> String {
        format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n")
    }

    #[test]
    fn what_holds_no_certificate() {
        let cut = "-----BEGIN CERTIFICATE-----\nAAAA\n";
        let (none, unread) = ("no certificate in PEM form", "a part in PEM form that can't be read");
        for (given, expected) in [
            (pem("CERTIFICATE"), None),
            (pem("CERTIFICATE").repeat(2), None),
            (format!("of the site\n{}", pem("CERTIFICATE")), None),
            (pem("PRIVATE KEY"), Some(none)),
            (format!("{}{cut}", pem("CERTIFICATE")), Some(unread)),
            (cut.to_owned(), Some(unread)),
            ("ca.crt".to_owned(), Some(none)),
            (String::new(), Some(none)),
        ] {
            let told = certificates("ca_certificate", &given).err();
            assert_eq!(told.is_some(), expected.is_some(), "{given}");
            let begins = |told: &String| told.starts_with(&format!("Its `ca_certificate` holds {}", expected.unwrap_or_default()));
            assert!(told.as_ref().is_none_or(begins), "{given}: {told:?}");
        }
    }

    #[test]
    fn what_holds_no_key() {
        for (given, expected) in [
            (pem("PRIVATE KEY"), ""),
            (pem("RSA PRIVATE KEY"), ""),
            (pem("CERTIFICATE") + &pem("EC PRIVATE KEY"), ""),
            (pem("CERTIFICATE"), "Its `private_key` holds no private key in PEM form."),
            (String::new(), "Its `private_key` holds no private key in PEM form."),
            (
                pem("ENCRYPTED PRIVATE KEY"),
                "Its `private_key` holds no private key in PEM form. An encrypted one is none, as nobody gives its passphrase.",
            ),
        ] {
            assert_eq!(private_key("private_key", &given).err().unwrap_or_default(), expected, "{given}");
        }
    }
}
