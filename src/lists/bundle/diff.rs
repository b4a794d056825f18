//! The difference between two bundles, line by line for people.

use portvakt_trust::KeyHash;
use portvakt_trust::bundle::{
    AnchorEntry, BundleDocument, ListEntry, NamedEntry, ServiceEntry, Use,
};
use std::collections::{BTreeMap, BTreeSet};

/// The lines that say what changed from one bundle to the next; none if nothing did.
pub fn diff(old: &BundleDocument, new: &BundleDocument) -> Vec<String> {
    let mut lines = Vec::new();
    let lists = |of: &'_ BundleDocument| -> BTreeMap<String, ListEntry> {
        let all = std::iter::once(&of.list_of_lists).chain(&of.lists);
        all.map(|list| (list.territory.clone(), list.clone()))
            .collect()
    };
    let (before, after) = (lists(old), lists(new));
    for (territory, list) in &after {
        match before.get(territory) {
            None => lines.push(format!("+ list {territory}: sequence {}", list.sequence)),
            Some(earlier) if earlier.sequence != list.sequence => lines.push(format!(
                "~ list {territory}: sequence {} to {}",
                earlier.sequence, list.sequence
            )),
            Some(earlier) if earlier.issued != list.issued => lines.push(format!(
                "~ list {territory}: sequence {} again, issued {}, before {}: a new issue should have a new number (ETSI TS 119 612, clause 5.3.2)",
                list.sequence, list.issued, earlier.issued
            )),
            Some(_) => {}
        }
    }
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    lines.extend(gone.map(|territory| format!("- list {territory}")));
    lines.extend(anchors(old, new));
    lines.extend(named(old, new));
    lines
}

/// The CAs that the lists name from now on without granting them, or do not name any more.
fn named(old: &BundleDocument, new: &BundleDocument) -> Vec<String> {
    let (mut before, after) = (by_key(old), by_key(new));
    let mut lines = Vec::new();
    for (key, named) in after {
        match before.remove(&key) {
            None => lines.push(format!("+ named, and vouches for nothing: {}", line(named))),
            Some(earlier) if earlier.state != named.state => lines.push(format!(
                "~ named, before {}: {}",
                earlier.state,
                line(named)
            )),
            Some(_) => {}
        }
    }
    let gone = before.into_values();
    lines.extend(gone.map(|named| format!("- named no more: {}", line(named))));
    lines
}

fn by_key(of: &BundleDocument) -> BTreeMap<(&str, KeyHash), &NamedEntry> {
    let all = of.named.iter();
    all.map(|it| ((it.territory.as_str(), it.key_sha256), it))
        .collect()
}

fn line(of: &NamedEntry) -> String {
    let key = of.key_sha256.to_string();
    format!(
        "{} {} {} ({}), {} since {}",
        of.territory,
        key.get(..16).unwrap_or(&key),
        of.service,
        of.provider,
        of.state,
        of.since
    )
}

/// The services of a bundle that the next one no longer has for a use, one line each: their lists withdraw them, or rename them.
pub fn withdrawn(old: &BundleDocument, new: &BundleDocument) -> Vec<String> {
    let after = services(new);
    let gone = services(old).into_iter().filter_map(|(service, uses)| {
        let has = after.get(&service);
        let is_gone = |it: &Use| has.is_none_or(|has| !has.contains(it));
        let uses: Vec<_> = uses.into_iter().filter(is_gone).collect();
        let (territory, provider, name) = service;
        (!uses.is_empty()).then(|| format!("{territory} {name} ({provider}), for {}", names(&uses)))
    });
    gone.collect()
}

/// The uses of each service, by country, provider and name.
fn services(of: &BundleDocument) -> BTreeMap<(&str, &str, &str), BTreeSet<Use>> {
    let mut found: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for it in of.anchors.iter().flat_map(|anchor| &anchor.services) {
        let named = (
            it.territory.as_str(),
            it.provider.as_str(),
            it.service.as_str(),
        );
        found
            .entry(named)
            .or_default()
            .extend(it.uses.iter().copied());
    }
    found
}

fn anchors(old: &BundleDocument, new: &BundleDocument) -> Vec<String> {
    let by_digest = |of: &'_ BundleDocument| -> BTreeMap<String, AnchorEntry> {
        let all = of.anchors.iter();
        all.map(|anchor| (anchor.sha256.clone(), anchor.clone()))
            .collect()
    };
    let (before, after) = (by_digest(old), by_digest(new));
    let mut lines = Vec::new();
    let gone = before.iter().filter(|(key, _)| !after.contains_key(*key));
    lines.extend(gone.map(|(_, anchor)| format!("- {}", describe(anchor))));
    for (digest, anchor) in &after {
        match before.get(digest) {
            None => lines.push(format!("+ {}", describe(anchor))),
            Some(earlier) if earlier.uses != anchor.uses => lines.push(format!(
                "~ {}, before for {}",
                describe(anchor),
                names(&earlier.uses)
            )),
            Some(earlier) if qualifications(earlier) != qualifications(anchor) => {
                lines.push(format!("~ {}: other qualifications", describe(anchor)));
            }
            Some(_) => {}
        }
    }
    lines
}

fn qualifications(of: &AnchorEntry) -> Vec<&ServiceEntry> {
    let services = of.services.iter();
    services
        .filter(|service| !service.qualifications.is_empty())
        .collect()
}

/// An anchor in one line.
pub fn describe(anchor: &AnchorEntry) -> String {
    let (territory, provider) = match anchor.services.first() {
        Some(service) => (service.territory.as_str(), service.provider.as_str()),
        None => ("", ""),
    };
    let digest = anchor.sha256.get(..16).unwrap_or(&anchor.sha256);
    format!(
        "{territory} {digest} {} ({provider}), for {}",
        anchor.subject,
        names(&anchor.uses)
    )
}

fn names(uses: &[Use]) -> String {
    let names: Vec<_> = uses.iter().map(|of| of.folder()).collect();
    names.join(" and ")
}
