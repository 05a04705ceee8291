//! `version`: which tool this is.

use serde_json::json;

use crate::app::{App, Ended, TERRAFORM, VERSION};
use crate::flags::boolean;

/// Arguments of `version`.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Args {
    /// As JSON
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    json: bool,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let platform = format!("{}_{architecture}", std::env::consts::OS);
    if args.json {
        let version = json!({
            "terraform_version": TERRAFORM,
            "karmaform_version": VERSION,
            "platform": platform,
            "provider_selections": {},
            "terraform_outdated": false,
        });
        app.output.print(&format!("{version:#}\n"));
    } else {
        // Tools that call it in place of Terraform look for its name and compare its version.
        let text = if app.in_automation() {
            format!("Terraform v{TERRAFORM}\non {platform}\n+ karmaform v{VERSION}\n")
        } else {
            format!("karmaform v{VERSION}\non {platform}\n")
        };
        app.output.print(&text);
    }
    Ok(0)
}
