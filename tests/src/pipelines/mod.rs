//! `docs/pipelines`: what stands there runs. Scripts are taken out of the files as they are and run in a scratch folder with what the service would give;
//! GitLab's file by a program that reads it as GitLab does, and GitHub's by GitHub's own packages, where these can be had.

mod drift;
mod flags;
mod github;
mod gitlab;
mod kubernetes;
mod scratch;
mod webhook;
mod workflow;
