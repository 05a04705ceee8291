//! Karmada: the composite `karmada_control_plane`, and what is known of Karmada's versions.
//!
//! Pure: it names children by type and attributes, and touches nothing. It knows nothing of how objects get into clusters, of how certificates
//! are made, or of what runs etcd.

// Until the composite uses them.
#[allow(dead_code)]
mod api;
#[allow(dead_code, unused_imports)]
mod versions;

use std::sync::Arc;

use karmaform_model::Composite;

/// The composites of this package, ready for a registry.
pub fn composites() -> Vec<Arc<dyn Composite>> {
    Vec::new()
}
