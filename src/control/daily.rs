//! A line of the log, once a day, about each kind of thing that ends or fills.
//!
//! Deliberately not here: what is found, and the lines of a start and a reload, which say the same at once.

use super::context::ControlContext;
use crate::{
    clock::Timestamp,
    expiring::{Expiring, Finding, Level},
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The interval of looking. Nothing ends faster than an operator can act.
const LOOK: Duration = Duration::from_secs(60);

/// The time between two lines about the same kind, in seconds.
const DAY: u64 = 86_400;

/// What the log has of each kind: how bad it was, and when.
#[derive(Debug, Default)]
struct Said(BTreeMap<Expiring, (Level, Timestamp)>);

/// Writes the lines.
pub(super) async fn log_each_day(context: &Arc<ControlContext>) {
    let mut said = Said::default();
    // The start has said what is true at the start.
    drop(said.due(look(context).await, context.clock.now()));
    loop {
        tokio::time::sleep(LOOK).await;
        for Finding { of, level, text } in said.due(look(context).await, context.clock.now()) {
            let of = of.name();
            match level {
                Level::Soon => tracing::warn!(of, "{text}"),
                Level::Over => tracing::error!(of, "{text}"),
            }
        }
    }
}

/// Looks on a thread of its own: a disk that does not answer must not stop the control listener.
async fn look(context: &Arc<ControlContext>) -> Vec<Finding> {
    let context = Arc::clone(context);
    let looking = tokio::task::spawn_blocking(move || {
        let mut found = context.current.load().findings(context.clock.now());
        found.extend(context.telemetry.full_disks());
        found
    });
    looking.await.unwrap_or_default()
}

impl Said {
    /// The findings of the kinds that the log has not had for a day, or has had as less bad.
    fn due(&mut self, found: Vec<Finding>, now: Timestamp) -> Vec<Finding> {
        let mut worst = BTreeMap::new();
        for Finding { of, level, .. } in &found {
            let known = worst.entry(*of).or_insert(*level);
            *known = (*level).max(*known);
        }
        self.0.retain(|of, _| worst.contains_key(of));
        worst.retain(|of, level| match self.0.get(of) {
            Some((known, at)) => *level > *known || now.unix() >= at.unix().saturating_add(DAY),
            None => true,
        });
        for (of, level) in &worst {
            self.0.insert(*of, (*level, now));
        }
        let mut found = found;
        found.retain(|finding| worst.contains_key(&finding.of));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_line_once_a_day_and_when_it_gets_worse() {
        let mut said = Said::default();
        let at = Timestamp::from_unix;
        let finding = |of, level| Finding {
            of,
            level,
            text: String::new(),
        };
        let crl = |level| vec![finding(Expiring::Crl, level)];
        assert_eq!(said.due(crl(Level::Soon), at(100)).len(), 1);
        assert_eq!(said.due(crl(Level::Soon), at(DAY + 99)).len(), 0);
        assert_eq!(said.due(crl(Level::Soon), at(DAY + 100)).len(), 1);
        assert_eq!(said.due(crl(Level::Over), at(DAY + 101)).len(), 1);
        let mut both = crl(Level::Over);
        both.push(finding(Expiring::StateDisk, Level::Soon));
        let lines = said.due(both, at(DAY + 102));
        assert_eq!(lines, [finding(Expiring::StateDisk, Level::Soon)]);
        // A new CRL ended the trouble: the next one is said at once.
        assert_eq!(said.due(Vec::new(), at(DAY + 103)).len(), 0);
        assert_eq!(said.due(crl(Level::Soon), at(DAY + 104)).len(), 1);
    }
}
