//! `ssh_package`: a package of a host's own package manager.

use std::time::Duration;

use karmaform_model::{
    Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Need, Object, PlanContext, ResourceSpec, Schema, Type, default_plan,
};

use super::placed::{foreign, host};
use crate::checks::Checks;
use crate::client::{Act, Client};
use crate::look::{Look, Run, Seen};
use crate::script::quote;
use crate::typed::{SshType, comparable, finished};
use crate::values::{object, text};

const KIND: &str = "ssh_package";

/// Functions of all scripts: `name` is set.
const FUNCTIONS: &str = include_str!("package/package.sh");

/// How long installing may take: others that install, a slow mirror's lists, the package, and what it needs.
const LIMIT: Duration = Duration::from_secs(1800);

/// The type.
pub(crate) struct Package {
    schema: Schema,
}

impl Package {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let attributes = vec![
            host(),
            Attribute::required("name", Type::String, "Name of the package, as the host's package manager has it: \"haproxy\".").identity(),
            foreign(),
        ];
        let doc = "A package of a host, from wherever its package manager takes packages. What it brings is neither started nor enabled \
                   (unless the host has a policy-rc.d of its own); use an ssh_systemd_unit for that. A package that is there already is used as it is, and is then left alone when this is \
                   destroyed; else it goes with its configuration and with what came along, as far as nothing else needs that. One that a unit on the host runs stays until that is gone. \
                   Installing works with apt; on other hosts a program of that name must be there already.";
        Self { schema: Schema::new(doc, attributes).through("host").leaves_note().for_several() }
    }
}

/// The question whether it is installed.
fn look(name: &str) -> Run {
    let command = format!("name={}\n{FUNCTIONS}\nis_installed \"$name\"", quote(name));
    Run { id: format!("package-{name}"), command, environment: Vec::new(), timeout: Duration::from_secs(30) }
}

/// Names of Debian's packages. Source: Debian Policy, 5.6.1.
fn name_problem(name: &str) -> Option<String> {
    let good = name.len() >= 2
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c))
        // apt would take it away.
        && !name.ends_with('-');
    (!good).then(|| "is no name of a package: small letters, digits, \"+\", \"-\" and \".\", beginning with a letter or digit".to_owned())
}

impl ResourceSpec for Package {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let Some(wanted) = wanted else { return Ok(default_plan(&self.schema, before, None)) };
        Checks::of(wanted).check("name", "Bad name", name_problem).done()?;
        let before = before.map(|b| comparable(&self.schema, b, wanted));
        Ok(default_plan(&self.schema, before.as_ref(), Some(wanted)))
    }
}

impl SshType for Package {
    fn looks(&self, identity: &Object, _: Option<&Object>) -> Vec<Look> {
        text(identity, "name").map(|n| Look::Run(look(n))).into_iter().collect()
    }

    fn answer(&self, seen: &Seen, identity: &Object, known: Option<&Object>) -> Result<Option<Object>, Diagnostic> {
        let name = text(identity, "name").unwrap_or_default();
        match seen.runs.get(&look(name).id) {
            Some(0) => Ok(Some(object([("name", name.into()), ("foreign", (known.is_none() && !seen.owned.has(KIND, name)).into())]))),
            Some(1) => Ok(None),
            _ => Err(Diagnostic::error("Packages can't be looked at", format!("{} did not say whether {name} is installed.", seen.place))
                .with_hint(format!("See whether \"dpkg-query -W {name}\" answers there, then run again."))),
        }
    }

    fn needs(&self, wanted: &Object) -> Vec<Need> {
        vec![text(wanted, "name").map_or(Need::Later, |name| Need::Package(name.to_owned()))]
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Some(object) = change.after().or(change.before()) else { return Ok(None) };
            let name = text(object, "name").unwrap_or_default();
            // It becomes part of the file that says what is ours.
            if name_problem(name).is_some() {
                return Err(Diagnostic::error("Bad name", format!("\"{name}\" is no name of a package.")));
            }
            let (what, body) = match change.after() {
                Some(_) => ("Installing", "packaging install_package"),
                None => ("Removing", "packaging remove_package"),
            };
            let mut act = Act::new(format!("{what} the package {name}"), format!("name={}\n{FUNCTIONS}\n{body}\n", quote(name)));
            act = act.with_timeout(LIMIT);
            if change.after().is_some() {
                act = act.then_look(vec![Look::Run(look(name))]);
            }
            let attempt = client.attempt(act).await?;
            let seen = match attempt.output.reason() {
                Some((word, why)) if word == "package" => {
                    let said = String::from_utf8_lossy(attempt.output.section("said").unwrap_or_default()).trim().to_owned();
                    return Err(failed(&attempt.what, name, &why, &said));
                }
                _ => client.conclude(&attempt)?,
            };
            match change.after() {
                Some(after) => finished(self, &seen, after),
                None => Ok(None),
            }
        })
    }
}

/// What the package manager did not do, with what it said.
fn failed(what: &str, name: &str, why: &str, said: &str) -> Diagnostic {
    let (summary, sentence, hint) = match why {
        "none" => (
            "Package can't be installed",
            format!("{name} is not there, and the host has no apt to install it with."),
            "Install it there by hand, then run again.",
        ),
        "sealed" => (
            "Package can't be installed",
            format!("{name} is not there, and its package manager can't put it there: /usr can't be written."),
            "Such a host takes programs from elsewhere: give the place of the program (of a load balancer, `haproxy_source` and \
             `keepalived_source`), build it into the host's image, or mount /usr for writing.",
        ),
        "remove" => (
            "Package can't be removed",
            format!("{name} stays on the host."),
            "If something else needs it, `karmaform state rm` leaves it there; else finish on the host what dpkg says, then run again.",
        ),
        _ => (
            "Package can't be installed",
            format!("The host's apt did not install {name}."),
            "Check the host's apt sources and its way to them, or install the package there by hand.",
        ),
    };
    let said = if said.is_empty() { String::new() } else { format!(" It says:\n{said}") };
    Diagnostic::error(summary, format!("{what}: {sentence}{said}")).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for good in ["haproxy", "libc6", "g++", "liblua5.3-0"] {
            assert_eq!(name_problem(good), None, "{good}");
        }
        for bad in ["", "x", "-y", "exim4-", "a b", "a\tb", "A", "../x", "a=1"] {
            assert!(name_problem(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn what_a_package_manager_makes_is_not_for_root_alone() {
        let script = format!("umask 077\n{FUNCTIONS}\npatiently sh -c umask\necho \"$said\"");
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0022\n", "{output:?}");
    }

    #[test]
    fn a_package_that_was_there_is_used_as_it_is() {
        let mut seen = Seen { place: "h".to_owned(), ..Seen::default() };
        let identity = object([("name", "haproxy".into())]);
        let answer = |seen: &Seen, known: Option<&Object>| Package::new().answer(seen, &identity, known);
        // No answer is none, and neither is that of a program that was ended.
        for ended in [None, Some(124)] {
            seen.runs.extend(ended.map(|status| (look("haproxy").id, status)));
            let why = answer(&seen, None).unwrap_err();
            assert_eq!(why.summary, "Packages can't be looked at");
            assert_eq!(why.detail, "h did not say whether haproxy is installed.");
            assert!(why.hints[0].contains("dpkg-query -W haproxy"), "{:?}", why.hints);
        }
        seen.runs.insert(look("haproxy").id, 1);
        assert_eq!(answer(&seen, None).unwrap(), None);
        seen.runs.insert(look("haproxy").id, 0);
        let found = answer(&seen, None).unwrap().unwrap();
        assert_eq!(found["foreign"], true.into());
        let plan = Package::new().plan(&PlanContext { now: 0 }, Some(&found), Some(&identity)).unwrap();
        assert!(plan.is_no_op());
    }

    #[test]
    fn a_package_that_is_gone_right_after_did_not_last() {
        let mut seen = Seen { place: "h".to_owned(), ..Seen::default() };
        seen.runs.insert(look("haproxy").id, 1);
        let why = finished(&Package::new(), &seen, &object([("name", "haproxy".into())])).unwrap_err();
        assert_eq!(why.summary, "Change did not last");
        assert!(why.detail.contains("on h"), "{}", why.detail);
    }
}
