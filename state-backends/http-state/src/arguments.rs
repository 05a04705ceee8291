//! What stands in `backend "http" { ... }`, and in the environment: the arguments of Terraform's, with their names.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use karmaform_model::{Attribute, Diagnostic, Object, Schema, Type, Value};

use crate::address::{Door, address, method, wrong};
use crate::limits::Retries;

/// Which arguments there are. The names, the variables and the defaults are Terraform's
/// (<https://developer.hashicorp.com/terraform/language/backend/http>).
pub fn schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(build);
    &SCHEMA
}

fn build() -> Schema {
    let text = |name, doc| Attribute::optional(name, Type::String, doc);
    let number = |name, doc| Attribute::optional(name, Type::Number, doc);
    Schema::new(
        "Keeps the state on a server that speaks Terraform's REST protocol, as GitLab does. The arguments are those of Terraform's http backend; most can be given by the environment instead.",
        vec![
            text(
                "address",
                "Where the state is: read with `GET`, written with `update_method`. It is shown, so no secret belongs in it. Environment: `TF_HTTP_ADDRESS`; one of the two must be there.",
            ),
            text("update_method", "Method that writes; `POST` unless given. Environment: `TF_HTTP_UPDATE_METHOD`."),
            text(
                "lock_address",
                "Where the lock is taken. Without it there are no locks, and runs at the same time are not kept apart. Environment: `TF_HTTP_LOCK_ADDRESS`.",
            ),
            text("lock_method", "Method that locks; `LOCK` unless given. GitLab wants `POST`. Environment: `TF_HTTP_LOCK_METHOD`."),
            text("unlock_address", "Where the lock is released; goes with `lock_address`. Environment: `TF_HTTP_UNLOCK_ADDRESS`."),
            text(
                "unlock_method",
                "Method that unlocks; `UNLOCK` unless given. GitLab wants `DELETE`. Environment: `TF_HTTP_UNLOCK_METHOD`.",
            ),
            text("username", "User, for basic authentication. Environment: `TF_HTTP_USERNAME`."),
            text(
                "password",
                "Password of the user, or a token. Better left to the environment: what stands here is in files. Environment: `TF_HTTP_PASSWORD`.",
            )
            .secret(),
            Attribute::optional(
                "skip_cert_verification",
                Type::Bool,
                "Do not check the server's certificate. Whoever is in between can then read and change the state.",
            ),
            number(
                "retry_max",
                "How often a request is repeated that was not answered, or with an error of the server's own; 2 unless given. Environment: `TF_HTTP_RETRY_MAX`.",
            ),
            number(
                "retry_wait_min",
                "Seconds before the first repetition; each further pause is twice as long. 1 unless given. Environment: `TF_HTTP_RETRY_WAIT_MIN`.",
            ),
            number(
                "retry_wait_max",
                "The longest pause in seconds, also where the server asks for a longer one; 30 unless given. Environment: `TF_HTTP_RETRY_WAIT_MAX`.",
            ),
            text(
                "client_ca_certificate_pem",
                "Certificates (PEM text) to trust for this server instead of the system's. Environment: `TF_HTTP_CLIENT_CA_CERTIFICATE_PEM`.",
            ),
            text(
                "client_certificate_pem",
                "Certificate (PEM text) to show to the server; goes with `client_private_key_pem`. Environment: `TF_HTTP_CLIENT_CERTIFICATE_PEM`.",
            ),
            text("client_private_key_pem", "Its private key (PEM text). Environment: `TF_HTTP_CLIENT_PRIVATE_KEY_PEM`.").secret(),
        ],
    )
}

/// The arguments, checked.
pub(crate) struct Settings {
    pub(crate) update: Door,
    pub(crate) locking: Option<Locking>,
    pub(crate) reach: Reach,
    pub(crate) retries: Retries,
}

/// Where the lock is taken, and where it is released.
pub(crate) struct Locking {
    pub(crate) lock: Door,
    pub(crate) unlock: Door,
}

/// How the server is reached, and as whom.
#[derive(Default)]
pub(crate) struct Reach {
    /// User and password.
    pub(crate) login: Option<(String, String)>,
    pub(crate) skip_verification: bool,
    pub(crate) trusted: Option<String>,
    /// Certificate and key of ours.
    pub(crate) identity: Option<String>,
    pub(crate) http_proxy: Option<String>,
    pub(crate) https_proxy: Option<String>,
    pub(crate) no_proxy: Option<String>,
}

/// What is written, and what the environment says.
struct Given<'a> {
    arguments: &'a Object,
    environment: &'a BTreeMap<String, String>,
}

impl Given<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        self.environment.get(name).filter(|v| !v.is_empty()).cloned()
    }

    /// An argument that is a text, or its variable; empty is absent.
    fn text(&self, name: &str) -> Option<String> {
        let written = self.arguments.get(name).and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned);
        written.or_else(|| self.variable(&format!("TF_HTTP_{}", name.to_uppercase())))
    }

    fn whole(&self, name: &str, default: u32, most: u32) -> Result<u32, Diagnostic> {
        let refused = || wrong(name, format!("It must be a whole number from 0 to {most}."), format!("Leave it out for {default}."));
        let found = match self.arguments.get(name).filter(|v| !v.is_null()) {
            Some(value) => value.as_i64().and_then(|n| u32::try_from(n).ok()).ok_or_else(refused)?,
            None => match self.variable(&format!("TF_HTTP_{}", name.to_uppercase())) {
                Some(text) => text.parse().map_err(|_| refused())?,
                None => default,
            },
        };
        if found > most { Err(refused()) } else { Ok(found) }
    }

    fn door(&self, address: &str, given: &str, method_name: &str, usual: &str) -> Result<Door, Diagnostic> {
        let chosen = self.text(method_name);
        Ok(Door { url: self::address(address, given)?, method: method(method_name, chosen.as_deref().unwrap_or(usual))? })
    }
}

impl Settings {
    /// Reads arguments that fit the schema.
    pub(crate) fn read(arguments: &Object, environment: &BTreeMap<String, String>) -> Result<Self, Diagnostic> {
        let given = Given { arguments, environment };
        let address = given.text("address").ok_or_else(|| {
            Diagnostic::error("Invalid backend configuration", "The backend \"http\" needs the argument \"address\".")
                .with_hint("Write it in the block, set TF_HTTP_ADDRESS, or give it with: karmaform init -backend-config=address=...")
        })?;
        let locking = match (given.text("lock_address"), given.text("unlock_address")) {
            (Some(lock), Some(unlock)) => Some(Locking {
                lock: given.door("lock_address", &lock, "lock_method", "LOCK")?,
                unlock: given.door("unlock_address", &unlock, "unlock_method", "UNLOCK")?,
            }),
            (None, None) => None,
            (Some(_), None) => {
                return Err(wrong(
                    "unlock_address",
                    "There is a lock_address and no unlock_address, so no lock would ever be released.",
                    "Set unlock_address too; on most servers both are the same.",
                ));
            }
            (None, Some(_)) => {
                return Err(wrong(
                    "lock_address",
                    "There is an unlock_address and no lock_address, so nothing would be locked.",
                    "Set lock_address too, or leave both out to work without locks.",
                ));
            }
        };
        let seconds = |name, default| given.whole(name, default, 3600).map(|n| Duration::from_secs(n.into()));
        Ok(Self {
            update: given.door("address", &address, "update_method", "POST")?,
            locking,
            reach: reach(&given)?,
            retries: Retries {
                most: given.whole("retry_max", 2, 100)?,
                first_pause: seconds("retry_wait_min", 1)?,
                longest_pause: seconds("retry_wait_max", 30)?,
            },
        })
    }
}

fn reach(given: &Given<'_>) -> Result<Reach, Diagnostic> {
    let identity = match (given.text("client_certificate_pem"), given.text("client_private_key_pem")) {
        (Some(certificate), Some(key)) => Some(format!("{certificate}\n{key}\n")),
        (None, None) => None,
        _ => {
            return Err(wrong(
                "client certificate",
                "client_certificate_pem and client_private_key_pem go together, and one of them is missing.",
                "Set both, or neither.",
            ));
        }
    };
    // curl's convention, which Go's library shares: lower case too.
    let proxy = |name: &str| given.variable(name).or_else(|| given.variable(&name.to_uppercase()));
    Ok(Reach {
        // As with Terraform: a password without a user is none.
        login: given.text("username").map(|user| (user, given.text("password").unwrap_or_default())),
        skip_verification: given.arguments.get("skip_cert_verification").and_then(Value::as_bool) == Some(true),
        trusted: given.text("client_ca_certificate_pem"),
        identity,
        http_proxy: proxy("http_proxy"),
        https_proxy: proxy("https_proxy"),
        no_proxy: proxy("no_proxy"),
    })
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
