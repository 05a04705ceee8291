//! How a host is reached: from arguments, a connection value and the provider block to one set of options, and back to a value.

use std::path::{Path, PathBuf};
use std::time::Duration;

use karmaform_model::{Attribute, Diagnostic, Object, Type, Value, written_path};

use crate::values::{boolean, number, text};

/// The provider's name, in connection values.
pub(crate) const PROVIDER: &str = "ssh";

const PORT: u16 = 22;
/// The keys that all users of this machine know.
const OF_ALL: &str = "/etc/ssh/ssh_known_hosts";
const CONNECT_TIMEOUT: i64 = 10;

/// Everything needed to connect. Holds secrets, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// A name or an IP address.
    pub(crate) address: String,
    /// The port of sshd.
    pub(crate) port: u16,
    /// Who logs in.
    pub(crate) user: String,
    /// With what.
    pub(crate) credentials: Credentials,
    /// Where host keys are looked up.
    pub(crate) known_hosts: Vec<PathBuf>,
    /// The one host key that is right, instead of that file.
    pub(crate) host_key: Option<String>,
    /// Scripts run through `sudo -n`.
    pub(crate) sudo: bool,
    /// For TCP, handshake and log-in together.
    pub(crate) connect_timeout: Duration,
    /// The host to go through.
    pub(crate) bastion: Option<Box<Options>>,
    /// The user's home folder.
    pub(crate) home: Option<PathBuf>,
}

/// Ways to log in.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// The text of a key.
    pub(crate) private_key: Option<String>,
    /// The file of a key.
    pub(crate) private_key_file: Option<PathBuf>,
    /// Of either key.
    pub(crate) passphrase: Option<String>,
    /// A password.
    pub(crate) password: Option<String>,
    /// Whether to ask the agent; unset: if nothing else is configured.
    pub(crate) agent: Option<bool>,
}

impl Credentials {
    fn is_empty(&self) -> bool {
        self.private_key.is_none() && self.private_key_file.is_none() && self.password.is_none() && self.agent.is_none()
    }
}

/// The attributes that say how a host is reached; the same for the data source, the provider block and (inside the value) a bastion.
///
/// None has a default in the schema: a default there would hide what the provider block says.
pub(crate) fn attributes() -> Vec<Attribute> {
    vec![
        Attribute::optional("port", Type::Number, "Port of the SSH server; 22 by default."),
        Attribute::optional("user", Type::String, "User to log in as; \"root\" by default."),
        Attribute::optional("private_key", Type::String, "Private key, as text.").secret(),
        Attribute::optional("private_key_file", Type::String, "File of a private key; \"~/\" stands for the home folder."),
        Attribute::optional("passphrase", Type::String, "Passphrase of the private key.").secret(),
        Attribute::optional("password", Type::String, "Password to log in with; keys are better.").secret(),
        Attribute::optional(
            "agent",
            Type::Bool,
            "Whether to use the SSH agent. By default it is used, with the usual key files, if no other way to log in is given.",
        ),
        Attribute::optional(
            "known_hosts_file",
            Type::String,
            "File with the keys of known hosts; \"~/.ssh/known_hosts\" and \"/etc/ssh/ssh_known_hosts\" by default.",
        ),
        Attribute::optional(
            "host_key",
            Type::String,
            "The host's public key, as on a line of ssh-keyscan; then no file of known hosts is read.",
        ),
        Attribute::optional(
            "sudo",
            Type::Bool,
            "Whether to work through \"sudo -n\", which must not ask for a password. By default true for every user but root.",
        ),
        Attribute::optional("connect_timeout", Type::Number, "Seconds for connecting and logging in together; 10 by default."),
        Attribute::optional(
            "bastion",
            Type::Any,
            "Host to go through: an object with `address` and any of the attributes here, or the `connection` of another ssh_host. What it \
             does not say about logging in is taken from the target.",
        ),
    ]
}

/// What says whether a host must be there.
pub(crate) fn required() -> Attribute {
    Attribute::optional(
        "required",
        Type::Bool,
        "Whether the host must answer when a plan is made. If false, one that does not is worth a warning, and what the state remembers of it is \
         taken to be so: what there is to do elsewhere is not held up.",
    )
}

/// False for a host that may be away.
pub(crate) fn is_required(connection: &Object) -> bool {
    boolean(connection, "required") != Some(false)
}

impl Options {
    /// From a connection value (or a data source's arguments), with the provider block behind it.
    pub(crate) fn new(connection: &Object, defaults: &Object) -> Result<Self, Diagnostic> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let mut options = Self::layered(&[connection, defaults], home)?;
        let bastion = connection.get("bastion").filter(|b| !b.is_null()).or_else(|| defaults.get("bastion").filter(|b| !b.is_null()));
        if let Some(value) = bastion {
            let Some(entries) = value.as_entries() else {
                return Err(Diagnostic::error("Bastion is no object", "The argument \"bastion\" must be an object with an \"address\"."));
            };
            options.bastion = Some(Box::new(options.jump(entries)?));
        }
        Ok(options)
    }

    /// A host to go through on the way to this one. What it does not say about logging in is as it is here.
    fn jump(&self, entries: &Object) -> Result<Self, Diagnostic> {
        let mut jump = Self::layered(&[entries], self.home.clone())?;
        if jump.credentials.is_empty() {
            jump.credentials = self.credentials.clone();
        }
        if text(entries, "user").is_none() {
            jump.user.clone_from(&self.user);
        }
        if text(entries, "known_hosts_file").is_none() {
            jump.known_hosts.clone_from(&self.known_hosts);
        }
        if let Some(further) = entries.get("bastion").filter(|b| !b.is_null()).and_then(Value::as_entries) {
            jump.bastion = Some(Box::new(jump.jump(further)?));
        }
        Ok(jump)
    }

    fn layered(layers: &[&Object], home: Option<PathBuf>) -> Result<Self, Diagnostic> {
        let string = |name: &str| layers.iter().find_map(|l| text(l, name)).map(str::to_owned);
        let path = |name: &str| string(name).map(|p| written_path(Path::new(""), home.as_deref(), &p));
        let whole = |name: &str| layers.iter().find_map(|l| number(l, name));
        let flag = |name: &str| layers.iter().find_map(|l| boolean(l, name));
        let Some(address) = string("address").filter(|a| !a.is_empty() && !a.contains(|c: char| c.is_whitespace() || c.is_control()))
        else {
            return Err(Diagnostic::error(
                "Connection without an address",
                "A connection to a host needs an \"address\": a name or an IP address, without spaces.",
            ));
        };
        let port = match whole("port") {
            None => PORT,
            Some(n) => u16::try_from(n)
                .ok()
                .filter(|p| *p != 0)
                .ok_or_else(|| Diagnostic::error("Bad port", format!("{n} is no port; ports are 1 to 65535.")))?,
        };
        let user = string("user").unwrap_or_else(|| "root".to_owned());
        let seconds = whole("connect_timeout").unwrap_or(CONNECT_TIMEOUT);
        let seconds = u64::try_from(seconds)
            .ok()
            .filter(|s| (1..=3600).contains(s))
            .ok_or_else(|| Diagnostic::error("Bad timeout", format!("\"connect_timeout\" is {seconds}; it must be 1 to 3600 seconds.")))?;
        Ok(Self {
            sudo: flag("sudo").unwrap_or(user != "root"),
            address: address.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port,
            user,
            credentials: Credentials {
                private_key: string("private_key"),
                private_key_file: path("private_key_file"),
                passphrase: string("passphrase"),
                password: string("password"),
                agent: flag("agent"),
            },
            known_hosts: match path("known_hosts_file") {
                Some(given) => vec![given],
                None => home.as_ref().map(|h| h.join(".ssh/known_hosts")).into_iter().chain([PathBuf::from(OF_ALL)]).collect(),
            },
            host_key: string("host_key"),
            connect_timeout: Duration::from_secs(seconds),
            bastion: None,
            home,
        })
    }

    /// The host, for messages.
    pub(crate) fn place(&self) -> String {
        if self.port == PORT { self.address.clone() } else { self.id() }
    }

    /// What the connection reaches, whoever logs in.
    pub(crate) fn id(&self) -> String {
        if self.address.contains(':') { format!("[{}]:{}", self.address, self.port) } else { format!("{}:{}", self.address, self.port) }
    }

    /// The connection value that stands for these arguments. Only what was given is in it, so that the provider block still counts.
    pub(crate) fn value(&self, arguments: &Object) -> Value {
        let mut object: Object = attributes()
            .into_iter()
            .filter_map(|a| {
                let value = arguments.get(a.name).filter(|v| !v.is_null())?;
                Some((a.name.to_owned(), value.clone().secret_if(a.secret)))
            })
            .collect();
        if let Some(bastion) = object.get_mut("bastion") {
            mark(bastion);
        }
        if !is_required(arguments) {
            object.insert("required".to_owned(), false.into());
        }
        object.insert("provider".to_owned(), PROVIDER.into());
        object.insert("id".to_owned(), self.id().into());
        object.insert("address".to_owned(), self.address.as_str().into());
        object.into()
    }
}

/// Puts secret marks on what is secret in a bastion.
fn mark(bastion: &mut Value) {
    *bastion = bastion.map_parts(|step, part| {
        let secret = matches!(&step, karmaform_model::PathStep::Name(n) if ["private_key", "passphrase", "password"].contains(&n.as_str()));
        let mut part = part.clone().secret_if(secret && !part.is_null());
        if matches!(&step, karmaform_model::PathStep::Name(n) if n == "bastion") {
            mark(&mut part);
        }
        part
    });
}

/// The host of a resource, for messages of pure functions.
pub(crate) fn place_of(object: &Object) -> String {
    let host = object.get("host");
    let part = |name: &str| host.and_then(|h| h.get(name)).and_then(Value::as_str);
    part("address").or_else(|| part("id")).unwrap_or("the host").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(parts: &[(&str, Value)]) -> Object {
        parts.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect()
    }

    #[test]
    fn what_is_nearer_wins_and_what_is_missing_has_a_default() {
        let defaults = object(&[("user", "ops".into()), ("port", Value::null(Type::Number)), ("private_key_file", "~/k".into())]);
        let options = Options::new(&object(&[("address", "h".into()), ("user", Value::null(Type::String))]), &defaults).ok().unwrap();
        assert_eq!((options.user.as_str(), options.port, options.sudo), ("ops", 22, true));
        assert!(options.credentials.private_key_file.unwrap().ends_with("k"));
        let options = Options::new(&object(&[("address", "fd00::1".into()), ("user", "root".into())]), &defaults).ok().unwrap();
        assert_eq!((options.sudo, options.id().as_str()), (false, "[fd00::1]:22"));
    }

    #[test]
    fn a_bastion_logs_in_as_the_target_does_unless_it_says_otherwise() {
        let bastion = Value::object([("address", "jump".into()), ("port", 2222i64.into())]);
        let arguments = object(&[("address", "h".into()), ("user", "ops".into()), ("password", "pw".into()), ("bastion", bastion)]);
        let options = Options::new(&arguments, &Object::new()).ok().unwrap();
        let jump = options.bastion.unwrap();
        assert_eq!((jump.user.as_str(), jump.place().as_str(), jump.credentials.password.as_deref()), ("ops", "jump:2222", Some("pw")));
    }

    #[test]
    fn every_host_on_the_way_logs_in_as_the_one_behind_it_does() {
        let bastions = |further: Value| Value::object([("address", "near".into()), ("user", "jump".into()), ("bastion", further)]);
        let further = Value::object([("address", "far".into())]);
        let defaults = object(&[("known_hosts_file", "/k".into())]);
        let arguments =
            object(&[("address", "h".into()), ("user", "ops".into()), ("password", "pw".into()), ("bastion", bastions(further))]);
        let near = Options::new(&arguments, &defaults).ok().unwrap().bastion.unwrap();
        let far = near.bastion.clone().unwrap();
        assert_eq!((near.user.as_str(), far.user.as_str(), far.place().as_str()), ("jump", "jump", "far"));
        assert_eq!(far.credentials.password.as_deref(), Some("pw"));
        assert_eq!(far.known_hosts, [PathBuf::from("/k")]);
    }

    #[test]
    fn keys_of_hosts_are_looked_up_where_others_look_too() {
        let known = |more: &[(&str, Value)]| {
            let mut arguments = object(&[("address", "h".into())]);
            arguments.extend(object(more));
            Options::layered(&[&arguments], Some(PathBuf::from("/home/a"))).ok().unwrap().known_hosts
        };
        assert_eq!(known(&[]), ["/home/a/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"].map(PathBuf::from));
        assert_eq!(known(&[("known_hosts_file", "~/k".into())]), ["/home/a/k"].map(PathBuf::from));
    }

    #[test]
    fn bad_options_are_refused() {
        let check = |parts: &[(&str, Value)], summary: &str| {
            assert_eq!(Options::new(&object(parts), &Object::new()).err().map(|e| e.summary).as_deref(), Some(summary));
        };
        check(&[], "Connection without an address");
        check(&[("address", "h".into()), ("port", 70000i64.into())], "Bad port");
        check(&[("address", "h".into()), ("connect_timeout", 0i64.into())], "Bad timeout");
        check(&[("address", "h".into()), ("bastion", "b".into())], "Bastion is no object");
    }

    #[test]
    fn the_value_keeps_what_was_given_and_marks_secrets() {
        let bastion = Value::object([("address", "jump".into()), ("password", "pw".into())]);
        let arguments =
            object(&[("address", "h".into()), ("private_key", "k".into()), ("port", Value::null(Type::Number)), ("bastion", bastion)]);
        let value = Options::new(&arguments, &Object::new()).ok().unwrap().value(&arguments);
        assert_eq!(value.get("id").and_then(Value::as_str), Some("h:22"));
        assert!(value.get("port").is_none());
        assert_eq!(value.secret_paths().len(), 2);
        assert_eq!(place_of(&object(&[("host", value)])), "h");
    }
}
