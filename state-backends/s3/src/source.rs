//! Where credentials come from: decided from arguments, environment and profiles, in the order of Amazon's tools. Asks nobody; what it
//! says is asked by `credentials`.
//!
//! The order is that of the AWS SDK for Go, which Terraform uses: arguments, a profile that an argument names, the environment, a web
//! identity of the environment, the profile of `AWS_PROFILE` or `default`, the container, the machine.
//! <https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html>

use std::path::PathBuf;

use karmaform_model::{Diagnostic, Object, Value};

use crate::duration;
use crate::profile::{Profiles, Section};
use crate::settings::{Surroundings, header_safe, is_set, string, strings, wrong};

/// Keys, for ever or for a while.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) access: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
}

/// A role to take on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Role {
    pub(crate) arn: String,
    pub(crate) session: Option<String>,
    pub(crate) seconds: Option<u64>,
    pub(crate) external_id: Option<String>,
    pub(crate) policy: Option<String>,
    pub(crate) policy_arns: Vec<String>,
    pub(crate) source_identity: Option<String>,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) transitive_tags: Vec<String>,
}

/// A token of an identity provider.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum IdentityToken {
    Inline(String),
    File(PathBuf),
}

/// Where credentials come from.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// They are known.
    Keys(Keys),
    /// From STS, with other credentials.
    Role(Box<Source>, Role),
    /// From STS, with a token.
    WebIdentity(IdentityToken, Role),
    /// A program prints them.
    Process(String),
    /// From IAM Identity Center, with the token that `aws sso login` left in this file.
    Sso { profile: String, cache: PathBuf, region: String, account: String, role: String },
    /// From the agent of a container platform, at this address.
    Container { url: String, authorization: Option<IdentityToken> },
    /// From the machine's metadata service, at this address.
    Machine(String),
}

/// The source of credentials, and what the profile says besides.
pub(crate) struct Chosen {
    pub(crate) source: Source,
    pub(crate) region: Option<String>,
}

struct Chain<'a> {
    arguments: &'a Object,
    around: Surroundings<'a>,
    profiles: Profiles,
}

/// Decides.
pub(crate) fn choose(arguments: &Object, around: Surroundings<'_>) -> Result<Chosen, Diagnostic> {
    let profiles = Profiles::read(strings(arguments, "shared_config_files"), strings(arguments, "shared_credentials_files"), around)?;
    let chain = Chain { arguments, around, profiles };
    let named = string(arguments, "profile").or_else(|| around.first(&["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]));
    let profile = chain.profiles.profile(named.as_deref().unwrap_or("default"));
    if let (Some(name), None) = (&named, profile) {
        return Err(Diagnostic::error("Profile not found", format!("No file with profiles has one of the name {name:?}."))
            .with_hint("Look into ~/.aws/config and ~/.aws/credentials, or name the right one in profile or AWS_PROFILE."));
    }
    let region = profile.and_then(|p| p.get("region")).cloned();
    Ok(Chosen { source: chain.source(named.as_deref().unwrap_or("default"), profile)?, region })
}

impl Chain<'_> {
    fn source(&self, name: &str, profile: Option<&Section>) -> Result<Source, Diagnostic> {
        if let Some(role) = self.role("assume_role_with_web_identity")? {
            let object = self.arguments.get("assume_role_with_web_identity").and_then(Value::as_entries).cloned().unwrap_or_default();
            let file = || string(&object, "web_identity_token_file").or_else(|| self.around.variable("AWS_WEB_IDENTITY_TOKEN_FILE"));
            let token = match string(&object, "web_identity_token") {
                Some(token) => IdentityToken::Inline(token),
                None => IdentityToken::File(self.around.path(&file().ok_or_else(|| {
                    wrong(
                        "assume_role_with_web_identity",
                        "There is no token to show.",
                        "Give web_identity_token_file, or set AWS_WEB_IDENTITY_TOKEN_FILE.",
                    )
                })?)),
            };
            return self.with_role(Source::WebIdentity(token, role));
        }
        let source = match self.keys()? {
            Some(keys) => Source::Keys(keys),
            None if string(self.arguments, "profile").is_some() => self.of_profile(name, profile, &mut Vec::new())?,
            None => match (self.environment()?, self.identity_of_environment()) {
                (Some(keys), _) => Source::Keys(keys),
                (None, Some(identity)) => identity,
                (None, None) => self.of_profile(name, profile, &mut Vec::new())?,
            },
        };
        self.with_role(source)
    }

    fn with_role(&self, source: Source) -> Result<Source, Diagnostic> {
        Ok(match self.role("assume_role")? {
            Some(role) => Source::Role(Box::new(source), role),
            None => source,
        })
    }

    /// The keys in the arguments.
    fn keys(&self) -> Result<Option<Keys>, Diagnostic> {
        let get = |name| string(self.arguments, name);
        match (get("access_key"), get("secret_key")) {
            (Some(access), Some(secret)) => checked(Keys { access, secret, token: get("token") }, "the arguments").map(Some),
            (None, None) => Ok(None),
            _ => Err(wrong(
                "credentials",
                "access_key and secret_key belong together, and one of them is missing.",
                "Give both, or neither.",
            )),
        }
    }

    /// The keys in the environment.
    fn environment(&self) -> Result<Option<Keys>, Diagnostic> {
        let get = |names: &[&str]| self.around.first(names);
        match (get(&["AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY"]), get(&["AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY"])) {
            (Some(access), Some(secret)) => {
                checked(Keys { access, secret, token: get(&["AWS_SESSION_TOKEN"]) }, "the environment").map(Some)
            }
            _ => Ok(None),
        }
    }

    fn identity_of_environment(&self) -> Option<Source> {
        let get = |name| self.around.variable(name);
        let file = self.around.path(&get("AWS_WEB_IDENTITY_TOKEN_FILE")?);
        let role = Role { arn: get("AWS_ROLE_ARN")?, session: get("AWS_ROLE_SESSION_NAME"), ..Role::default() };
        Some(Source::WebIdentity(IdentityToken::File(file), role))
    }

    /// What a profile says; what it leaves open is found in the container or on the machine. `seen` are those that led here.
    fn of_profile(&self, name: &str, profile: Option<&Section>, seen: &mut Vec<String>) -> Result<Source, Diagnostic> {
        let Some(profile) = profile else { return self.surrounding() };
        let get = |key: &str| profile.get(key).filter(|v| !v.is_empty()).cloned();
        let bad = |detail: String| {
            Diagnostic::error("Profile not usable", format!("The profile {name:?} {detail}."))
                .with_hint("Correct it in ~/.aws/config, or name another one.")
        };
        if seen.iter().any(|s| s == name) {
            return Err(bad("leads to itself by source_profile".to_owned()));
        }
        let own_keys = match (get("aws_access_key_id"), get("aws_secret_access_key")) {
            (Some(access), Some(secret)) => {
                Some(Source::Keys(checked(Keys { access, secret, token: get("aws_session_token") }, "the profile")?))
            }
            _ => None,
        };
        let role = get("role_arn").map(|arn| Role {
            arn,
            session: get("role_session_name"),
            seconds: get("duration_seconds").and_then(|s| s.parse().ok()),
            external_id: get("external_id"),
            ..Role::default()
        });
        if role.is_some() && get("mfa_serial").is_some() {
            return Err(bad("asks for a one-time code (mfa_serial), and nobody can be asked here".to_owned()));
        }
        // A profile that is its own source gives its own keys.
        if let (Some(role), Some(source)) = (&role, get("source_profile")) {
            let base = match (source == name, own_keys) {
                (true, Some(keys)) => keys,
                (true, None) => return Err(bad("is its own source_profile and has no keys".to_owned())),
                (false, _) => {
                    let other = self
                        .profiles
                        .profile(&source)
                        .ok_or_else(|| bad(format!("has the source_profile {source:?}, which is not there")))?;
                    seen.push(name.to_owned());
                    self.of_profile(&source, Some(other), seen)?
                }
            };
            return Ok(Source::Role(Box::new(base), role.clone()));
        }
        if let (Some(file), Some(role)) = (get("web_identity_token_file"), &role) {
            return Ok(Source::WebIdentity(IdentityToken::File(self.around.path(&file)), role.clone()));
        }
        let base = if let Some(keys) = own_keys {
            keys
        } else if let Some(from) = get("credential_source") {
            match from.as_str() {
                "Environment" => {
                    Source::Keys(self.environment()?.ok_or_else(|| bad("takes its keys from the environment, which has none".to_owned()))?)
                }
                "EcsContainer" => self.container()?.ok_or_else(|| bad("takes its keys from a container, and this is none".to_owned()))?,
                "Ec2InstanceMetadata" => Source::Machine(self.machine()),
                other => return Err(bad(format!("has the credential_source {other:?}, which there is not"))),
            }
        } else if let Some(account) = get("sso_account_id") {
            self.sso(name, profile, account)?
        } else if let Some(command) = get("credential_process") {
            Source::Process(command)
        } else {
            self.surrounding()?
        };
        Ok(match role {
            Some(role) => Source::Role(Box::new(base), role),
            None => base,
        })
    }

    /// The session of IAM Identity Center. The file is named after the session, or in older profiles after the address where it began.
    fn sso(&self, name: &str, profile: &Section, account: String) -> Result<Source, Diagnostic> {
        let session = profile.get("sso_session");
        let section = session.and_then(|s| self.profiles.session(s)).unwrap_or(profile);
        let missing = |what: &str| {
            Diagnostic::error("Profile not usable", format!("The profile {name:?} has sso_account_id but no {what}."))
                .with_hint("Run `aws configure sso` again for this profile.")
        };
        let role = profile.get("sso_role_name").cloned().ok_or_else(|| missing("sso_role_name"))?;
        let region = section.get("sso_region").cloned().ok_or_else(|| missing("sso_region"))?;
        let after = session.or_else(|| section.get("sso_start_url")).ok_or_else(|| missing("sso_session"))?;
        let home = self.around.home.ok_or_else(|| missing("home folder to find the login in"))?;
        let cache = home.join(".aws/sso/cache").join(crate::sso::file_name(after));
        Ok(Source::Sso { profile: name.to_owned(), cache, region, account, role })
    }

    /// What is around when nothing was said.
    fn surrounding(&self) -> Result<Source, Diagnostic> {
        if let Some(container) = self.container()? {
            return Ok(container);
        }
        let disabled = self.around.variable("AWS_EC2_METADATA_DISABLED").is_some_and(|v| v.eq_ignore_ascii_case("true"));
        if disabled || is_set(self.arguments, "skip_metadata_api_check") {
            return Err(Diagnostic::error(
                "No credentials for the s3 backend",
                "Neither the arguments nor the environment nor the files in ~/.aws have any, and the metadata service is not to be asked.",
            )
            .with_hint("Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run `aws sso login`."));
        }
        Ok(Source::Machine(self.machine()))
    }

    /// <https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html>
    fn container(&self) -> Result<Option<Source>, Diagnostic> {
        let get = |name| self.around.variable(name);
        let url = match (get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), get("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
            (Some(path), _) => format!("http://169.254.170.2{path}"),
            (None, Some(full)) => full,
            (None, None) => return Ok(None),
        };
        if !is_near(&url) {
            return Err(Diagnostic::error(
                "Container credentials from afar",
                "AWS_CONTAINER_CREDENTIALS_FULL_URI names another machine without https, where anyone in between could read the keys.",
            )
            .with_hint("Use https, or an address of this machine."));
        }
        let file = || Some(IdentityToken::File(self.around.path(&get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")?)));
        let authorization = file().or_else(|| get("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(IdentityToken::Inline));
        Ok(Some(Source::Container { url, authorization }))
    }

    /// <https://docs.aws.amazon.com/sdkref/latest/guide/feature-imds-credentials.html>
    fn machine(&self) -> String {
        let given = |argument: &str, variable| string(self.arguments, argument).or_else(|| self.around.variable(variable));
        let six = given("ec2_metadata_service_endpoint_mode", "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE")
            .is_some_and(|m| m.eq_ignore_ascii_case("ipv6"));
        let usual = if six { "http://[fd00:ec2::254]" } else { "http://169.254.169.254" };
        let address = given("ec2_metadata_service_endpoint", "AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or_else(|| usual.to_owned());
        address.trim_end_matches('/').to_owned()
    }

    /// The role in an argument.
    fn role(&self, argument: &str) -> Result<Option<Role>, Diagnostic> {
        let Some(object) = self.arguments.get(argument).and_then(Value::as_entries) else { return Ok(None) };
        let identity = argument == "assume_role_with_web_identity";
        let of_environment = |name: &str| identity.then(|| self.around.variable(name)).flatten();
        let arn = string(object, "role_arn").or_else(|| of_environment("AWS_ROLE_ARN"));
        let arn = arn.filter(|a| a.starts_with("arn:") && header_safe(a));
        let arn = arn.ok_or_else(|| {
            wrong(argument, "It needs the role_arn of a role.", "Write it like \"arn:aws:iam::123456789012:role/state\".")
        })?;
        let seconds = string(object, "duration").map(|given| {
            duration::seconds(&given)
                .filter(|s| (900..=43_200).contains(s))
                .ok_or_else(|| wrong(argument, "The duration must be between 15 minutes and 12 hours.", "Write it like \"1h\" or \"45m\"."))
        });
        let tags = object.get("tags").and_then(Value::as_entries).cloned().unwrap_or_default();
        Ok(Some(Role {
            arn,
            session: string(object, "session_name").or_else(|| of_environment("AWS_ROLE_SESSION_NAME")),
            seconds: seconds.transpose()?,
            external_id: string(object, "external_id"),
            policy: string(object, "policy"),
            policy_arns: strings(object, "policy_arns").unwrap_or_default(),
            source_identity: string(object, "source_identity"),
            tags: tags.iter().filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))).collect(),
            transitive_tags: strings(object, "transitive_tag_keys").unwrap_or_default(),
        }))
    }
}

/// Keys that can stand in a header.
pub(crate) fn checked(keys: Keys, origin: &str) -> Result<Keys, Diagnostic> {
    if header_safe(&keys.access) && header_safe(&keys.secret) && keys.token.as_deref().is_none_or(header_safe) {
        return Ok(keys);
    }
    let detail = format!("The keys in {origin} have characters that no key has, like spaces or line ends.");
    Err(Diagnostic::error("Invalid credentials for the s3 backend", detail).with_hint("Copy them again."))
}

/// True for https, and for addresses that never leave the machine.
fn is_near(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let loopback = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|a| a.is_loopback());
    url.scheme() == "https" || (url.scheme() == "http" && (loopback || ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"].contains(&host)))
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
