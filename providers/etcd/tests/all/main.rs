//! Clusters without a host: in one program, for each one more is linked anew.

mod authority;
mod by_hand;
mod care;
mod choreography;
mod expansion;
mod hosts;
mod kubernetes;
mod kubernetes_expansion;
mod kubernetes_members;
mod kubernetes_restoring;
mod kubernetes_upgrades;
mod kubernetes_volumes;
mod lab;
mod membership;
mod model;
mod moving;
mod pods;
mod pods_lab;
mod prefix;
mod real;
mod restoring;
mod rotating;
mod steps;
mod switching;
mod upgrades;
