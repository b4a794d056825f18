//! What an import writes into `bundle.yaml`, of which the gateway's crate has the schema.

use crate::{
    anchors::{Anchor, Anchors, LeftOut, Provenance, Uses},
    import::{Imported, National, Source},
};
use portvakt_base::{clock::Timestamp, hex};
use portvakt_trust::bundle::{
    AnchorEntry, BundleDocument, Count, EarlierList, FORMAT, LeftOutEntry, ListEntry, NamedEntry,
    ServiceEntry, Use,
};

/// Describes what was imported, after bundles with these issues of lists.
pub fn describe_import(
    imported: &Imported,
    known: &[EarlierList],
    made: Timestamp,
) -> BundleDocument {
    let lists = imported.lists.values();
    let has = |territory: &str| {
        territory == imported.list_of_lists.scheme.territory
            || imported.lists.contains_key(territory)
    };
    let earlier = known.iter().filter(|list| !has(&list.territory));
    BundleDocument {
        format: FORMAT,
        made,
        as_of: imported.at,
        list_of_lists: list_entry(&imported.list_of_lists),
        pivots: imported.pivots.clone(),
        lists: lists.map(national_entry).collect(),
        missing: imported.missing.keys().cloned().collect(),
        earlier: earlier.cloned().collect(),
        anchors: anchors(&imported.anchors),
        named: named(&imported.anchors),
        left_out: imported.anchors.left_out().iter().map(left_out).collect(),
        end: (),
    }
}

fn list_entry(source: &Source) -> ListEntry {
    let scheme = &source.scheme;
    ListEntry {
        territory: scheme.territory.clone(),
        operator: scheme.operator.clone(),
        version: scheme.version.number(),
        sequence: scheme.sequence,
        issued: scheme.issued,
        next_update: scheme.next_update,
        sha256: hex::encode(&source.sha256),
        signer: source.signer.signer_name(),
        signer_sha256: hex::encode(&source.signer.sha256()),
        signer_not_after: Some(source.signer.not_after()),
        services: Vec::new(),
    }
}

fn national_entry(national: &National) -> ListEntry {
    let counts = national.counts.iter();
    let services = counts.map(|((service_type, state), count)| Count {
        service_type: service_type.clone(),
        state: state.clone(),
        count: *count,
    });
    ListEntry {
        services: services.collect(),
        ..list_entry(&national.source)
    }
}

/// By country, then by digest, so that two bundles can be compared by eye.
fn anchors(anchors: &Anchors) -> Vec<AnchorEntry> {
    let mut entries: Vec<_> = anchors.all().map(|(_, anchor)| entry(anchor)).collect();
    entries.sort_by(|one, other| one.file.cmp(&other.file));
    entries
}

fn entry(anchor: &Anchor) -> AnchorEntry {
    AnchorEntry {
        sha256: hex::encode(&anchor.certificate.sha256()),
        subject: anchor.certificate.subject(),
        not_after: anchor.certificate.not_after(),
        file: file_name(anchor),
        uses: uses(anchor.uses),
        services: anchor.services.iter().map(service).collect(),
    }
}

/// The name of an anchor's file: the country, and the beginning of the digest.
pub(super) fn file_name(anchor: &Anchor) -> String {
    let services = anchor.services.first();
    let territory = services.map_or("", |service| service.territory.as_str());
    let digest = hex::encode(&anchor.certificate.sha256());
    format!("{territory}-{digest:.16}.pem")
}

fn uses(of: Uses) -> Vec<Use> {
    let both = [(of.seals, Use::Seals), (of.websites, Use::Websites)];
    both.into_iter()
        .filter_map(|(has, it)| has.then_some(it))
        .collect()
}

fn service(of: &Provenance) -> ServiceEntry {
    ServiceEntry {
        territory: of.territory.clone(),
        provider: of.provider.clone(),
        service: of.service.clone(),
        granted_since: of.since,
        uses: uses(of.uses),
        qualifications: of.qualifications.clone(),
    }
}

/// By country, then by key.
fn named(anchors: &Anchors) -> Vec<NamedEntry> {
    let named = anchors.named().map(|(territory, key, of)| NamedEntry {
        key_sha256: key,
        territory: territory.to_owned(),
        provider: of.provider.clone(),
        service: of.service.clone(),
        state: of.state.clone(),
        since: of.since,
    });
    named.collect()
}

fn left_out(of: &LeftOut) -> LeftOutEntry {
    LeftOutEntry {
        territory: of.territory.clone(),
        provider: of.provider.clone(),
        service: of.service.clone(),
        reason: format!("{} (line {} of the list)", of.reason, of.line),
    }
}
