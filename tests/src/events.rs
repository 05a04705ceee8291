//! Whether the events of an apply came in a legal order: what steno calls a transition check, here over the whole log.

use std::collections::BTreeMap;

use karmaform_model::{Event, EventKind, Plan};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Running,
    Succeeded,
    Failed,
    Skipped,
}

/// Fails if a step started twice, ended without having started, or started before what it comes after had succeeded.
#[track_caller]
pub(crate) fn legal(plan: &Plan, events: &[Event]) {
    let mut stages: BTreeMap<usize, Stage> = BTreeMap::new();
    for event in events {
        let next = match (&event.kind, stages.get(&event.step)) {
            (EventKind::Started, None) => {
                for before in &plan.steps[event.step].after {
                    let stage = stages.get(before);
                    assert!(
                        !matches!(stage, Some(Stage::Running | Stage::Failed | Stage::Skipped)),
                        "step {} started after {stage:?} of step {before}",
                        event.step
                    );
                }
                Stage::Running
            }
            (EventKind::Waiting(_), Some(Stage::Running)) => Stage::Running,
            (EventKind::Succeeded(_), Some(Stage::Running)) => Stage::Succeeded,
            (EventKind::Failed(_), Some(Stage::Running)) => Stage::Failed,
            (EventKind::Skipped(_), None) => Stage::Skipped,
            (kind, stage) => panic!("step {}: {kind:?} in stage {stage:?}", event.step),
        };
        stages.insert(event.step, next);
    }
    let running: Vec<_> = stages.iter().filter(|(_, s)| **s == Stage::Running).collect();
    assert!(running.is_empty(), "never heard of again: {running:?}");
}
