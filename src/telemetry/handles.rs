//! Counts requests by operation, with handles that are resolved once.
//!
//! A reload makes new [`Handles`] on the same families. A series begins with its first request, because most combinations never occur.

use super::{
    facts::{CoreAnswered, Finished},
    histogram::{Histogram, Histograms},
    labels::{CLASSES, NONE, OTHER, OUTCOMES, SIDES},
    registry::{Counters, Registrar},
    table,
};
use crate::{
    admission::Outcome,
    interface::{
        Reason, Side,
        operations::{Catalogue, Operation},
    },
};
use prometheus::IntCounter;
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

/// The most pairs of an operation and a reason with a series of their own. A gateway has some tens of them; without a limit, all operations
/// and reasons make 1 500.
const MOST_PAIRS: usize = 100;

/// The families of finished requests by operation.
#[derive(Clone, Debug)]
pub(super) struct Outcomes(Arc<ByOperation>);

#[derive(Debug)]
struct ByOperation {
    requests: Counters,
    refusals: Counters,
    pairs: Mutex<HashSet<(String, Reason)>>,
    seconds: Histograms,
    upstream_seconds: Histograms,
    upstream_responses: Counters,
}

impl Outcomes {
    pub(super) fn new(registrar: &Registrar) -> Self {
        Self(Arc::new(ByOperation {
            requests: registrar.counters(&table::REQUESTS),
            refusals: registrar.counters(&table::REFUSALS),
            pairs: Mutex::default(),
            seconds: registrar.histograms(&table::REQUEST_SECONDS),
            upstream_seconds: registrar.histograms(&table::UPSTREAM_SECONDS),
            upstream_responses: registrar.counters(&table::UPSTREAM_RESPONSES),
        }))
    }

    /// The handles for a catalogue's operations.
    pub(super) fn handles(&self, catalogue: &Catalogue) -> Handles {
        let mut groups = HashMap::new();
        let known = catalogue.operations().iter().map(|operation| {
            let group = groups.entry(operation.group.as_str());
            let group = group.or_insert_with(|| Arc::new(GroupHandles::new(&operation.group)));
            let handles = self.operation(&operation.name, Arc::clone(group));
            (Some(Arc::clone(operation)), handles)
        });
        let mut operations: Vec<_> = known.collect();
        operations.push((
            None,
            self.operation(NONE, Arc::new(GroupHandles::new(NONE))),
        ));
        Handles { operations }
    }

    /// Counts a request that the HTTP layer refused by itself, without an answer of the gateway (ERR-8).
    pub(super) fn refused_by_http(&self, reason: Reason) {
        let side = side_name(Some(reason.at_fault()));
        self.0.requests.of(&[NONE, "refused", NONE, side]).inc();
        self.0.refusal(NONE, reason).inc();
    }

    fn operation(&self, label: &str, group: Arc<GroupHandles>) -> OperationHandles {
        OperationHandles {
            label: label.to_owned(),
            families: Arc::clone(&self.0),
            requests: cells(
                OUTCOMES
                    .len()
                    .saturating_mul(STATUSES)
                    .saturating_mul(RESULTS),
            ),
            refusals: cells(Reason::ALL.len()),
            seconds: OnceLock::new(),
            group,
        }
    }
}

impl ByOperation {
    /// The counter of a pair; beyond the limit, that of the reason alone.
    fn refusal(&self, operation: &str, reason: Reason) -> IntCounter {
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = (operation.to_owned(), reason);
        let own = pairs.contains(&pair) || pairs.len() < MOST_PAIRS && pairs.insert(pair);
        let operation = if own { operation } else { OTHER };
        let side = side_name(Some(reason.at_fault()));
        self.refusals.of(&[operation, reason.slug(), side])
    }
}

/// The metric handles of one catalogue.
#[derive(Debug)]
pub struct Handles {
    operations: Vec<(Option<Arc<Operation>>, OperationHandles)>,
}

/// The handles of one operation.
#[derive(Debug)]
struct OperationHandles {
    label: String,
    families: Arc<ByOperation>,
    /// By outcome, status and side.
    requests: Vec<OnceLock<IntCounter>>,
    /// By reason.
    refusals: Vec<OnceLock<IntCounter>>,
    seconds: OnceLock<Arc<Histogram>>,
    group: Arc<GroupHandles>,
}

/// The handles of one group of operations.
#[derive(Debug)]
struct GroupHandles {
    label: String,
    seconds: OnceLock<Arc<Histogram>>,
    /// By the class of the core's status.
    responses: Vec<OnceLock<IntCounter>>,
}

/// The number of classes of a status, and one for none.
const STATUSES: usize = CLASSES.len() + 1;

/// The number of sides, and one for none.
const RESULTS: usize = SIDES.len() + 1;

impl Handles {
    pub(super) fn count(&self, finished: &Finished<'_>) {
        let operation = finished.record.operation().map(Arc::as_ptr);
        let same = |known: &Option<Arc<Operation>>| known.as_ref().map(Arc::as_ptr) == operation;
        let Some((_, handles)) = self.operations.iter().find(|(known, _)| same(known)) else {
            return;
        };
        handles.count(finished);
    }
}

impl OperationHandles {
    fn count(&self, finished: &Finished<'_>) {
        self.count_outcome(finished.outcome, finished.status);
        self.count_times(finished.record.elapsed(), finished.core);
    }

    fn count_outcome(&self, outcome: Outcome, status: Option<u16>) {
        let (outcome, reason, side) = judge(outcome);
        self.count_request(outcome, status, side);
        if let Some(reason) = reason
            && let Some(counter) = self.refusals.get(reason.index())
        {
            counter
                .get_or_init(|| self.families.refusal(&self.label, reason))
                .inc();
        }
    }

    fn count_times(&self, took: Duration, core: Option<CoreAnswered>) {
        self.seconds
            .get_or_init(|| self.families.seconds.of(&[self.label.as_str()]))
            .observe(took);
        if let Some(answered) = core {
            self.group.count(&self.families, answered);
        }
    }

    fn count_request(&self, outcome: usize, status: Option<u16>, side: Option<Side>) {
        let class = status.and_then(class);
        let index = outcome
            .saturating_mul(STATUSES)
            .saturating_add(class.unwrap_or(CLASSES.len()))
            .saturating_mul(RESULTS)
            .saturating_add(side.map_or(SIDES.len(), Side::index));
        let counter = || {
            let outcome = OUTCOMES.get(outcome).copied().unwrap_or_default();
            let class = class.and_then(|class| CLASSES.get(class));
            let status = class.copied().unwrap_or(NONE);
            let labels = [self.label.as_str(), outcome, status, side_name(side)];
            self.families.requests.of(&labels)
        };
        if let Some(known) = self.requests.get(index) {
            known.get_or_init(counter).inc();
        }
    }
}

impl GroupHandles {
    fn new(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            seconds: OnceLock::new(),
            responses: cells(CLASSES.len()),
        }
    }

    fn count(&self, families: &ByOperation, answered: CoreAnswered) {
        self.seconds
            .get_or_init(|| families.upstream_seconds.of(&[self.label.as_str()]))
            .observe(answered.took);
        if let Some(index) = class(answered.status)
            && let Some(known) = self.responses.get(index)
        {
            let class = CLASSES.get(index).copied().unwrap_or_default();
            let counter = || {
                families
                    .upstream_responses
                    .of(&[self.label.as_str(), class])
            };
            known.get_or_init(counter).inc();
        }
    }
}

/// The index of an outcome, its reason, and the side at fault. A status of the core that is passed on is the caller's fault from 400 and the
/// core's from 500.
fn judge(outcome: Outcome) -> (usize, Option<Reason>, Option<Side>) {
    match outcome {
        Outcome::Forwarded(status) => {
            let side = match status {
                500.. => Some(Side::Core),
                400.. => Some(Side::Caller),
                _ => None,
            };
            (0, None, side)
        }
        Outcome::Answered => (1, None, None),
        Outcome::Refused(reason) => (2, Some(reason), Some(reason.at_fault())),
        Outcome::Failed(reason) => (3, Some(reason), Some(reason.at_fault())),
        Outcome::Abandoned => (4, None, Some(Side::Caller)),
    }
}

/// The index of a status in [`CLASSES`].
fn class(status: u16) -> Option<usize> {
    let class = usize::from(status).checked_div(100)?.checked_sub(1)?;
    (class < CLASSES.len()).then_some(class)
}

fn side_name(side: Option<Side>) -> &'static str {
    side.map_or(NONE, Side::name)
}

fn cells<T>(count: usize) -> Vec<OnceLock<T>> {
    std::iter::repeat_with(OnceLock::new).take(count).collect()
}

#[cfg(test)]
impl Handles {
    /// Counts every outcome that a request of each operation can have.
    pub(super) fn fill(&self) {
        let statuses = [200, 302, 404, 500];
        for (_, handles) in &self.operations {
            for status in statuses {
                handles.count_outcome(Outcome::Forwarded(status), Some(status));
                let took = Duration::from_millis(1);
                handles.count_times(took, Some(CoreAnswered { status, took }));
            }
            for status in [200, 401] {
                handles.count_outcome(Outcome::Answered, Some(status));
            }
            for reason in Reason::ALL {
                handles.count_outcome(Outcome::Refused(*reason), Some(reason.status()));
            }
            for reason in [
                Reason::UpstreamError,
                Reason::UpstreamTimeout,
                Reason::Internal,
            ] {
                for status in [reason.status(), 200, 404] {
                    handles.count_outcome(Outcome::Failed(reason), Some(status));
                }
            }
            for status in [None, Some(200)] {
                handles.count_outcome(Outcome::Abandoned, status);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{interface::operations::Environment, telemetry::registry::Registrar};

    #[test]
    fn the_side_at_fault() {
        let side = |outcome| judge(outcome).2;
        assert_eq!(side(Outcome::Forwarded(302)), None);
        assert_eq!(side(Outcome::Answered), None);
        for outcome in [
            Outcome::Forwarded(404),
            Outcome::Abandoned,
            Outcome::Refused(Reason::ScaRequired),
            Outcome::Refused(Reason::RateLimited),
        ] {
            assert_eq!(side(outcome), Some(Side::Caller), "{outcome:?}");
        }
        for reason in [
            Reason::StateUnavailable,
            Reason::RegisterStale,
            Reason::Overloaded,
        ] {
            assert_eq!(side(Outcome::Refused(reason)), Some(Side::Gateway));
        }
        for outcome in [
            Outcome::Forwarded(503),
            Outcome::Failed(Reason::UpstreamTimeout),
            Outcome::Failed(Reason::UpstreamError),
            Outcome::Failed(Reason::UpstreamUnreachable),
        ] {
            assert_eq!(side(outcome), Some(Side::Core), "{outcome:?}");
        }
    }

    /// Beyond the limit a reason is still counted, but without its operation; also after a reload.
    #[test]
    fn pairs_of_operation_and_reason_are_limited() {
        let registrar = Registrar::default();
        let outcomes = Outcomes::new(&registrar);
        let catalogue = Catalogue::new(
            Environment::Sandbox,
            crate::interface::operations::builtin(),
        );
        let catalogue = catalogue.unwrap();
        for _ in 0..2 {
            outcomes.handles(&catalogue).fill();
        }
        let text = registrar.gather().text();
        let lines = text
            .lines()
            .filter(|line| line.starts_with("portvakt_refusals_total"));
        let (other, own): (Vec<_>, Vec<_>) =
            lines.partition(|line| line.contains("operation=\"other\""));
        assert_eq!(own.len(), MOST_PAIRS);
        assert!(
            !other.is_empty() && other.len() <= Reason::ALL.len(),
            "{}",
            other.len()
        );
        let count = |lines: &[&str]| {
            let counts = lines
                .iter()
                .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
            counts.sum::<u64>()
        };
        let each = u64::try_from(Reason::ALL.len() + 9).unwrap();
        let operations = u64::try_from(catalogue.operations().len() + 1).unwrap();
        assert_eq!(count(&own) + count(&other), 2 * operations * each);
    }
}
