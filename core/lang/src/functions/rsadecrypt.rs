//! `rsadecrypt`

use aws_lc_rs::rsa::{Pkcs1PrivateDecryptingKey, PrivateDecryptingKey};

use super::prelude::*;

/// RSA, in an algorithm identifier (RFC 8017).
const RSA: [u8; 15] = [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];

pub(super) const FUNCTION: Function = Function {
    name: "rsadecrypt",
    doc: "The text that was encrypted with RSA (PKCS #1 1.5) and is given in Base64; the key is a private one in PEM.",
    parameters: &[Parameter::string("ciphertext"), Parameter::string("privatekey")],
    body: Some(|a| {
        let secret =
            super::base64::decode(a.text(0)).ok_or_else(|| FunctionError::new("the argument \"ciphertext\" is not valid Base64"))?;
        let key = Pkcs1PrivateDecryptingKey::new(private_key(a)?).map_err(|_| unusable("is no RSA key"))?;
        let mut room = vec![0; key.min_output_size()];
        let text = key.decrypt(&secret, &mut room).map_err(|_| FunctionError::new("the ciphertext was not encrypted for this key"))?;
        let text = String::from_utf8(text.to_vec()).map_err(|_| FunctionError::new("what was encrypted is no text (UTF-8)"))?;
        Ok(string(text))
    }),
    #[cfg(test)]
    rows: &[
        ("rsadecrypt(\"?\",\"x\")", "ERROR the argument \"ciphertext\" is not valid Base64"),
        ("rsadecrypt(\"YQ==\",\"x\")", "ERROR holds no private key in PEM"),
        (
            "rsadecrypt(\"YQ==\",\"-----BEGIN OPENSSH PRIVATE KEY-----\\nYQ==\\n-----END OPENSSH PRIVATE KEY-----\\n\")",
            "ERROR ssh-keygen -p -m PEM",
        ),
        (
            "rsadecrypt(\"YQ==\",\"-----BEGIN PRIVATE KEY-----\\nYQ==\\n-----END PRIVATE KEY-----\\n\")",
            "ERROR is no RSA key of 2048 to 8192 bits",
        ),
        ("rsadecrypt(u.id,\"x\")", "UNKNOWN string"),
    ],
    ..Function::BASE
};

/// Not of the argument: an error of that shows how it begins.
fn unusable(why: &str) -> FunctionError {
    FunctionError::new(format!("the argument \"privatekey\" {why}"))
}

fn private_key(a: &Arguments<'_>) -> Result<PrivateDecryptingKey, FunctionError> {
    let (label, bytes) = first_key(a.text(1)).ok_or_else(|| unusable("holds no private key in PEM"))?;
    let bytes = match label {
        "PRIVATE KEY" => bytes,
        "RSA PRIVATE KEY" => element(0x30, &[element(0x02, &[0]), RSA.to_vec(), element(0x04, &bytes)].concat()),
        "OPENSSH PRIVATE KEY" => return Err(unusable("is in OpenSSH's own format: ssh-keygen -p -m PEM -f FILE makes PEM of it")),
        _ => return Err(unusable("holds a key that is encrypted, or of another kind than RSA")),
    };
    PrivateDecryptingKey::from_pkcs8(&bytes).map_err(|_| unusable("is no RSA key of 2048 to 8192 bits that is not encrypted"))
}

/// What the first block of PEM with a key is called, and its bytes.
fn first_key(text: &str) -> Option<(&str, Vec<u8>)> {
    let begin =
        text.split("-----BEGIN ").skip(1).find_map(|rest| rest.split_once("-----").filter(|(label, _)| label.ends_with("PRIVATE KEY")))?;
    let (label, rest) = begin;
    let (body, _) = rest.split_once("-----END ")?;
    // With a password there are lines of headers.
    if body.contains(':') {
        return Some(("ENCRYPTED PRIVATE KEY", Vec::new()));
    }
    super::base64::decode(&body.split_whitespace().collect::<String>()).map(|bytes| (label, bytes))
}

/// An element of DER.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().position(|b| *b != 0).unwrap_or(length.len() - 1)..];
    let mut out = vec![tag];
    if content.len() > 127 {
        out.push(0x80 | u8::try_from(length.len()).unwrap_or(0));
    }
    out.extend(length);
    out.extend(content);
    out
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
    use aws_lc_rs::rsa::{KeySize, Pkcs1PublicEncryptingKey};
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;
    use crate::functions::call;
    use crate::functions::testing::context;

    fn pem(label: &str, bytes: &[u8]) -> Value {
        let text = STANDARD.encode(bytes);
        let lines: Vec<&str> = text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n")).into()
    }

    #[test]
    fn what_was_encrypted_for_a_key_is_read_with_it_alone() {
        let [key, other] = [0, 1].map(|_| PrivateDecryptingKey::generate(KeySize::Rsa2048).unwrap());
        let to = Pkcs1PublicEncryptingKey::new(key.public_key()).unwrap();
        let mut room = vec![0; to.ciphertext_size()];
        let secret: Value = STANDARD.encode(to.encrypt("héllo".as_bytes(), &mut room).unwrap()).into();
        let der: Pkcs8V1Der<'_> = key.as_der().unwrap();
        // What is inside begins behind the header, of 26 bytes for a key of this size.
        for key in [pem("PRIVATE KEY", der.as_ref()), pem("RSA PRIVATE KEY", &der.as_ref()[26..])] {
            assert_eq!(call("rsadecrypt", &[secret.clone(), key], &context()).unwrap(), "héllo".into());
        }
        let der: Pkcs8V1Der<'_> = other.as_der().unwrap();
        let key = pem("PRIVATE KEY", der.as_ref());
        assert!(call("rsadecrypt", &[secret, key.clone()], &context()).is_err_and(|e| e.message.contains("not encrypted for this key")));
        let short = call("rsadecrypt", &["YQ==".into(), key], &context()).unwrap_err();
        assert!(short.message.contains("not encrypted for this key"), "{short:?}");
    }
}
