//! Waiting by an expression.

use std::thread;
use std::time::{Duration, Instant};

use karmaform_model::{Action, Object};
use serde_json::json;

use crate::lab::{Lab, lab, object};

fn until(lab: &Lab, name: &str, expression: &str, seconds: i64) -> Object {
    let mut wanted = lab.wanted(&lab.map(name, json!({ "k": "1" })));
    wanted.insert("wait".into(), object([("expression", expression.into())]).into());
    wanted.insert("timeout".into(), seconds.into());
    wanted
}

#[test]
fn an_expression_is_waited_for() {
    let Some(lab) = lab("expression") else { return };
    lab.create(&until(&lab, "so", "object.data.k == '1' && metadata.name == 'so'", 10));
    // Somebody else makes it so, later: what is not there is not yet.
    let wanted = until(&lab, "later", "data.ready == 'yes'", 30);
    let change = lab.plan(None, Some(&wanted)).unwrap();
    assert_eq!(change.action(), Action::Create);
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            while begin.elapsed() < Duration::from_secs(2) || !lab.has("configmap", "later") {
                thread::sleep(Duration::from_millis(100));
            }
            lab.kubectl(&["-n", &lab.namespace, "patch", "configmap", "later", "--type=merge", "-p", r#"{"data":{"ready":"yes"}}"#]);
        });
        lab.apply(&change).unwrap();
    });
    assert!(begin.elapsed() >= Duration::from_secs(2), "{:?}", begin.elapsed());

    let never = lab.plan(None, Some(&until(&lab, "never", "size(data) == 2 || data.gone == 'x'", 1))).unwrap();
    let error = lab.apply(&never).unwrap_err();
    assert_eq!(error.summary, "Waited in vain");
    assert!(error.detail.contains("`size(data) == 2 || data.gone == 'x'` can't be told: there is no `gone`"), "{}", error.detail);

    let error = lab.plan(None, Some(&until(&lab, "wrong", "data.k ==", 1))).unwrap_err();
    assert_eq!(error.summary, "Unreadable expression");
    let neither = lab.plan(None, Some(&until(&lab, "neither", "data.k", 1))).unwrap();
    assert_eq!(lab.apply(&neither).unwrap_err().summary, "Expression is neither true nor false");
}
