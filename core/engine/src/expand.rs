//! How often things stand, and what is imported, where the text alone does not say it: what is known of other things is asked of the world
//! first, and the configuration is read again with that, until nothing more comes of it.

use karmaform_lang::Config;
use karmaform_model::Diagnostics;

use crate::connect::graph;
use crate::known::{Known, known};
use crate::moves::{Relocated, relocate};
use crate::observe::observe_again;
use crate::observed::Observed;
use crate::options::{Options, World};

/// More rounds come of no configuration that anybody writes: each knows what depends on one thing more.
const MOST: usize = 1000;

/// A configuration with all instances that can be told.
pub struct Expanded {
    /// What it says. What can be told only after an apply is still open.
    pub config: Config,
    /// What was seen on the way.
    pub observed: Observed,
    /// What is wrong with it.
    pub wrong: Diagnostics,
}

/// Goes through the rounds, from the configuration of `world` on. `read` gives the same configuration with what is known of instances.
/// What could not be looked at is told to whoever plans with the result, and looks at it again.
pub async fn expand(world: &World<'_>, options: &Options, read: &dyn Fn(&Known) -> (Config, Diagnostics)) -> Expanded {
    let (mut config, mut observed, mut wrong) = (world.config.clone(), Observed::default(), Diagnostics::new());
    for _ in 0..MOST {
        // What is wrong in here may be so because something is open; who plans with the result hears of it.
        let Relocated { state, moved } = relocate(&config, world.state).0;
        let graph = graph(&config, &state, world.registry).0.with_moved(moved);
        let here = World { config: &config, state: &state, ..*world };
        (observed, _) = observe_again(&graph, &here, options, observed).await;
        let known = known(&graph, &here.inputs(), &observed, options);
        let next;
        (next, wrong) = read(&known);
        let is_settled = next.is_expanded_like(&config);
        config = next;
        if is_settled || wrong.has_errors() {
            break;
        }
    }
    Expanded { config, observed, wrong }
}
