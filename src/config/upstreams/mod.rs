//! The core: groups of endpoints, and the operations that each group answers (FWD-3).
//!
//! `upstreams` names several groups; `upstream` is the short form for one group with one endpoint. Invariant: each operation belongs to
//! exactly one group. Deliberately not here: connecting, resolving names, and health.

mod endpoint;
mod group;
mod health;
mod networks;
mod routes;
mod tls;

pub use endpoint::UpstreamEndpoint;
pub use group::UpstreamGroup;
pub use health::{ActiveCheck, Ejection};
pub use networks::UpstreamNetworks;
pub use tls::UpstreamTls;

use super::fault::FilePosition;
use super::inspection::Inspection;
use super::section::Section;
use super::value::Value;
use crate::interface::operations::{Catalogue, Operation};
use group::WrittenGroup;
use routes::{Routes, WrittenRoutes};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The name of the group that the short form makes.
const SHORT_FORM: &str = "core";

/// The most groups: their names are labels of metrics.
const MOST_GROUPS: usize = 16;

/// All groups of the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstreams {
    groups: Vec<Arc<UpstreamGroup>>,
    /// The index of a group, by the name of an operation.
    by_operation: BTreeMap<String, usize>,
}

impl Upstreams {
    /// The groups, at least one, in the order of the file.
    pub fn groups(&self) -> &[Arc<UpstreamGroup>] {
        &self.groups
    }

    /// The address of the first endpoint; `None` if it is a name.
    pub fn first_address(&self) -> Option<SocketAddr> {
        self.groups.first()?.first_address()
    }

    /// The index of the group that answers an operation.
    pub fn index_of(&self, operation: &Operation) -> usize {
        if self.groups.len() == 1 {
            return 0;
        }
        let index = self.by_operation.get(operation.name.as_str());
        index.copied().unwrap_or_default()
    }

    /// The longest time that a request may wait for the head of an answer.
    pub fn longest(&self) -> Duration {
        let times = self.groups.iter().map(|group| group.timeout);
        times.max().unwrap_or_default()
    }

    /// The most requests that the core has at once.
    pub fn max_in_flight(&self) -> usize {
        let most = self.groups.iter().map(|group| group.max_in_flight);
        most.fold(0, usize::saturating_add)
    }
}

/// The groups as written.
pub(super) struct WrittenUpstreams {
    groups: Vec<(WrittenGroup, WrittenRoutes)>,
    place: FilePosition,
}

impl WrittenUpstreams {
    /// Reads `upstreams` or `upstream`. `own` are the gateway's addresses.
    pub(super) fn read(
        root: &mut Section<'_>,
        own: [Option<SocketAddr>; 2],
        base: &Path,
    ) -> Option<Self> {
        let place = root.place_of("upstreams");
        let Some(mut section) = root.optional_section("upstreams") else {
            let group = short_form(root.section("upstream"), own, base)?;
            return Some(Self {
                groups: vec![(group, None)],
                place,
            });
        };
        if root.has("upstream") {
            root.fault(
                "upstream",
                "is the short form of upstreams; use one of both",
            );
        }
        let entries = section.entries();
        section.finish();
        if entries.is_empty() || entries.len() > MOST_GROUPS {
            root.fault("upstreams", format!("expected 1 to {MOST_GROUPS} groups"));
            return None;
        }
        let groups = entries
            .iter()
            .map(|(key, value)| read_group(key, value, own, base))
            .collect::<Vec<_>>();
        let groups = groups.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Self { groups, place })
    }

    /// The longest time that a request may wait for the head of an answer.
    pub(super) fn longest(&self) -> Duration {
        let times = self.groups.iter().map(|(group, _)| group.timeout());
        times.max().unwrap_or_default()
    }

    /// The groups with their operations; reports operations that no group or several groups answer.
    pub(super) fn checked(self, catalogue: &Catalogue, inspection: &Inspection) -> Upstreams {
        let mut groups = Vec::new();
        let mut all = Routes::new(catalogue, inspection);
        for (index, (group, routes)) in self.groups.into_iter().enumerate() {
            let group = group.checked(catalogue, inspection);
            all.add(index, &group.name, &self.place, routes);
            groups.push(Arc::new(group));
        }
        Upstreams {
            groups,
            by_operation: all.finish(&self.place),
        }
    }
}

/// The short form: one endpoint, which answers every operation.
fn short_form(
    mut section: Section<'_>,
    own: [Option<SocketAddr>; 2],
    base: &Path,
) -> Option<WrittenGroup> {
    let address = section.required("address");
    let endpoint = address.and_then(|value| UpstreamEndpoint::of(&value, 1, own));
    let group = WrittenGroup::read(
        SHORT_FORM,
        &mut section,
        endpoint.into_iter().collect(),
        base,
    );
    section.finish();
    group
}

fn read_group(
    key: &Value<'_>,
    value: &Value<'_>,
    own: [Option<SocketAddr>; 2],
    base: &Path,
) -> Option<(WrittenGroup, WrittenRoutes)> {
    let name = group_name(key);
    let mut section = value.as_section();
    let listed = section.list("endpoints");
    if listed.as_ref().is_some_and(Vec::is_empty) {
        section.fault("endpoints", "a group has at least one endpoint");
    }
    let endpoints = listed.unwrap_or_default();
    let endpoints = endpoints
        .iter()
        .filter_map(|value| UpstreamEndpoint::read(value, own))
        .collect();
    let has_operations = section.has("operations");
    let operations = section.optional_list("operations").unwrap_or_default();
    let operations = operations.iter().filter_map(|value| {
        let name = value.as_str()?;
        Some((name.to_owned(), value.place().clone()))
    });
    let operations: Vec<_> = operations.collect();
    if has_operations && operations.is_empty() {
        let text = "the group gets no operation; list some, or leave the key out for all that no other group lists";
        section.fault("operations", text);
    }
    let group = WrittenGroup::read(name.unwrap_or_default(), &mut section, endpoints, base);
    section.finish();
    Some((group?, has_operations.then_some(operations)))
}

/// A name that may be a label of a metric.
fn group_name<'a>(key: &Value<'a>) -> Option<&'a str> {
    let text = key.as_str()?;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.len() <= 32 && text.bytes().all(is_plain) {
        return Some(text);
    }
    key.refuse("a name of at most 32 lower-case letters, digits and dashes")
}
