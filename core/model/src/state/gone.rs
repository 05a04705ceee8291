//! What goes out of a state while something that needs it stays there.

use std::collections::BTreeMap;

use super::Snapshot;
use crate::Address;

impl Snapshot {
    /// What needs something that is gone needs what that needed, too: it is still destroyed before that. `gone`: what is not there any
    /// more, each with what it needed; what is there again is passed over, and so are parts of composites, which order theirs themselves.
    /// Says whether anything came of it.
    pub fn inherit(&mut self, gone: &BTreeMap<Address, Vec<Address>>) -> bool {
        let mut blocks: BTreeMap<Address, Vec<&Address>> = BTreeMap::new();
        for address in gone.keys().filter(|address| !address.is_child() && !self.resources.contains_key(*address)) {
            blocks.entry(address.configuration()).or_default().push(address);
        }
        let mut changed = false;
        if blocks.is_empty() {
            return changed;
        }
        let current = self.resources.iter_mut();
        let deposed = self.deposed.iter_mut().map(|((address, _), resource)| (address, resource));
        for (own, resource) in current.chain(deposed).filter(|(own, _)| !own.is_child()) {
            let mut open = resource.dependencies.clone();
            let mut found = open.clone();
            while let Some(needed) = open.pop() {
                let meant = blocks.get(&needed.configuration()).into_iter().flatten().filter(|address| address.is_within(&needed));
                for more in meant.filter_map(|address| gone.get(*address)).flatten() {
                    if more != own && !found.contains(more) {
                        found.push(more.clone());
                        open.push(more.clone());
                    }
                }
            }
            if found.len() > resource.dependencies.len() {
                found.sort_unstable();
                resource.dependencies = found;
                changed = true;
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::{Address, Snapshot};

    /// What is gone, with what it needed.
    fn gone(all: &[(&str, &str)]) -> BTreeMap<Address, Vec<Address>> {
        let addresses = |text: &str| text.split_whitespace().map(|a| a.parse().unwrap()).collect();
        all.iter().map(|(address, needs)| (address.parse().unwrap(), addresses(needs))).collect()
    }

    #[test]
    fn what_stays_needs_what_was_needed_by_what_went() {
        let resource = |name: &str, needs: &str| {
            let needs: Vec<_> = needs.split_whitespace().collect();
            let instance = serde_json::json!({ "attributes": {}, "dependencies": needs, "schema_version": 0 });
            let provider = "provider[\"terraform.io/builtin/terraform\"]";
            serde_json::json!({ "mode": "managed", "type": "t", "name": name, "provider": provider, "instances": [instance] })
        };
        let file = serde_json::json!({
            "version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "l", "outputs": {},
            "resources": [
                resource("a", ""), resource("c", "t.b"), resource("d", "t.c"), resource("e", "t.b[1]"), resource("f", "module.m.t.x"),
            ],
        });
        let mut state = Snapshot::from_text(&file.to_string()).unwrap();
        let needs = |state: &Snapshot, name: &str| {
            let all = &state.resources[&name.parse().unwrap()].dependencies;
            all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let all = [("t.b[0]", "t.z"), ("t.z", "t.a t.c"), ("t.d", "t.q"), ("module.m[\"k\"].t.x", "t.a")];
        assert!(state.inherit(&gone(&all)));
        assert_eq!(needs(&state, "t.c"), "t.a t.b t.z", "in turn, and never itself");
        assert_eq!(needs(&state, "t.d"), "t.c", "what is there needs for itself");
        assert_eq!(needs(&state, "t.e"), "t.b[1]", "it was another instance");
        assert_eq!(needs(&state, "t.f"), "t.a module.m.t.x", "any instance of the module");
        assert!(!state.inherit(&gone(&all)), "once is enough");
    }
}
