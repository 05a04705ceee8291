//! Ten thousand resources: everything must cost in proportion, in plan and in apply.

use crate::lab::Lab;

fn layered(layers: usize, width: usize, revision: usize) -> String {
    let mut text = String::new();
    for layer in 0..layers {
        for n in 0..width {
            let needs = if layer == 0 {
                format!("\"{revision}\"")
            } else {
                let of = |i: usize| format!("fake_note.n{}_{}.output", layer - 1, (n + i) % width);
                format!("\"${{{}}}${{{}}}\" == \"\" ? 1 : 2", of(0), of(7))
            };
            text.push_str(&format!("resource \"fake_note\" \"n{layer}_{n}\" {{ input = {needs} }}\n"));
        }
    }
    text
}

#[test]
fn ten_thousand_in_layers() {
    let mut lab = Lab::new();
    let text = layered(100, 100, 1);
    let planned = lab.plan(&text);
    assert_eq!((planned.plan.steps.len(), planned.passes), (10_000, 1));
    assert!(lab.apply_plan(&planned).is_success());
    assert_eq!(lab.state().resources.len(), 10_000);
    assert!(lab.plan(&text).plan.is_empty());
}

#[test]
fn ten_thousand_that_need_ten_thousand() {
    let text = "resource \"fake_note\" \"a\" {\n count = 10000\n input = count.index\n}\n\
                resource \"fake_note\" \"b\" {\n count = 10000\n input = fake_note.a[count.index].id\n}";
    let mut lab = Lab::new();
    let planned = lab.plan(text);
    assert_eq!(planned.plan.steps.len(), 20_001);
    assert!(lab.apply_plan(&planned).is_success());
    assert!(lab.plan(text).plan.is_empty());
}
