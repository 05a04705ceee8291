//! `output`: the outputs of the last apply.

use karmaform_model::{Diagnostic, Kind, to_json};

use crate::app::{App, Ended};
use crate::flags::{PlaceFlags, boolean};
use crate::reading::current_state;
use crate::ui::json::state::outputs;
use crate::ui::json::{indented, line};
use crate::ui::state::outputs_text;

/// Arguments of `output`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Only this output
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// As JSON, sensitive values in clear
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    json: bool,
    /// The bare text, sensitive values in clear
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    raw: bool,
    #[command(flatten)]
    state: PlaceFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    if args.json && args.raw {
        return Err(Diagnostic::error("Flags that don't go together", "-json and -raw ask for different forms.").into());
    }
    let all = current_state(app, &args.state)?.map(|s| s.outputs).unwrap_or_default();
    let Some(name) = &args.name else {
        if args.raw {
            return Err(Diagnostic::error("Output name required", "-raw gives the bare text of one output, so it needs to know which.")
                .with_hint("Name it: karmaform output -raw NAME")
                .into());
        }
        if args.json {
            app.output.print(&indented(&outputs(&all)));
        } else if all.is_empty() {
            app.show(&nothing().into());
        } else {
            let text = outputs_text(&all, &app.theme);
            app.output.print(&text);
        }
        return Ok(0);
    };
    // As Terraform, which says no more of one than of all where there are none.
    if all.is_empty() && !args.json {
        app.show(&nothing().into());
        return Ok(0);
    }
    let Some(output) = all.get(name) else {
        let detail = format!("The state has no output \"{name}\". Outputs are written by apply; one that was just added is not there yet.");
        let known: Vec<_> = all.keys().map(String::as_str).collect();
        let diagnostic = Diagnostic::error("Output not found", detail);
        let hint =
            if known.is_empty() { "The state has no outputs at all.".to_owned() } else { format!("There are: {}.", known.join(", ")) };
        return Err(diagnostic.with_hint(hint).into());
    };
    if args.json {
        app.output.print(&line(&to_json(&output.value)));
    } else if args.raw {
        let text = match &output.value.kind {
            Kind::String(text) => text.clone(),
            Kind::Number(number) => number.to_string(),
            Kind::Bool(b) => b.to_string(),
            _ => {
                let detail =
                    format!("-raw gives strings, numbers and bools; the output \"{name}\" is of the type {}.", output.value.ty().word());
                return Err(Diagnostic::error("Unsupported value for raw output", detail).with_hint("Use -json.").into());
            }
        };
        app.output.print(&text);
    } else {
        // Whoever names a sensitive output wants to see it, as with Terraform.
        let value = output.value.clone().without_marks();
        app.output.print(&format!("{}\n", karmaform_lang::render(&value)));
    }
    Ok(0)
}

fn nothing() -> Diagnostic {
    Diagnostic::warning(
        "No outputs found",
        "The state has no outputs: either the configuration declares none, or it was not applied since it does.",
    )
}
