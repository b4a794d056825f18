//! Metrics of the core's endpoints, read at each scrape.

use super::{
    facts::EndpointFacts,
    labels::OTHER,
    samples::{Families, number},
    table,
};

/// The endpoints that are shown, in the order of the configuration; the rest is added up under [`OTHER`].
pub(super) const SHOWN: usize = 4;

/// Adds the samples.
pub(super) fn add(endpoints: &[EndpointFacts], to: &mut Families) {
    let (shown, rest) = endpoints.split_at(endpoints.len().min(SHOWN));
    let rest = (!rest.is_empty()).then(|| EndpointFacts {
        upstream: OTHER.to_owned(),
        endpoint: OTHER.to_owned(),
        is_up: rest.iter().all(|one| one.is_up),
        failures: rest.iter().map(|one| one.failures).sum(),
    });
    let all: Vec<_> = shown.iter().chain(&rest).collect();
    let samples = |value: fn(&EndpointFacts) -> f64| {
        let all = all.iter();
        all.map(move |one| ((one.upstream.as_str(), one.endpoint.as_str()), value(one)))
    };
    to.each(
        &table::ENDPOINT_UP,
        samples(|one| u8::from(one.is_up).into()),
    );
    to.each(
        &table::ENDPOINT_FAILURES,
        samples(|one| number(one.failures)),
    );
}
