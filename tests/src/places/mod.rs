//! One state in each place that a state can be in, on real servers: many who want it at once, and some who are killed over it.

mod kill;
mod race;

use crate::etcd_server::EtcdServer;
use crate::parts::tell;
use crate::project::Project;
use crate::s3::Server;

/// A place for one state, which no other test has.
pub(crate) struct Place {
    name: &'static str,
    /// The block `backend`.
    backend: String,
    _etcd: Option<EtcdServer>,
    _directory: Option<tempfile::TempDir>,
}

impl Place {
    /// A file too, whose lock goes with its holder.
    fn with_file(test: &str) -> Vec<Self> {
        let mut places = Self::all(test);
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("shared.tfstate");
        let backend = format!("  backend \"local\" {{\n    path = \"{}\"\n  }}\n", file.display());
        places.push(Self { name: "a file", backend, _etcd: None, _directory: Some(directory) });
        places
    }

    /// All servers that the machine carries; says what is skipped.
    fn all(test: &str) -> Vec<Self> {
        let of = |name, backend| Self { name, backend, _etcd: None, _directory: None };
        let mut places: Vec<_> =
            Server::all(test).into_iter().map(|server| of(server.name, server.backend(&server.key("places")))).collect();
        if let Some(etcd) = EtcdServer::start(test) {
            let backend = format!("  backend \"etcd\" {{\n    endpoints = [\"{}\"]\n    prefix    = \"karmaform/test\"\n  }}\n", etcd.url);
            places.push(Self { _etcd: Some(etcd), ..of("etcd", backend) });
        }
        match std::env::var("KARMAFORM_TEST_KUBECONFIG") {
            Ok(kubeconfig) => {
                let suffix = format!("places-{:016x}", fastrand::u64(..));
                places.push(of("Kubernetes", crate::kubernetes_state::backend(&suffix, &kubeconfig)));
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
