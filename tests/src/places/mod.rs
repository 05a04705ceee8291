//! One state in each place that a state can be in, on real servers: many who want it at once, some who are killed over it, and
//! lines on which everything goes wrong.

mod faults;
mod kill;
mod race;

use std::any::Any;

use crate::etcd_server::EtcdServer;
use crate::http_state::gitlab::GitLab;
use crate::parts::tell;
use crate::project::Project;
use crate::s3::Server;

/// A place for one state, which no other test has.
pub(crate) struct Place {
    name: &'static str,
    /// The block `backend`.
    backend: String,
    /// Its lock has to be renewed, and can be taken over from the dead.
    has_lease: bool,
    /// What a refused run must say of the holder, besides its id.
    holder: &'static str,
    /// The id of the lock that is held, where the server tells.
    held: Option<Box<dyn Fn() -> Option<String>>>,
    /// What goes when it goes.
    _server: Option<Box<dyn Any>>,
}

impl Place {
    fn of(name: &'static str, backend: String) -> Self {
        Self { name, backend, has_lease: true, holder: "Who:", held: None, _server: None }
    }

    /// A server that knows locks but no leases too.
    fn every(test: &str) -> Vec<Self> {
        let mut places = Self::with_file(test);
        let server = GitLab::start();
        let backend = server.backend("places");
        let held = move || server.states().get("places").and_then(|kept| kept.lock.clone());
        let holder = "Who:       me@here";
        places.push(Self { has_lease: false, holder, held: Some(Box::new(held)), ..Self::of("GitLab", backend) });
        places
    }

    /// A file too, whose lock goes with its holder.
    fn with_file(test: &str) -> Vec<Self> {
        let mut places = Self::all(test);
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("shared.tfstate");
        let backend = format!("  backend \"local\" {{\n    path = \"{}\"\n  }}\n", file.display());
        places.push(Self { has_lease: false, _server: Some(Box::new(directory)), ..Self::of("a file", backend) });
        places
    }

    /// All servers that the machine carries; says what is skipped.
    fn all(test: &str) -> Vec<Self> {
        let mut places: Vec<_> =
            Server::all(test).into_iter().map(|server| Self::of(server.name, server.backend(&server.key("places")))).collect();
        if let Some(etcd) = EtcdServer::start(test) {
            let backend = format!("  backend \"etcd\" {{\n    endpoints = [\"{}\"]\n    prefix    = \"karmaform/test\"\n  }}\n", etcd.url);
            places.push(Self { _server: Some(Box::new(etcd)), ..Self::of("etcd", backend) });
        }
        match std::env::var("KARMAFORM_TEST_KUBECONFIG") {
            Ok(kubeconfig) => {
                let suffix = format!("places-{:016x}", fastrand::u64(..));
                places.push(Self::of("Kubernetes", crate::kubernetes_state::backend(&suffix, &kubeconfig)));
            }
            Err(_) => tell(&format!("SKIPPED (no Kubernetes): {test}")),
        }
        places
    }

    /// A project in a directory of its own, as pipelines have it, with this state.
    fn project(&self) -> Project {
        let project = Project::new();
        configure(&project, &self.backend, 3);
        project
    }
}

/// So many things, and an output.
pub(crate) fn configure(project: &Project, backend: &str, count: usize) {
    let text = format!(
        "karmaform {{\n{backend}}}\n\nresource \"terraform_data\" \"thing\" {{\n  count = {count}\n  input = \"n${{count.index}}\"\n}}\n\n\
         output \"things\" {{\n  value = [for t in terraform_data.thing : t.output]\n}}\n"
    );
    project.write("main.kf.hcl", &text);
}

/// The id of the lock, as a run that was refused tells it.
pub(crate) fn lock_id(refused: &str) -> String {
    refused.split("force-unlock ").nth(1).and_then(|t| t.split_whitespace().next()).expect("an id").to_owned()
}
