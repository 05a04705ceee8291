//! The two CAs of a cluster, and how others take their place (facts of etcd, section 6: "CA rotation"). etcd reads certificates at every handshake
//! and what it trusts only when it starts, so that a CA comes in three changes: first everybody trusts the new one beside the old one, then the
//! new one signs, and at last nobody trusts the old one any more. Each is one apply, since clients learn of each only when it is done.

mod arguments;
mod children;
mod rotation;

pub(super) use arguments::{Authorities, block};
pub(super) use children::{expand, kept, trusted};
pub(super) use rotation::{
    all_are_seen, check, dropped, dropped_keys, is_leaf_file, is_reissued, lines, not_with_members, renews, signs_anew,
};
