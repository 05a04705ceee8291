//! Turns points and what must come before what into numbered steps. Knows no resource: a point is a step, or nothing but a meeting place.
//!
//! Places without a step stay transparent: from "a before nothing" and "nothing before b" follows "a before b". Where many steps meet
//! before many others, one `Join` step stands for all pairs, so that a layer of 10,000 costs 10,000 and not their square.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use karmaform_model::{Step, StepKind};

use crate::graph::components;

/// How much an ordering weighs when not all can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// Better so; the first to go if it closes a cycle.
    Soft,
    /// Between a composite's child and what the whole composite needs: goes if the composite's own order does not allow it.
    Loose,
    /// Should be so; goes if nothing weaker closes the cycle.
    Firm,
    /// Must be so; a cycle of these is an error.
    Hard,
}

/// Points in the making.
#[derive(Default)]
pub(crate) struct Points {
    steps: Vec<Option<StepKind>>,
    edges: Vec<(usize, usize, Strength)>,
}

impl Points {
    /// A meeting place.
    pub(crate) fn place(&mut self) -> usize {
        self.steps.push(None);
        self.steps.len() - 1
    }

    /// A step.
    pub(crate) fn step(&mut self, kind: StepKind) -> usize {
        self.steps.push(Some(kind));
        self.steps.len() - 1
    }

    /// Makes a step of a place.
    pub(crate) fn set(&mut self, point: usize, kind: StepKind) {
        self.steps[point] = Some(kind);
    }

    /// True if a step happens at this point.
    pub(crate) fn is_step(&self, point: usize) -> bool {
        self.steps[point].is_some()
    }

    /// `first` has ended before `second` starts.
    pub(crate) fn before(&mut self, first: usize, second: usize) {
        self.edges.push((first, second, Strength::Hard));
    }

    /// The same, if it can be kept.
    pub(crate) fn rather_before(&mut self, first: usize, second: usize, strength: Strength) {
        self.edges.push((first, second, strength));
    }
}

/// The steps, each after steps with lower numbers only. Points that were made first come first where the orderings leave a choice.
///
/// # Errors
/// The steps of a cycle of hard orderings.
pub(crate) fn order(mut points: Points) -> Result<Vec<Step>, Vec<StepKind>> {
    for weakest in [Strength::Soft, Strength::Loose, Strength::Firm] {
        let cycles = cycles(&points);
        if cycles.is_empty() {
            break;
        }
        let mut component = vec![usize::MAX; points.steps.len()];
        for (number, members) in cycles.iter().enumerate() {
            for &m in members {
                component[m] = number;
            }
        }
        points.edges.retain(|(a, b, strength)| *strength > weakest || component[*a] == usize::MAX || component[*a] != component[*b]);
    }
    if let Some(cycle) = cycles(&points).first() {
        return Err(cycle.iter().filter_map(|p| points.steps[*p].clone()).collect());
    }
    Ok(number(points))
}

fn cycles(points: &Points) -> Vec<Vec<usize>> {
    components(points.steps.len(), points.edges.iter().map(|(a, b, _)| (*a, *b)))
}

fn number(points: Points) -> Vec<Step> {
    let Points { steps: kinds, edges } = points;
    let count = kinds.len();
    let (mut successors, mut waiting) = (vec![Vec::new(); count], vec![0_usize; count]);
    for &(a, b, _) in &edges {
        successors[a].push(b);
        waiting[b] += 1;
    }
    let sequence = sequence(&successors, waiting);
    let useful = useful(&kinds, &successors, &sequence);
    // What each point has to wait for, handed on along useful edges.
    let mut pending: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut steps: Vec<Step> = Vec::new();
    let mut kinds = kinds;
    for point in sequence {
        if !useful[point] {
            continue;
        }
        let mut after = std::mem::take(&mut pending[point]);
        let targets: BTreeSet<usize> = successors[point].iter().copied().filter(|s| useful[*s]).collect();
        let handed = match kinds[point].take() {
            Some(kind) => push(&mut steps, kind, after),
            None => {
                if targets.len() > 1 {
                    after.sort_unstable();
                    after.dedup();
                }
                if targets.len() > 1 && after.len() > 1 { push(&mut steps, StepKind::Join, after) } else { after }
            }
        };
        hand_on(&mut pending, &targets, handed);
    }
    steps
}

fn push(steps: &mut Vec<Step>, kind: StepKind, mut after: Vec<usize>) -> Vec<usize> {
    after.sort_unstable();
    after.dedup();
    steps.push(Step { kind, after });
    vec![steps.len() - 1]
}

/// The longer list is kept and the shorter added to it, so that a long chain of places does not copy its list at each link.
fn hand_on(pending: &mut [Vec<usize>], targets: &BTreeSet<usize>, handed: Vec<usize>) {
    if let (Some(&only), 1) = (targets.first(), targets.len()) {
        let there = std::mem::take(&mut pending[only]);
        let (mut long, short) = if there.len() < handed.len() { (handed, there) } else { (there, handed) };
        long.extend(short);
        pending[only] = long;
        return;
    }
    for &target in targets {
        pending[target].extend(&handed);
    }
}

fn sequence(successors: &[Vec<usize>], mut waiting: Vec<usize>) -> Vec<usize> {
    let mut ready: BinaryHeap<Reverse<usize>> =
        waiting.iter().enumerate().filter(|(_, n)| **n == 0).map(|(point, _)| Reverse(point)).collect();
    let mut sequence = Vec::with_capacity(waiting.len());
    while let Some(Reverse(point)) = ready.pop() {
        sequence.push(point);
        for &next in &successors[point] {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    sequence
}

/// A point is useful if it is a step or leads to one.
fn useful(kinds: &[Option<StepKind>], successors: &[Vec<usize>], sequence: &[usize]) -> Vec<bool> {
    let mut useful = vec![false; kinds.len()];
    for &point in sequence.iter().rev() {
        useful[point] = kinds[point].is_some() || successors[point].iter().any(|s| useful[*s]);
    }
    useful
}

#[cfg(test)]
mod tests {
    use karmaform_model::Action;

    use super::*;

    fn step(n: usize) -> StepKind {
        StepKind::Change { resource: n, part: Action::Create }
    }

    /// Points `s0 s1 ...` are steps, all others places; the result as `id:what<after,after`.
    fn check(steps: &[usize], count: usize, edges: &[(usize, usize, Strength)], expected: &str) {
        let mut points = Points::default();
        for point in 0..count {
            if steps.contains(&point) {
                points.step(step(point))
            } else {
                points.place()
            };
        }
        points.edges.extend(edges);
        let text = match order(points) {
            Err(cycle) => format!("cycle of {}", cycle.len()),
            Ok(steps) => {
                let text = |(id, s): (usize, &Step)| {
                    let what = if let StepKind::Change { resource, .. } = s.kind { resource.to_string() } else { "join".into() };
                    format!("{id}:{what}<{}", s.after.iter().map(usize::to_string).collect::<Vec<_>>().join(","))
                };
                steps.iter().enumerate().map(text).collect::<Vec<_>>().join(" ")
            }
        };
        assert_eq!(text, expected, "{edges:?}");
    }

    use Strength::{Firm, Hard, Soft};

    #[test]
    fn places_are_transparent() {
        check(&[0, 2], 3, &[(2, 1, Hard), (1, 0, Hard)], "0:2< 1:0<0");
        check(&[0, 3], 4, &[(0, 1, Hard), (1, 2, Hard), (2, 3, Hard), (0, 3, Hard)], "0:0< 1:3<0");
        check(&[0], 3, &[(0, 1, Hard), (1, 2, Hard)], "0:0<");
    }

    #[test]
    fn many_to_many_meet_in_one_join() {
        check(&[0, 1, 3, 4], 5, &[(0, 2, Hard), (1, 2, Hard), (2, 3, Hard), (2, 4, Hard)], "0:0< 1:1< 2:join<0,1 3:3<2 4:4<2");
        check(&[0, 1, 3], 4, &[(0, 2, Hard), (1, 2, Hard), (2, 3, Hard)], "0:0< 1:1< 2:3<0,1");
        check(&[0, 3, 4], 5, &[(0, 2, Hard), (1, 2, Hard), (2, 3, Hard), (2, 4, Hard)], "0:0< 1:3<0 2:4<0");
    }

    #[test]
    fn weak_orderings_give_way_and_hard_cycles_are_refused() {
        check(&[0, 1], 2, &[(0, 1, Hard), (1, 0, Soft)], "0:0< 1:1<0");
        check(&[0, 1], 2, &[(1, 0, Firm), (0, 1, Soft)], "0:1< 1:0<0");
        check(&[0, 1], 2, &[(1, 0, Hard), (0, 1, Firm)], "0:1< 1:0<0");
        check(&[0, 1, 2], 3, &[(0, 1, Hard), (1, 0, Hard), (1, 2, Hard)], "cycle of 2");
        check(&[0], 1, &[(0, 0, Hard)], "cycle of 1");
    }

    #[test]
    fn wide_layers_stay_linear() {
        let mut points = Points::default();
        let meet = points.place();
        for n in 0..20_000 {
            let point = points.step(step(n));
            if n < 10_000 { points.before(point, meet) } else { points.before(meet, point) }
        }
        let steps = order(points).unwrap();
        assert_eq!(steps.len(), 20_001);
        assert_eq!(steps.iter().map(|s| s.after.len()).sum::<usize>(), 20_000);
    }
}
