//! Addresses and methods as the arguments give them, checked.

use karmaform_model::Diagnostic;
use reqwest::{Method, Url};

/// What is asked for, and how.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    pub(crate) method: Method,
    pub(crate) url: Url,
}

/// An argument that can't be as it is.
pub(crate) fn wrong(name: &str, detail: impl Into<String>, hint: impl Into<String>) -> Diagnostic {
    Diagnostic::error(format!("Invalid {name} of the http backend"), detail).with_hint(hint)
}

/// An address with scheme and host. A query is kept: some servers name the state in it.
pub(crate) fn address(name: &str, given: &str) -> Result<Url, Diagnostic> {
    let url = Url::parse(given).ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    let mut url = url.ok_or_else(|| {
        let detail = "An address is http:// or https://, a host, and a path.";
        wrong(name, detail, "Write it like \"https://gitlab.example/api/v4/projects/42/terraform/state/prod\".")
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        // The address is shown and remembered.
        let detail = "An address has no user and no password in it.";
        return Err(wrong(name, detail, "Set username and password, or TF_HTTP_USERNAME and TF_HTTP_PASSWORD."));
    }
    url.set_fragment(None);
    Ok(url)
}

/// A method of HTTP; any word can be one.
pub(crate) fn method(name: &str, given: &str) -> Result<Method, Diagnostic> {
    Method::from_bytes(given.as_bytes())
        .map_err(|_| wrong(name, "A method is one word, in capitals as a rule.", "Write it like \"POST\" or \"LOCK\"."))
}
