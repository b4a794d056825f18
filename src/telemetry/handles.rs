//! Counts requests by operation, with handles that are resolved once.
//!
//! A reload makes new [`Handles`] on the same families. A series by operation begins with its first request, because most combinations never
//! occur; those by group and by reason, which alerts read, exist from the start, because Prometheus does not see the increase to a series'
//! first value.

use super::{
    facts::{CoreTook, Finished},
    histogram::{Histogram, Histograms},
    labels::{self, NONE, OTHER},
    registry::{Counters, Registrar},
    table,
    values::StatusClass,
};
use crate::{
    admission::{Outcome, OutcomeKind},
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
const MOST_PAIRS: usize = 70;

/// The families of finished requests by operation.
#[derive(Clone, Debug)]
pub(super) struct Outcomes(Arc<ByOperation>);

#[derive(Debug)]
struct ByOperation {
    requests: Counters<(
        labels::Operation,
        labels::Outcome,
        labels::Status,
        labels::Fault,
    )>,
    answers: Counters<(labels::Group, labels::Fault)>,
    /// In the order of [`Reason::ALL`].
    refusals: Vec<IntCounter>,
    operation_refusals: Counters<(labels::Operation, labels::OperationReason)>,
    pairs: Mutex<HashSet<(String, Reason)>>,
    seconds: Histograms<labels::Group>,
    upstream_seconds: Histograms<labels::Group>,
    upstream_responses: Counters<(labels::Group, labels::CoreStatus)>,
}

impl Outcomes {
    pub(super) fn new(registrar: &Registrar) -> Self {
        let refusals = registrar.counters(&table::REFUSALS);
        let of = |reason: &Reason| refusals.of((*reason, Some(reason.at_fault())));
        Self(Arc::new(ByOperation {
            requests: registrar.counters(&table::REQUESTS),
            answers: registrar.counters(&table::ANSWERS),
            refusals: Reason::ALL.iter().map(of).collect(),
            operation_refusals: registrar.counters(&table::OPERATION_REFUSALS),
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
            let group = group.or_insert_with(|| {
                let group = GroupHandles::new(&operation.group, &self.0);
                group.begin_core(&self.0);
                Arc::new(group)
            });
            let handles = self.operation(&operation.name, Arc::clone(group));
            (Some(Arc::clone(operation)), handles)
        });
        let mut operations: Vec<_> = known.collect();
        operations.push((
            None,
            self.operation(NONE, Arc::new(GroupHandles::new(NONE, &self.0))),
        ));
        Handles { operations }
    }

    /// Counts a request that the HTTP layer refused by itself, without an answer of the gateway (ERR-8).
    pub(super) fn refused_by_http(&self, reason: Reason) {
        let side = Some(reason.at_fault());
        let labels = (NONE, OutcomeKind::Refused, None, side);
        self.0.requests.of(labels).inc();
        self.0.answers.of((NONE, side)).inc();
        self.0.count_reason(reason);
        self.0.operation_refusal(NONE, reason).inc();
        self.0.seconds.of(NONE).observe(Duration::ZERO);
    }

    fn operation(&self, label: &str, group: Arc<GroupHandles>) -> OperationHandles {
        OperationHandles {
            label: label.to_owned(),
            families: Arc::clone(&self.0),
            requests: cells(
                OutcomeKind::ALL
                    .len()
                    .saturating_mul(STATUSES)
                    .saturating_mul(RESULTS),
            ),
            refusals: cells(Reason::ALL.len()),
            group,
        }
    }
}

impl ByOperation {
    fn count_reason(&self, reason: Reason) {
        if let Some(counter) = self.refusals.get(reason.index()) {
            counter.inc();
        }
    }

    /// The counter of a pair; beyond the limit, that of all others.
    fn operation_refusal(&self, operation: &str, reason: Reason) -> IntCounter {
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = (operation.to_owned(), reason);
        let own = pairs.contains(&pair) || pairs.len() < MOST_PAIRS && pairs.insert(pair);
        let labels = match own {
            true => (operation, reason.slug()),
            false => (OTHER, OTHER),
        };
        self.operation_refusals.of(labels)
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
    group: Arc<GroupHandles>,
}

/// The handles of one group of operations.
#[derive(Debug)]
struct GroupHandles {
    label: String,
    /// By the side that has to act, the last one for none.
    answers: [IntCounter; RESULTS],
    whole: Arc<Histogram>,
    /// Of the core.
    seconds: OnceLock<Arc<Histogram>>,
    /// By the class of the core's status.
    responses: Vec<OnceLock<IntCounter>>,
}

/// The number of classes of a status, and one for none.
const STATUSES: usize = StatusClass::ALL.len() + 1;

/// The number of sides, and one for none.
const RESULTS: usize = Side::ALL.len() + 1;

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
        let status = finished.status.filter(|_| finished.is_whole());
        self.count_outcome(finished.outcome, status);
        self.count_times(finished.record.elapsed(), finished.core);
    }

    fn count_outcome(&self, outcome: Outcome, status: Option<u16>) {
        let side = outcome.at_fault();
        self.count_request(outcome.kind(), status, side);
        self.group.count_answer(side);
        if let Some(reason) = outcome.reason()
            && let Some(counter) = self.refusals.get(reason.index())
        {
            self.families.count_reason(reason);
            counter
                .get_or_init(|| self.families.operation_refusal(&self.label, reason))
                .inc();
        }
    }

    fn count_times(&self, took: Duration, core: Option<CoreTook>) {
        self.group.whole.observe(took);
        if let Some(core) = core {
            self.group.count(&self.families, core);
        }
    }

    fn count_request(&self, outcome: OutcomeKind, status: Option<u16>, side: Option<Side>) {
        let class = status.and_then(StatusClass::of);
        let index = outcome
            .index()
            .saturating_mul(STATUSES)
            .saturating_add(class.map_or(StatusClass::ALL.len(), StatusClass::index))
            .saturating_mul(RESULTS)
            .saturating_add(side_index(side));
        let counter = || {
            let labels = (self.label.as_str(), outcome, class, side);
            self.families.requests.of(labels)
        };
        if let Some(known) = self.requests.get(index) {
            known.get_or_init(counter).inc();
        }
    }
}

impl GroupHandles {
    fn new(label: &str, families: &ByOperation) -> Self {
        let sides = [
            Some(Side::Caller),
            Some(Side::Gateway),
            Some(Side::Core),
            None,
        ];
        Self {
            label: label.to_owned(),
            answers: sides.map(|side| families.answers.of((label, side))),
            whole: families.seconds.of(label),
            seconds: OnceLock::new(),
            responses: cells(StatusClass::ALL.len()),
        }
    }

    /// Begins the series of the core, but for informational answers, which are not counted.
    fn begin_core(&self, families: &ByOperation) {
        self.seconds(families);
        for class in StatusClass::ALL {
            if *class != StatusClass::Informational {
                self.responses(*class, families);
            }
        }
    }

    fn count_answer(&self, side: Option<Side>) {
        if let Some(counter) = self.answers.get(side_index(side)) {
            counter.inc();
        }
    }

    fn count(&self, families: &ByOperation, core: CoreTook) {
        self.seconds(families).observe(core.took);
        let class = core.status.and_then(StatusClass::of);
        let counter = class.and_then(|class| self.responses(class, families));
        if let Some(counter) = counter {
            counter.inc();
        }
    }

    fn seconds(&self, families: &ByOperation) -> &Histogram {
        self.seconds
            .get_or_init(|| families.upstream_seconds.of(&self.label))
    }

    /// The counter of a class of the core's status.
    fn responses(&self, class: StatusClass, families: &ByOperation) -> Option<&IntCounter> {
        let known = self.responses.get(class.index())?;
        let labels = (self.label.as_str(), class);
        Some(known.get_or_init(|| families.upstream_responses.of(labels)))
    }
}

/// The index of a side, or of none after all of them.
fn side_index(side: Option<Side>) -> usize {
    side.map_or(Side::ALL.len(), Side::index)
}

fn cells<T>(count: usize) -> Vec<OnceLock<T>> {
    std::iter::repeat_with(OnceLock::new).take(count).collect()
}

#[cfg(test)]
impl Handles {
    /// Counts every outcome that a request of each operation can have.
    pub(super) fn fill(&self) {
        let took = Duration::from_millis(1);
        for (operation, handles) in &self.operations {
            for (outcome, status) in ends(operation.is_some()) {
                handles.count_outcome(outcome, status);
                let core = match outcome {
                    Outcome::Forwarded(status) => Some(CoreTook {
                        status: Some(status),
                        took,
                    }),
                    _ => None,
                };
                handles.count_times(took, core);
            }
        }
    }
}

/// The ends that a request can have, with the status of a whole answer: one of an operation, or one of none, which never reaches the core.
/// Not that of the gateway's fault, cut with the process: its metrics end with it.
#[cfg(test)]
fn ends(has_operation: bool) -> Vec<(Outcome, Option<u16>)> {
    let mut ends = vec![
        (Outcome::Answered, Some(200)),
        (Outcome::Abandoned(Side::Caller), None),
        (Outcome::Cut(Side::Caller), None),
    ];
    let refusals = Reason::ALL
        .iter()
        .filter(|reason| reason.at_fault() != Side::Core);
    ends.extend(refusals.map(|reason| (Outcome::Refused(*reason), Some(reason.status()))));
    if has_operation {
        ends.extend([200, 302, 404, 500].map(|status| (Outcome::Forwarded(status), Some(status))));
        let failures = Reason::ALL
            .iter()
            .filter(|reason| reason.at_fault() == Side::Core);
        for reason in failures.chain(&[Reason::Internal]) {
            let failed = Outcome::Failed(*reason);
            ends.extend([(failed, Some(reason.status())), (failed, None)]);
        }
        // ERR-6: the status of the core's error stays.
        ends.push((Outcome::Failed(Reason::UpstreamError), Some(404)));
        ends.push((Outcome::Abandoned(Side::Core), None));
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{interface::operations::Environment, telemetry::registry::Registrar};

    /// A refusal of the HTTP layer that has no line is counted wherever one with a line is.
    #[test]
    fn a_refusal_below_http_counts_in_every_family() {
        let registrar = Registrar::default();
        Outcomes::new(&registrar).refused_by_http(Reason::OperationUnknown);
        let text = registrar.gather().text();
        for family in [
            "requests_total",
            "answers_total",
            "refusals_total",
            "operation_refusals_total",
            "request_seconds_count",
        ] {
            let name = format!("portvakt_{family}{{");
            let lines: Vec<_> = text
                .lines()
                .filter(|line| line.starts_with(&name) && !line.ends_with(" 0"))
                .collect();
            assert!(
                lines.len() == 1 && lines[0].ends_with(" 1"),
                "{family}: {lines:?}"
            );
        }
    }

    /// Beyond the limit a reason is counted without its operation; also after a reload.
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
            .filter(|line| line.starts_with("portvakt_operation_refusals_total"));
        let (other, own): (Vec<_>, Vec<_>) =
            lines.partition(|line| line.contains("operation=\"other\""));
        assert_eq!(own.len(), MOST_PAIRS);
        assert_eq!(other.len(), 1, "{other:?}");
        let count = |lines: &[&str]| {
            let counts = lines
                .iter()
                .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
            counts.sum::<u64>()
        };
        let each = |has_operation| {
            let ends = ends(has_operation);
            let reasons = ends
                .iter()
                .filter(|(outcome, _)| outcome.reason().is_some());
            u64::try_from(reasons.count()).unwrap()
        };
        let operations = u64::try_from(catalogue.operations().len()).unwrap();
        let all = operations * each(true) + each(false);
        assert_eq!(count(&own) + count(&other), 2 * all);
        let reasons = text
            .lines()
            .filter(|line| line.starts_with("portvakt_refusals_total"));
        let reasons: Vec<_> = reasons.collect();
        assert_eq!(reasons.len(), Reason::ALL.len());
        assert_eq!(count(&reasons), 2 * all);
    }
}
