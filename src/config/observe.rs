//! The section `observe`: the checks that are only observed (FWD-6).
//!
//! Invariant: in production a check that proves the sender is observed only with `danger_observe_identity: true`.

use std::collections::BTreeSet;

use super::section::Section;
use super::value::Value;
use crate::admission::{Enforcement, ObservableCheck, TppChecks};
use crate::interface::operations::Environment;

/// Reads the section. Without it every check refuses.
pub(super) fn read(root: &mut Section<'_>, environment: Environment) -> Enforcement {
    let Some(mut section) = root.optional_section("observe") else {
        return Enforcement::default();
    };
    let danger = section.optional("danger_observe_identity");
    let danger = danger.and_then(|value| value.boolean()).unwrap_or(false);
    let reader = Reader {
        identity: danger || environment == Environment::Sandbox,
    };
    let observed = section.optional("checks");
    let observed = observed.map_or_else(BTreeSet::new, |value| reader.checks(&value));
    let mut by_tpp = TppChecks::default();
    if let Some(mut tpps) = section.optional_section("tpps") {
        for (key, value) in tpps.entries() {
            let checks = reader.checks(&value);
            let Some(tpp) = key.permitted_tpp() else {
                continue;
            };
            if !by_tpp.add(tpp, checks) {
                key.fault("this TPP is listed already, in other letters");
            }
        }
        tpps.finish();
    }
    let all = observed.iter().chain(by_tpp.all());
    let names: BTreeSet<_> = all.map(|check| check.name()).collect();
    if !names.is_empty() {
        let names = Vec::from_iter(names).join(", ");
        let text = format!("requests that fail these checks reach the core: {names}");
        section.weakens("checks", text);
    } else if danger {
        let text = "nothing that proves the sender is observed: leave it out";
        section.weakens("danger_observe_identity", text);
    }
    section.finish();
    Enforcement::new(observed, by_tpp)
}

/// Reads sets of checks.
struct Reader {
    /// Whether checks that prove the sender may be observed.
    identity: bool,
}

impl Reader {
    /// `all`, or a list of names.
    fn checks(&self, value: &Value<'_>) -> BTreeSet<ObservableCheck> {
        if value.is("all") {
            if !self.identity {
                value.fault(
                    "in production, all includes checks that prove who the sender is: \
                     list the others, or set observe.danger_observe_identity: true",
                );
            }
            return ObservableCheck::ALL.iter().copied().collect();
        }
        let names: Vec<_> = ObservableCheck::ALL
            .iter()
            .map(|check| (check.name(), *check))
            .collect();
        let mut checks = BTreeSet::new();
        for value in value.as_list().unwrap_or_default() {
            let Some(check) = value.one_of(&names) else {
                continue;
            };
            if check.is_identity() && !self.identity {
                value.fault(
                    "it proves who the sender is: in production it is observed \
                     only with observe.danger_observe_identity: true",
                );
            }
            checks.insert(check);
        }
        checks
    }
}
