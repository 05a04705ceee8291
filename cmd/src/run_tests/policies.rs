//! `policy` blocks: what a plan may do, who may go on all the same, and what is left of that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use karmaform_engine::Runtime;
use karmaform_model::BoxFuture;
use serde_json::Value as Json;

use super::world::{CLUSTER, three_hosts};
use super::{Place, TWO};

fn policy(name: &str, rest: &str) -> String {
    format!("policy \"{name}\" {{\n  error_message = \"it says ${{plan.mode}}\"\n  {rest}\n}}\n")
}

/// A clock that somebody sets, in seconds.
struct Set(AtomicU64);

impl Runtime for Set {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst) * 1000
    }
    fn sleep(&self, _: u64) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

#[test]
fn a_plan_that_breaks_a_policy_is_not_applied() {
    let place = Place::new(&format!("{TWO}{}", policy("few", "description = \"no more than one\"\n  condition = plan.add < 2")));
    let done = place.check(&["plan", "-out=saved", "-report=json=plan.json"], 1);
    assert!(done.stdout.contains("\nPlan: 2 to add"), "the plan is shown: {done:#?}");
    let told = "The policy \"few\" (no more than one) says: it says normal";
    assert!(
        done.stderr.contains("Error: Policy is broken") && done.stderr.contains(told) && done.stderr.contains("main.kf.hcl:14"),
        "{done:#?}"
    );
    assert!(done.stderr.contains("-override-policy=few=REASON") && !place.path().join("saved").exists(), "{done:#?}");
    let report: Json = serde_json::from_str(&place.read("plan.json")).unwrap();
    let judged = &report["karmaform"]["policies"]["few"];
    assert_eq!(
        (&judged["enforcement"], &judged["passed"], &judged["message"]),
        (&"mandatory".into(), &false.into(), &"it says normal".into())
    );
    place.check(&["apply", "-auto-approve"], 1);
    place.check(&["state", "list"], 1);

    // With a reason, which stays.
    let done = place.check(&["apply", "-auto-approve", "-override-policy=few=both are needed"], 0);
    assert!(
        done.stdout.contains("Warning: Policy is overridden") && done.stdout.contains("It is overridden: both are needed"),
        "{done:#?}"
    );
    let history = place.check(&["state", "history"], 0).stdout;
    assert!(history.contains("OperationTypeApply, without few: both are needed"), "{history}");
    let history: Json = serde_json::from_str(&place.check(&["state", "history", "-json"], 0).stdout).unwrap();
    assert_eq!(history[0]["overrides"]["few"], "both are needed");
    // Nothing to do breaks nothing, and what was overridden once is not from then on.
    let done = place.check(&["plan"], 0);
    assert!(!format!("{done:?}").contains("olicy"), "{done:#?}");
    for (flag, why) in [("few", "form NAME=REASON"), ("few=", "form NAME=REASON"), ("fww=x", "Did you mean \"few\"?")] {
        let done = place.check(&["plan", &format!("-override-policy={flag}")], 1);
        assert!(done.stderr.contains(why), "{done:#?}");
    }
}

#[test]
fn advice_is_told_and_no_more() {
    let advice = policy("advice", "enforcement = \"advisory\"\n  condition = !contains(plan.changes[*].address, \"terraform_data.b\")");
    let place = Place::new(&format!("{TWO}{advice}"));
    let done = place.check(&["plan", "-out=saved", "-report=markdown=plan.md"], 0);
    assert!(done.stdout.contains("Warning: Policy is broken"), "{done:#?}");
    assert!(place.read("plan.md").contains("Policy is broken"));
    place.check(&["apply", "saved"], 0);
}

#[test]
fn a_saved_plan_is_judged_again_when_it_is_applied() {
    let clock = Arc::new(Set(AtomicU64::new(1_795_484_924)));
    let night = policy("night", "condition = plan.time.hour < 5 && plan.time.weekday == \"tuesday\"");
    let mut place = Place::new(&format!("{TWO}{night}"));
    place.clock = Arc::clone(&clock) as Arc<dyn Runtime>;
    place.check(&["plan", "-out=saved"], 0);
    clock.0.fetch_add(4 * 3600, Ordering::SeqCst);
    let done = place.check(&["apply", "saved"], 1);
    assert!(done.stderr.contains("The policy \"night\" says"), "{done:#?}");
    place.check(&["state", "list"], 1);
    // Who applies it may say so.
    place.check(&["apply", "saved", "-override-policy=nigth=x"], 1);
    let done = place.check(&["apply", "saved", "-override-policy=night=it must be"], 0);
    assert!(done.stdout.contains("It is overridden: it must be"), "{done:#?}");
    assert!(place.check(&["state", "history"], 0).stdout.contains("without night: it must be"));
    // What was said when it was planned counts, though it was not needed then.
    place.check(&["destroy", "-auto-approve", "-override-policy=night=x"], 0);
    clock.0.fetch_sub(4 * 3600, Ordering::SeqCst);
    place.check(&["plan", "-out=saved", "-override-policy=night=the fleet is down"], 0);
    clock.0.fetch_add(4 * 3600, Ordering::SeqCst);
    place.check(&["apply", "saved"], 0);
    assert!(place.check(&["state", "history"], 0).stdout.contains("without night: the fleet is down"));
    // Nothing is done, so nothing is recorded.
    place.check(&["apply", "-auto-approve", "-override-policy=night=for nothing"], 0);
    assert!(!place.check(&["state", "history"], 0).stdout.contains("for nothing"));
    assert!(place.check(&["refresh"], 1).stderr.contains("The policy \"night\""));
    place.check(&["refresh", "-override-policy=night=only to look"], 0);
}

#[test]
fn what_is_not_known_does_not_hold() {
    let known = "condition = alltrue([for c in plan.changes : c.after.id != \"\"])";
    let place = Place::new(&format!("{TWO}{}", policy("ids", known)));
    let done = place.check(&["plan"], 1);
    assert!(done.stderr.contains("known only when the plan has been applied"), "{done:#?}");
}

#[test]
fn a_wrong_policy_is_told_where_it_is_wrong() {
    for (condition, why) in [
        ("condition = plan.nothing == 1", "This object has no \"nothing\""),
        ("condition = terraform_data.a.id == \"\"", "A policy is about a plan"),
        ("condition = \"text\"", "true or false"),
        ("condition = true\n  enforcement = \"mandatry\"", "Did you mean \"mandatory\"?"),
        ("condition = true\n  severity = 1", "\"severity\""),
        ("", "\"condition\""),
    ] {
        let place = Place::new(&format!("{TWO}{}", policy("p", condition)));
        let done = place.check(&["plan"], 1);
        assert!(done.stderr.contains(why) && done.stderr.contains("main.kf.hcl:1"), "{condition}: {done:#?}");
    }
    let twice = policy("p", "condition = true");
    let done = Place::new(&format!("{twice}{twice}")).check(&["validate"], 1);
    assert!(format!("{done:?}").contains("Declared twice"), "{done:#?}");
}

#[test]
fn secrets_stay_secret() {
    let text = r#"
variable "password" {
  sensitive = true
  default   = "hunter22"
}
resource "terraform_data" "a" {
  input = var.password
}
policy "p" {
  condition     = plan.changes[0].after.input == "x"
  error_message = "it is ${plan.changes[0].after.input}"
}
"#;
    let done = Place::new(text).check(&["plan"], 1);
    assert!(done.stderr.contains("made of secrets") && !format!("{done:?}").contains("hunter22"), "{done:#?}");
}

#[test]
fn the_quorum_and_the_data_are_counted() {
    let world = three_hosts();
    let spare = "condition = alltrue([for c in values(plan.quorum) : c.spare >= 1])";
    let data = "condition = length(plan.data_loss) == 0";
    let policies = format!("{}{}", policy("spare", spare), policy("data", data));
    let place = Place::new(&format!("{CLUSTER}{policies}")).over(&world);
    // Nothing goes down where nothing is up.
    place.check(&["apply", "-auto-approve"], 0);
    place.write(
        "main.kf.hcl",
        &format!("{}{policies}", CLUSTER.replace("settings = {}", "settings = { quota-backend-bytes = \"8589934592\" }")),
    );
    let done = place.check(&["plan", "-report=json=plan.json"], 1);
    assert!(done.stderr.contains("The policy \"spare\"") && !done.stderr.contains("The policy \"data\""), "{done:#?}");
    let report: Json = serde_json::from_str(&place.read("plan.json")).unwrap();
    let margin = &report["karmaform"]["risks"]["etcd_cluster.main"]["margin"];
    assert_eq!((&margin["members"], &margin["up"], &margin["quorum"]), (&3.into(), &2.into(), &2.into()), "{margin}");
    let done = place.check(&["destroy", "-auto-approve", "-override-policy=spare=it goes"], 1);
    assert!(done.stderr.contains("The policy \"data\" says: it says destroy"), "{done:#?}");
    place.check(&["destroy", "-auto-approve", "-override-policy=spare=it goes", "-override-policy=data=there is a copy"], 0);
}
