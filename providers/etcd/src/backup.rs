//! The composite `etcd_backup`: on each of its hosts a timer of systemd, or a CronJob, that runs `karmaform etcd backup run`. What became of it stands in
//! etcd ([`Turn`]), where `etcd_backup_record` looks. The composite is pure: it names parts and touches nothing, and who makes it tells it the sum of the program.

mod arguments;
mod children;
mod hosts;
mod pods;
mod record;
mod schema;
mod turn;

use std::collections::BTreeMap;

use karmaform_model::{Address, ChildStep, Choreography, Composite, Diagnostic, Diagnostics, Expansion, Object, Scene, Schema};

use arguments::Arguments;

pub(crate) use record::{EtcdBackupRecord, KIND, observe};
pub use turn::Turn;

/// The composite `etcd_backup`.
#[derive(Clone, Copy, Debug)]
pub struct EtcdBackup {
    /// The sum of the program that runs.
    pub(crate) program_sum: fn() -> Option<String>,
}

impl Composite for EtcdBackup {
    fn name(&self) -> &'static str {
        "etcd_backup"
    }

    fn schema(&self) -> &Schema {
        &schema::SCHEMA
    }

    fn care(&self, seen: &BTreeMap<&[ChildStep], &Object>) -> Vec<(Vec<ChildStep>, Diagnostic)> {
        pods::unnoted(seen).into_iter().collect()
    }

    fn expand(&self, address: &Address, arguments: &Object) -> Result<Expansion, Diagnostics> {
        Ok(children::expand(&Arguments::read(address, arguments)?, self.program_sum))
    }

    fn choreograph(&self, scene: &Scene<'_>) -> Result<Choreography, Diagnostics> {
        let impact = scene.wanted.is_none().then(|| "the backups stay where they lie".to_owned());
        Ok(Choreography { impact: impact.into_iter().collect(), ..Choreography::default() })
    }
}

#[cfg(test)]
mod tests {
    use karmaform_model::{Arg, Value};

    use super::*;

    /// The source and the sum of the program on a host.
    fn program(given: &[(&str, &str)]) -> (Value, Value) {
        let connection = Value::object([
            ("connection", Value::object([("provider", "ssh".into()), ("id", "a".into())])),
            ("architecture", "arm64".into()),
        ]);
        let mut arguments = Object::from([
            ("cluster".to_owned(), Value::object([("endpoints", Value::strings(["https://a:2379"]))])),
            ("version".to_owned(), "3.5.16".into()),
            ("source".to_owned(), "etcd.tar.gz".into()),
            ("hosts".to_owned(), Value::object([("a", connection)])),
        ]);
        arguments.extend(given.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))));
        let address: Address = "etcd_backup.main".parse().unwrap();
        let expansion = EtcdBackup { program_sum: || Some("5u3".to_owned()) }.expand(&address, &arguments).unwrap();
        let is_it = |c: &&karmaform_model::Child| {
            c.arguments.get("path").is_some_and(|p| *p == Arg::from("/opt/karmaform/etcd-backup-main/karmaform"))
        };
        let child = expansion.children.iter().find(is_it).unwrap();
        let value = |name: &str| match &child.arguments[name] {
            Arg::Value(value) => value.clone(),
            other => panic!("{other:?}"),
        };
        (value("source"), value("sha256"))
    }

    #[test]
    fn another_karmaform_is_another_program() {
        let (source, sum) = program(&[]);
        assert_eq!((source.as_str(), sum.as_str()), (Some("/proc/self/exe"), Some("5u3")));
        let (source, sum) = program(&[("program", "k")]);
        assert!(source.as_str() == Some("k") && sum.is_null());
        assert_eq!(program(&[("program", "k"), ("program_sha256", "7")]).1.as_str(), Some("7"));
        assert_eq!(program(&[("program", "karmaform-{arch}")]).0.as_str(), Some("karmaform-arm64"));
    }

    #[test]
    fn a_run_of_which_nothing_is_noted_is_told() {
        let told_since = |last: &str, healthy: bool, missed: Option<&str>| -> Vec<(Vec<ChildStep>, Diagnostic)> {
            let record = Object::from([("healthy".to_owned(), healthy.into()), ("last".to_owned(), last.into())]);
            let missed = missed.map_or_else(|| Value::null(karmaform_model::Type::String), Value::from);
            let job = Object::from([("missed".to_owned(), missed)]);
            let (at_record, at_job) = ([ChildStep::new("record")], [ChildStep::new("cron_job")]);
            let seen = BTreeMap::from([(at_record.as_slice(), &record), (at_job.as_slice(), &job)]);
            EtcdBackup { program_sum: || None }.care(&seen)
        };
        let told = |healthy: bool, missed: Option<&str>| told_since("2026-01-01T00:00:09Z", healthy, missed);
        assert_eq!(told(true, None), []);
        assert_eq!(told_since("2026-01-02T09:00:00Z", true, Some("2026-01-02T00:00:00Z")), [], "another one was made since");
        assert_eq!(told(false, Some("2026-01-02T00:00:00Z")), [], "the record says why");
        let found = told(true, Some("2026-01-02T00:00:00Z"));
        assert_eq!(found.len(), 1);
        let (path, why) = &found[0];
        assert_eq!((path.as_slice(), why.summary.as_str()), ([ChildStep::new("cron_job")].as_slice(), "A backup was not made"));
        assert!(why.detail.contains("at 2026-01-02T00:00:00Z was not") && !why.is_error(), "{why:?}");
    }
}
