//! Looks at everything, with nothing in hand that could change it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karmaform_engine::{
    Asked, Beside, Doubts, Options, Pool, Relocated, Runtime, World, graph, observe, plan_and_doubts, strays, without_deferred,
};
use karmaform_lang::Config;
use karmaform_model::{Address, Catalog, Diagnostic, Diagnostics, Object, Plan, Severity};

use crate::profile::Phase;

/// All that it takes to look.
pub(crate) struct Sight<'a> {
    /// Providers, for who only looks.
    pub(crate) catalog: Arc<Catalog>,
    /// The configuration.
    pub(crate) config: &'a Config,
    /// The state as it was read, with what the configuration says has moved.
    pub(crate) state: &'a Relocated<'a>,
    /// Time, and when it is enough.
    pub(crate) clock: Arc<dyn Runtime>,
    /// What to look at, and how much at once.
    pub(crate) options: Options,
}

/// Where a look was ended by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Before all resources were looked at.
    Resources,
    /// Before it was known what is there beside them.
    Strays,
    /// Before it was known whether backups are where they were put.
    Backups,
}

/// What was seen.
pub(crate) struct Looked {
    /// What an apply would do now.
    pub(crate) plan: Plan,
    /// What of that rests on memory alone.
    pub(crate) doubts: Doubts,
    /// Everything that was seen, facts of the moment among it.
    pub(crate) seen: BTreeMap<Address, Object>,
    /// What nobody knows, with the marks of something that is in the state.
    pub(crate) strays: Vec<Beside>,
    /// All of these are told: everybody could be asked.
    pub(crate) knows_strays: bool,
    /// But for those whose names begin so, which can't be told for lack of a right.
    pub(crate) unlisted: Vec<String>,
    /// What was not looked at any more, as the look was over by then.
    pub(crate) cut: Option<Cut>,
    /// What nobody was asked about for that.
    pub(crate) unasked: BTreeSet<Address>,
    /// What was met on the way.
    pub(crate) met: Diagnostics,
    /// What took how long.
    pub(crate) phases: Vec<Phase>,
    /// Who was asked.
    pub(crate) asked: Vec<Asked>,
    /// The connections that are open, for who looks further.
    pub(crate) pool: Arc<Pool>,
}

/// Looks. What can't be reached is no error here: it is part of the answer. When it is enough by the clock, it ends with what was seen by then.
///
/// # Errors
/// What keeps everything from being looked at: a configuration that can't be.
pub(crate) async fn look(sight: &Sight<'_>) -> Result<Looked, Diagnostics> {
    let Sight { catalog, config, state, clock, options } = sight;
    let options = Options { tries: false, lenient: true, ..options.clone() };
    let (graph, wrong) = graph(config, &state.state, catalog);
    let mut met = without_deferred(&graph, &options, wrong);
    let (graph, state) = (graph.with_moved(state.moved.clone()), &*state.state);
    if met.has_errors() {
        return Err(met);
    }
    let pool = Pool::only_looking(Arc::clone(catalog), config.providers.clone());
    let world = World { config, registry: catalog, state, pool: &pool, runtime: &**clock, hands: None };
    let began = clock.now();
    let (observed, wrong) = observe(&graph, &world, &options).await;
    let seen_all = clock.now();
    // Who is out of reach is named below; why is worth a note.
    met.extend(wrong.into_iter().map(|mut d| {
        d.severity = Severity::Warning;
        d
    }));
    // Beside a part of everything, all the rest would be strays.
    let looks_for_strays = options.targets.is_empty();
    let found = async {
        tokio::select! {
            found = strays(&world, &observed, options.parallelism) => Some(found),
            () = clock.enough() => None,
        }
    };
    let found = if looks_for_strays && !observed.is_cut() { found.await } else { None };
    let cut = match (observed.is_cut(), looks_for_strays && found.is_none()) {
        (true, _) => Some(Cut::Resources),
        (false, true) => Some(Cut::Strays),
        (false, false) => None,
    };
    let told = found.unwrap_or_default();
    let knows_strays = looks_for_strays && cut.is_none() && told.wrong.is_empty();
    met.extend(told.wrong);
    let (unlisted, why): (Vec<_>, Vec<_>) = told.unlisted.into_iter().map(|u| (u.begin, u.why)).unzip();
    let (strays, unlisted) = (told.found, unlisted.concat());
    met.extend(why);
    let searched = clock.now();
    let (plan, doubts, wrong) = plan_and_doubts(&graph, &world.inputs(), &observed, &options);
    // What a check says is a finding.
    let is_told = |d: &Diagnostic| d.address.as_ref().is_some_and(|a| config.check(a).is_some()) && d.span.is_some() && !d.is_error();
    met.extend(wrong.into_iter().filter(|d| !is_told(d)));
    let unasked = doubts.unseen.iter().filter(|a| observed.is_unasked(a)).cloned().collect();
    let seen = graph.addresses().filter_map(|a| Some((a.clone(), observed.present(a)?.clone()))).collect();
    let times = [("look", began, seen_all), ("look for strays", seen_all, searched), ("decide", searched, clock.now())];
    let phases = times.map(|(name, begin, end)| Phase { name, begin, end: end.max(begin) }).into();
    let asked = observed.asked().to_vec();
    Ok(Looked { plan, doubts, seen, strays, knows_strays, unlisted, cut, unasked, met, phases, asked, pool: Arc::clone(&pool) })
}
