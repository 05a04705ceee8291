//! `check` blocks with a data source of their own: when that is read.

use karmaform_model::CheckStatus;

use crate::lab::{Lab, changes, show};

fn text(key: &str) -> String {
    format!(
        r#"
        resource "fake_local" "a" {{ name = "a" }}
        check "c" {{
          data "fake_lookup" "x" {{ key = "{key}" }}
          assert {{
            condition     = data.fake_lookup.x.value == "value of {key}"
            error_message = "another"
          }}
        }}"#
    )
}

const READ: &str = "+ fake_local.a\n<= data.fake_lookup.x ReadBecauseCheckNested\n\
                    0: Create fake_local.a after []\n1: Read data.fake_lookup.x after [0]";

#[test]
fn what_a_check_reads_is_read_again_at_the_end_of_an_apply() {
    let mut lab = Lab::new();
    let planned = lab.plan(&text("k"));
    assert_eq!(show(&planned.plan), READ);
    assert_eq!(planned.plan.checks[0].status, CheckStatus::Pass, "it is judged with the plan all the same");
    lab.world.lock().reads.clear();
    assert!(lab.apply_plan(&planned).is_success());
    assert_eq!(lab.world.lock().reads, ["k"]);
    assert_eq!(lab.state().checks[0].status, CheckStatus::Pass);
    // Where nothing is done, nothing is read again.
    assert_eq!(show(&lab.plan(&text("k")).plan), "");
}

#[test]
fn what_could_not_be_read_is_tried_again() {
    let mut lab = Lab::new();
    let planned = lab.plan(&text("broken"));
    assert_eq!(show(&planned.plan), READ);
    lab.world.lock().reads.clear();
    let outcome = lab.apply_plan(&planned);
    assert!(outcome.is_success(), "a check stops nothing");
    assert_eq!(lab.world.lock().reads, ["broken"]);
    let told: Vec<_> = outcome.diagnostics.iter().map(|d| (d.summary.as_str(), d.is_error())).collect();
    assert_eq!(told, [("Lookup failed", false)]);
    assert_eq!(lab.state().checks[0].status, CheckStatus::Fail);
    // It has no place in a plan that does nothing.
    let again = lab.plan(&text("broken"));
    assert_eq!((changes(&again.plan).as_str(), again.plan.steps.len(), again.plan.resources.len()), ("", 0, 1));
}
