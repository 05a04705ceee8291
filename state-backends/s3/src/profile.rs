//! The files of Amazon's tools, `~/.aws/config` and `~/.aws/credentials`: sections of names and values.
//! <https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html>

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use karmaform_model::Diagnostic;

use crate::settings::Surroundings;

/// The names and values of one section.
pub(crate) type Section = BTreeMap<String, String>;

/// Both kinds of files, read.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    profiles: BTreeMap<String, Section>,
    sessions: BTreeMap<String, Section>,
}

/// What a file's plain section names mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// `[profile x]`, `[default]`, `[sso-session x]`.
    Config,
    /// `[x]`.
    Credentials,
}

impl Profiles {
    /// Reads the files given, or else those that the environment names, or else those at home. A file that was named must be there.
    pub(crate) fn read(
        config: Option<Vec<String>>,
        credentials: Option<Vec<String>>,
        around: Surroundings<'_>,
    ) -> Result<Self, Diagnostic> {
        let mut all = Self::default();
        for (given, variable, usual, sort) in [
            (config, "AWS_CONFIG_FILE", ".aws/config", Sort::Config),
            (credentials, "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", Sort::Credentials),
        ] {
            let named = given.or_else(|| around.variable(variable).map(|v| vec![v]));
            let must_be_there = named.is_some();
            let paths: Vec<PathBuf> = match named {
                Some(named) => named.iter().map(|p| around.path(p)).collect(),
                None => around.home.map(|h| h.join(usual)).into_iter().collect(),
            };
            for path in paths {
                match fs::read_to_string(&path) {
                    Ok(text) => all.add(&text, sort),
                    Err(e) if e.kind() == io::ErrorKind::NotFound && !must_be_there => {}
                    Err(e) => {
                        return Err(Diagnostic::error("File with profiles can't be read", format!("{}: {e}.", path.display()))
                            .with_hint("Correct the path, or remove it to use ~/.aws."));
                    }
                }
            }
        }
        Ok(all)
    }

    fn add(&mut self, text: &str, sort: Sort) {
        for (name, section) in sections(text) {
            let (sessions, name) = match (sort, name.split_once(char::is_whitespace)) {
                (Sort::Config, Some(("profile", name))) => (false, name.trim()),
                (Sort::Config, Some(("sso-session", name))) => (true, name.trim()),
                (Sort::Config, None) if name == "default" => (false, "default"),
                // A section of credentials in the other file, or one of some other tool.
                (Sort::Config, _) => continue,
                (Sort::Credentials, _) => (false, name.as_str()),
            };
            let place = if sessions { &mut self.sessions } else { &mut self.profiles };
            place.entry(name.to_owned()).or_default().extend(section);
        }
    }

    /// The profile of this name.
    pub(crate) fn profile(&self, name: &str) -> Option<&Section> {
        self.profiles.get(name)
    }

    /// The SSO session of this name.
    pub(crate) fn session(&self, name: &str) -> Option<&Section> {
        self.sessions.get(name)
    }
}

/// The sections of a file, in order. Indented lines belong to a nested setting, and none of those is of use here.
fn sections(text: &str) -> Vec<(String, Section)> {
    let mut found: Vec<(String, Section)> = Vec::new();
    for line in text.lines() {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', ';']) || line.starts_with([' ', '\t']) {
            continue;
        }
        if let Some(rest) = bare.strip_prefix('[') {
            let name = rest.split(']').next().unwrap_or_default().trim().trim_matches('"');
            found.push((name.replace('"', ""), Section::new()));
        } else if let (Some((name, value)), Some((_, section))) = (bare.split_once('='), found.last_mut()) {
            // A comment begins with a space and a hash; a secret may have a hash in it.
            let value = value.split(" #").next().and_then(|v| v.split(" ;").next()).unwrap_or_default();
            section.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_of_both_files_become_one() {
        let mut all = Profiles::default();
        let config = "[default]\nregion = eu-west-1\ns3 =\n  addressing_style = path\n\n[profile ops]\nrole_arn=arn:aws:iam::1:role/x\nsource_profile = default # a word\n[sso-session corp]\nsso_region = us-east-1\n[ops]\nregion = nowhere\n";
        all.add(config, Sort::Config);
        all.add("; keys\n[default]\naws_access_key_id = A\naws_secret_access_key = s#e=c\n[profile]\n", Sort::Credentials);
        let default = all.profile("default").unwrap();
        assert_eq!(default["region"], "eu-west-1");
        assert_eq!(default["aws_secret_access_key"], "s#e=c");
        assert_eq!(default.len(), 4, "{default:?}");
        let ops = all.profile("ops").unwrap();
        assert_eq!((ops["source_profile"].as_str(), ops.get("region")), ("default", None));
        assert_eq!(all.session("corp").unwrap()["sso_region"], "us-east-1");
        assert!(all.profile("corp").is_none());
    }
}
