//! Every resource type on real hosts. Runs when KARMAFORM_TEST_HOSTS is set; says loudly that it is skipped otherwise.
//!
//! - `KARMAFORM_TEST_HOSTS`: `name=address,name=address`; hosts with systemd that may be changed at will, root logs in with the key
//! - `KARMAFORM_TEST_KEY`: a private key file; `KARMAFORM_TEST_KNOWN_HOSTS`: a file with the hosts' keys
//! - `KARMAFORM_TEST_BLACKHOLE`: an address that swallows everything (optional)

mod artifact;
mod command;
mod connecting;
mod directory;
mod disk;
mod file;
mod files;
mod forward;
mod hosts_entries;
mod images;
mod lab;
mod losing;
mod many;
mod package;
mod systemd_unit;
mod unused;
mod user;
