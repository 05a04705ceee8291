//! Stands in for Karmada's own programs, which no registry holds that tests could reach: by its name it is one of them. It serves what that
//! one serves, as far as a control plane needs it, and does none of the work. Where the real one would be lenient or fail late, this one
//! looks hard at what it is given (flags, files, certificates, rights) and ends with one line that says what is wrong.

mod apis;
mod certificates;
mod component;
mod etcd;
mod files;
mod flags;
mod karmada;
mod serve;
mod webhook;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use component::Component;
use flags::Flags;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> ExitCode {
    let mut words = std::env::args();
    let path = words.next().unwrap_or_default();
    let program = path.rsplit('/').next().unwrap_or_default();
    let Some(component) = Component::named(program) else {
        return fail(program, "this program stands in for Karmada's; its name says for which");
    };
    let words: Vec<String> = words.collect();
    // As with the real ones, all flags before it must be good.
    if let Some(flags) = words.strip_suffix(&["--help".to_owned()][..]) {
        return match Flags::read(component, flags.to_vec()) {
            Ok(_) => ExitCode::SUCCESS,
            Err(why) => fail(program, &why),
        };
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(program, &format!("no runtime: {error}")),
    };
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    runtime.block_on(async {
        // From the start on: in a container nobody else ends this process.
        let (Ok(mut asked), Ok(mut interrupted)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
            return fail(program, "no signals");
        };
        tokio::select! {
            why = run(component, words.into_iter()) => fail(program, &why),
            _ = asked.recv() => ExitCode::SUCCESS,
            _ = interrupted.recv() => ExitCode::SUCCESS,
        }
    })
}

/// Looks at everything, then serves without end; returns what is wrong.
async fn run(component: Component, words: impl Iterator<Item = String>) -> String {
    let served = async {
        let flags = Flags::read(component, words)?;
        let given = files::Given::read(component, &flags).await?;
        if let Some(etcd) = &given.etcd {
            etcd::reach(etcd).await?;
        }
        karmada::review(component, &flags, &given).await?;
        say(component.program(), "all is as it should be; serving");
        let alive = Arc::new(AtomicBool::new(component != Component::Search));
        if component == Component::Search {
            karmada::lists_what_it_serves(&given, Arc::clone(&alive))?;
        }
        serve::serve(component, &flags, given.serving, alive).await
    };
    match served.await {
        Ok(never) => match never {},
        Err(why) => why,
    }
}

/// One line on the standard error.
fn say(program: &str, words: &str) {
    let _ = writeln!(std::io::stderr(), "{program}: {}", words.replace('\n', " "));
}

fn fail(program: &str, why: &str) -> ExitCode {
    say(program, why);
    ExitCode::FAILURE
}
