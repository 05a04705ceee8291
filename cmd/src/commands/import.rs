//! `import`: one thing that is there is taken into the state at once, as it is. Nothing outside is touched.

use karmaform_engine::{Options, TARGETING, relocate, taken_over};
use karmaform_model::{Address, Diagnostic, Status};

use crate::app::{App, Ended, Stop, VERSION};
use crate::backend::open_backend;
use crate::bundle::Use;
use crate::expanding::expand;
use crate::flags::WritingFlags;
use crate::planning::{addresses, plan, pool};
use crate::project::{Project, load_directory};
use crate::session::Session;
use crate::ui::style::Tone;

/// Arguments of `import`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The instance of a resource that it becomes
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// What names the thing, in the words of its type
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    with: WritingFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let address = addresses("ADDRESS", std::slice::from_ref(&args.address))?.into_iter().next();
    let Some(address) = address.filter(|a| !a.is_module()) else {
        let detail = "What is imported becomes one instance of a resource, and this is the address of a whole module.";
        return Err(Diagnostic::error("Invalid address", detail).with_hint("Write module.NAME.TYPE.NAME.").into());
    };
    let ask = app.wants_input(args.with.input);
    let mut project = load_directory(app, &args.with.variables, ask)?.readable()?;
    project.config.import_by_hand(&address, &args.id)?;
    let open = open_backend(app, &project.config.settings, args.with.state.state.as_deref())?;
    let mut session = Session::exclusive(app, open, "import", &args.with.lock)?;
    let imported = import(app, args, &mut project, &mut session, &address);
    session.close(app);
    imported?;
    Ok(0)
}

fn import(app: &mut App, args: &Args, project: &mut Project, session: &mut Session, address: &Address) -> Result<(), Stop> {
    let notes = session.notes().clone();
    app.show(&notes);
    // What an earlier run began and did not end is not known to be there.
    if session.snapshot.resources.get(address).is_some_and(|r| r.status != Status::Unfinished) {
        let detail = format!("{address} is in the state already, so it is taken over.");
        return Err(Diagnostic::error("Resource already managed", detail)
            .at(address)
            .with_hint(format!("If it is another thing, forget the one that is there first: state rm '{address}'."))
            .into());
    }
    if !relocate(&project.config, &session.snapshot).0.moved.is_empty() {
        let detail = "By what the configuration says, things in the state have other addresses, which is not applied yet.";
        return Err(Diagnostic::error("Moves before an import", detail).with_hint("Run apply first.").into());
    }
    let options = Options {
        targets: vec![address.clone()],
        takes_along: false,
        parallelism: usize::from(args.with.parallelism.most),
        now: app.now_seconds(),
        tool_version: VERSION.to_owned(),
        ..Options::default()
    };
    let pool = pool(app, project, Use::Perhaps)?;
    expand(app, project, &session.snapshot, &pool, &options)?;
    project.config.import_by_hand(address, &args.id)?;
    let planned = plan(app, project, &session.snapshot, &pool, &options).map_err(untargeted)?.plan;
    let met = planned.warnings.iter().filter(|w| w.address.as_ref() == Some(address)).cloned().collect();
    app.show_warnings(&met);
    let Some(resource) = taken_over(&planned, address, &app.wiring.registry) else {
        let is_about_it = |d: &&Diagnostic| d.address.as_ref().is_some_and(|open| open.block() == address.block());
        let (detail, hint, span) = match project.config.open.iter().find(is_about_it) {
            Some(open) => (
                format!("Whether there is to be a {address} is known only when what that depends on has been applied."),
                "Apply that first, with -target.",
                open.span,
            ),
            None => (format!("{address} could not be looked at."), "Run plan to see what stands in the way.", None),
        };
        return Err(Diagnostic::error("Nothing was imported", detail).at(address).with_span(span).with_hint(hint).into());
    };
    session.begin(app)?;
    let mut next = session.snapshot.clone();
    next.resources.insert(address.clone(), resource);
    let serial = session.replace(app, next)?;
    let is_alike = planned.resources.iter().any(|r| r.address == *address && r.is_import_alone());
    let then = if is_alike { "It is as the configuration says." } else { "The configuration says something else of it: run plan." };
    let done = app.theme.strong(Tone::Add, &format!("{address}: imported \"{}\".", args.id));
    app.say(&format!("{done} {then}\nThe state was written, serial {serial}.\n"));
    Ok(())
}

/// Nobody asked for a target: that only this is looked at goes without saying.
fn untargeted(stop: Stop) -> Stop {
    match stop {
        Stop::Because(all) => Stop::Because(all.into_iter().filter(|d| d.summary != TARGETING).collect()),
        stop @ Stop::Code(_) => stop,
    }
}
