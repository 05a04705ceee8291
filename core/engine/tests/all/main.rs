//! The engine against a fake world, from configuration text to what is left in the world and in the state.

#![allow(unreachable_pub)]

mod apply;
mod checks;
mod composite;
mod conditions;
mod deferred;
mod exclude;
mod fake;
mod fake_cluster;
mod fake_data;
mod imports;
mod lab;
mod legs;
mod lifecycle;
mod moved;
mod observe;
mod plan;
mod pool;
mod properties;
mod removed;
mod scale;
mod wrong_composites;
