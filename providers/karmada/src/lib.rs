//! Karmada: the composites `karmada_control_plane` and `karmada_member`, and what is known of Karmada's versions.
//!
//! Pure: it names children by type and attributes, and touches nothing. It knows nothing of how objects get into clusters, of how certificates
//! are made, or of what runs etcd.

mod api;
mod check;
mod member;
mod plane;
mod read;
mod systemd;
mod versions;

use std::sync::Arc;

use karmaform_model::Composite;

pub use member::KarmadaMember;
pub use plane::KarmadaControlPlane;

/// The composites of this package, ready for a registry.
pub fn composites() -> Vec<Arc<dyn Composite>> {
    vec![Arc::new(KarmadaControlPlane), Arc::new(KarmadaMember)]
}
