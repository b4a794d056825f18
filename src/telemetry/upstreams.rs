//! Metrics of the core's endpoints: the times of their answers, and what is read at each scrape.

use super::{
    histogram::{self, Histogram},
    labels::OTHER,
    object::{Object, member},
    samples::{Families, number},
    table,
};
use std::{sync::Arc, time::Duration};

/// The endpoints that are shown, in the order of the configuration; the rest is added up under [`OTHER`].
pub(super) const SHOWN: usize = 4;

/// An endpoint of the core as it is configured: its name in logs and metrics, and the times of its answers.
#[derive(Debug)]
pub struct CoreEndpoint {
    /// The name of its group.
    pub upstream: String,
    /// The endpoint as it is written in the configuration.
    pub endpoint: String,
    /// Both as members of a line.
    members: Vec<u8>,
    times: Histogram,
}

impl CoreEndpoint {
    /// An endpoint that has not answered.
    pub fn new(upstream: String, endpoint: String) -> Arc<Self> {
        let mut members = Vec::new();
        let mut line = Object::begin(&mut members);
        line.value(member!("upstream"), &upstream);
        line.value(member!("endpoint"), &endpoint);
        Arc::new(Self {
            upstream,
            endpoint,
            members,
            times: Histogram::new(table::ENDPOINT_SECONDS.row.kind),
        })
    }

    /// Its name as members of a line.
    pub(super) fn members(&self) -> &[u8] {
        &self.members
    }

    /// Counts the time that it took for the head of an answer, or until the gateway waited no longer.
    pub fn took(&self, time: Duration) {
        self.times.observe(time);
    }
}

/// An endpoint of the core at a scrape.
#[derive(Clone, Debug)]
pub struct EndpointFacts {
    /// The endpoint.
    pub of: Arc<CoreEndpoint>,
    /// Whether an address of it is healthy and not ejected.
    pub is_up: bool,
    /// The failures since the start.
    pub failures: u64,
}

/// Adds the samples.
pub(super) fn add(endpoints: &[EndpointFacts], to: &mut Families) {
    let (shown, rest) = endpoints.split_at(endpoints.len().min(SHOWN));
    let rest = (!rest.is_empty()).then(|| {
        let together = CoreEndpoint::new(OTHER.to_owned(), OTHER.to_owned());
        for one in rest {
            together.times.add(&one.of.times);
        }
        EndpointFacts {
            of: together,
            is_up: rest.iter().all(|one| one.is_up),
            failures: rest.iter().map(|one| one.failures).sum(),
        }
    });
    let all: Vec<_> = shown.iter().chain(&rest).collect();
    let samples = |value: fn(&EndpointFacts) -> f64| {
        let all = all.iter();
        all.map(move |one| (one.labels(), value(one)))
    };
    to.each(
        &table::ENDPOINT_UP,
        samples(|one| u8::from(one.is_up).into()),
    );
    to.each(
        &table::ENDPOINT_FAILURES,
        samples(|one| number(one.failures)),
    );
    let times = all.iter().map(|one| (one.labels(), &one.of.times));
    histogram::add(&table::ENDPOINT_SECONDS, times, to);
}

impl EndpointFacts {
    fn labels(&self) -> (&str, &str) {
        (&self.of.upstream, &self.of.endpoint)
    }
}
