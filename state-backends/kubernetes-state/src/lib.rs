//! State in Secrets of a Kubernetes cluster.
//!
//! [`KubernetesStore`] is a [`StateStore`](karmaform_model::StateStore): an item is a Secret, the lock a Lease, and both are written over a
//! resourceVersion. The names, labels and encoding are those of Terraform's backend "kubernetes", so that both find the same state and lock.
//!
//! Knows nothing of: what is in a state, leases as locks have them, the clusters that karmaform manages.

mod arguments;
mod door;
mod lease;
mod names;
mod secret;
mod store;

pub use arguments::schema;
pub use store::KubernetesStore;
