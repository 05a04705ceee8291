//! The composite `etcd_backup`: on each of its hosts a timer of systemd, or a CronJob, that runs `karmaform etcd backup run`. What became of it stands in
//! etcd ([`Turn`]), where `etcd_backup_record` looks. Pure but for these two: it names parts and touches nothing.

mod arguments;
mod children;
mod hosts;
mod pods;
mod record;
mod schema;
mod turn;

use karmaform_model::{Address, Choreography, Composite, Diagnostics, Expansion, Object, Scene, Schema};

use arguments::Arguments;

pub(crate) use record::{EtcdBackupRecord, KIND, observe};
pub use turn::Turn;

/// The composite `etcd_backup`.
#[derive(Clone, Copy, Debug, Default)]
pub struct EtcdBackup;

impl Composite for EtcdBackup {
    fn name(&self) -> &'static str {
        "etcd_backup"
    }

    fn schema(&self) -> &Schema {
        &schema::SCHEMA
    }

    fn expand(&self, address: &Address, arguments: &Object) -> Result<Expansion, Diagnostics> {
        Ok(children::expand(&Arguments::read(address, arguments)?))
    }

    fn choreograph(&self, scene: &Scene<'_>) -> Result<Choreography, Diagnostics> {
        let impact = scene.wanted.is_none().then(|| "the backups stay where they lie".to_owned());
        Ok(Choreography { impact: impact.into_iter().collect(), ..Choreography::default() })
    }
}
