//! `console`: try expressions against the configuration and the state.

use karmaform_lang::{Config, Evaluator, Moment, Resolver, gives_type, is_unfinished, render};
use karmaform_model::{Address, Catalog, Snapshot, Type, Value};

use crate::app::{App, Ended};
use crate::backend::open_backend;
use crate::flags::{StateFlags, VariableFlags};
use crate::project::load_if_any;
use crate::reading::without_missing_variables;
use crate::session::Session;
use crate::ui::json::state::attributes;

/// What `help` says.
const HELP: &str = "Type an expression to see its value. It may refer to the variables and locals of the configuration,\n\
    and to resources, which are shown as the state has them: terraform_data.a.id\n\n\
    While a bracket or a heredoc is open, the expression goes on with the next line.\n\n\
    \"exit\" and \"quit\" end it, and so do Ctrl-C and Ctrl-D.\n";

/// Arguments of `console`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    variables: VariableFlags,
    #[command(flatten)]
    state: StateFlags,
}

/// Instances as the state has them.
struct FromState<'a> {
    snapshot: &'a Snapshot,
    registry: &'a Catalog,
}

impl Resolver for FromState<'_> {
    fn instance(&self, address: &Address) -> Value {
        match self.snapshot.resources.get(address) {
            Some(resource) => attributes(address, resource, self.registry).into(),
            None => Value::unknown(Type::Any),
        }
    }
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let mut project = load_if_any(app, &args.variables, false)?;
    // A variable that nobody gives a value is not known yet; all else can be asked for.
    project.diagnostics = without_missing_variables(&project);
    let mut project = project.readable()?;
    let open = open_backend(app, &project.config.settings, args.state.state.as_deref())?;
    let session = Session::shared(app, open)?;
    let notes = session.notes().clone();
    app.show(&notes);
    project.config.stand_as(session.snapshot.resources.keys());
    let is_interactive = app.output.terminal.stdin && app.output.terminal.stdout;
    let mut code = 0;
    let mut text = String::new();
    loop {
        if is_interactive {
            app.output.print(if text.is_empty() { "> " } else { "  " });
        }
        let Some(line) = app.output.read_line() else {
            // What was begun and never ended is a mistake, and must not be passed over.
            if !text.trim().is_empty() {
                code |= evaluate(app, &project.config, &session.snapshot, text.trim());
            }
            break;
        };
        if text.is_empty() && matches!(line.trim(), "exit" | "quit") {
            break;
        }
        if text.is_empty() && line.trim() == "help" {
            app.output.print(HELP);
            continue;
        }
        text.push_str(&line);
        if is_unfinished(&text) {
            text.push('\n');
            continue;
        }
        let expression = std::mem::take(&mut text);
        if !expression.trim().is_empty() {
            code |= evaluate(app, &project.config, &session.snapshot, expression.trim());
        }
    }
    Ok(if is_interactive { 0 } else { code })
}

fn evaluate(app: &mut App, config: &Config, snapshot: &Snapshot, expression: &str) -> i32 {
    let registry = std::sync::Arc::clone(&app.wiring.registry);
    let resolver = FromState { snapshot, registry: &registry };
    // Nothing is planned here, so there is no apply to wait for: the time is now, and each expression has identifiers of its own.
    let moment = Moment { now: app.now_seconds(), seed: (app.wiring.ids)() };
    let (value, diagnostics) = Evaluator::new(config, &resolver).at(&moment).expression(expression);
    app.show(&diagnostics);
    if diagnostics.has_errors() {
        return 1;
    }
    // The words of `type` are for people: no quotes, and no heredoc around several lines.
    let words = value.as_str().filter(|_| !value.all_marks().any() && gives_type(expression));
    app.output.print(&format!("{}\n", words.map_or_else(|| render(&value), str::to_owned)));
    0
}
