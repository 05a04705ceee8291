//! Against a real API server: runs where `KARMAFORM_TEST_KUBECONFIG` and `KARMAFORM_TEST_KUBECTL` are set, as `tests/lab/kube.sh up` does.

mod archive;
mod cluster;
mod fields;
mod forward;
mod lab;
mod object;
mod pod;
mod pods;
mod preflight;
mod service;
mod through;
mod wait;
mod ways;
