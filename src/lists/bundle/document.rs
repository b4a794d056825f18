//! `bundle.yaml`: what a bundle holds, and where each anchor comes from.
//!
//! The file is for people, and for the next import, which compares. Unknown keys are refused.

use crate::{
    anchors::{Anchor, Anchors, LeftOut, Named, Provenance, Uses},
    import::{Imported, National, Source},
    list::Qualification,
};
use openssl::x509::X509;
use portvakt_base::{clock::Timestamp, hex};
use portvakt_trust::{
    GrantedType, KeyHash,
    bundle::{DescribedBundle, DescribedList, DocumentFault, FORMAT, judge_document},
};
use serde::{Deserialize, Serialize};

/// A bundle, as `bundle.yaml` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleDocument {
    /// The version of the format: 1.
    pub format: u64,
    /// When it was made.
    #[serde(with = "moment")]
    pub made: Timestamp,
    /// The time as of which lists and services were judged.
    #[serde(with = "moment")]
    pub as_of: Timestamp,
    /// The list of lists.
    pub list_of_lists: ListEntry,
    /// The files of pivots that led to its signer, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pivots: Vec<String>,
    /// The national lists.
    #[serde(default)]
    pub lists: Vec<ListEntry>,
    /// Countries whose lists were not among the files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The anchors.
    #[serde(default)]
    pub anchors: Vec<AnchorEntry>,
    /// CAs that lists name and that are no anchors: they vouch for nothing, and no anchor above them does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<NamedEntry>,
    /// Granted services that have no anchor, or not all of theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutEntry>,
}

/// A list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListEntry {
    /// The country; `EU` for the list of lists.
    pub territory: String,
    /// The operator of the scheme.
    pub operator: String,
    /// The version of the format: 5 or 6.
    pub version: u64,
    /// The number of the issue.
    pub sequence: u64,
    /// When it was issued.
    #[serde(with = "moment")]
    pub issued: Timestamp,
    /// When the next one was due; nothing for a list that is closed.
    #[serde(default, with = "optional_moment")]
    pub next_update: Option<Timestamp>,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// The subject of the signer's certificate.
    pub signer: String,
    /// The SHA-256 of the signer's certificate.
    pub signer_sha256: String,
    /// How many services it has of each type and state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Count>,
}

/// How many services have a type and a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// The type, such as `CA/QC`.
    #[serde(rename = "type")]
    pub service_type: String,
    /// The state, such as `granted`.
    pub state: String,
    /// How many.
    pub count: u64,
}

/// An anchor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnchorEntry {
    /// The SHA-256 of the certificate.
    pub sha256: String,
    /// Its subject.
    pub subject: String,
    /// When it ends.
    #[serde(with = "moment")]
    pub not_after: Timestamp,
    /// The name of its file, in the folders that `for` names.
    pub file: String,
    /// `seals`, `websites` or both.
    #[serde(rename = "for")]
    pub uses: Vec<Use>,
    /// The services that it identifies.
    pub services: Vec<ServiceEntry>,
}

/// What an anchor serves for, which is the name of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// Qualified certificates for electronic seals.
    Seals,
    /// Qualified certificates for authentication of web sites.
    Websites,
}

impl Use {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Seals, Self::Websites];

    /// The name of its folder.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Seals => GrantedType::Eseal.name(),
            Self::Websites => GrantedType::Web.name(),
        }
    }
}

/// A service of an anchor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceEntry {
    /// The country of the list.
    pub territory: String,
    /// The provider.
    pub provider: String,
    /// The service.
    pub service: String,
    /// Since when it is granted.
    #[serde(with = "moment")]
    pub granted_since: Timestamp,
    /// `seals`, `websites` or both.
    #[serde(rename = "for")]
    pub uses: Vec<Use>,
    /// Which of its certificates are more, or less, than they say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub qualifications: Vec<Qualification>,
}

/// A CA that is no anchor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedEntry {
    /// The SHA-256 of its public key (SubjectPublicKeyInfo): a service is that of a key, whichever certificate has it.
    pub key_sha256: String,
    /// The country of the list.
    pub territory: String,
    /// The provider.
    pub provider: String,
    /// The service.
    pub service: String,
    /// The state, such as `withdrawn`; `granted` for a service that is not for seals or web sites.
    pub state: String,
    /// Since when it is in this state.
    #[serde(with = "moment")]
    pub since: Timestamp,
}

/// A service without an anchor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOutEntry {
    /// The country of the list.
    pub territory: String,
    /// The provider.
    pub provider: String,
    /// The service.
    pub service: String,
    /// Why.
    pub reason: String,
}

impl BundleDocument {
    /// Describes what was imported.
    pub fn new(imported: &Imported, made: Timestamp) -> Self {
        let lists = imported.lists.values();
        Self {
            format: FORMAT,
            made,
            as_of: imported.at,
            list_of_lists: ListEntry::new(&imported.list_of_lists),
            pivots: imported.pivots.clone(),
            lists: lists.map(ListEntry::of_national).collect(),
            missing: imported.missing.keys().cloned().collect(),
            anchors: anchors(&imported.anchors),
            named: named(&imported.anchors),
            left_out: imported.anchors.left_out().iter().map(left_out).collect(),
        }
    }

    /// Judges what it says of its times and lists.
    ///
    /// # Errors
    /// It contradicts itself.
    pub fn judge(&self) -> Result<(), DocumentFault> {
        let lists = std::iter::once(&self.list_of_lists).chain(&self.lists);
        judge_document(DescribedBundle {
            made: self.made,
            as_of: self.as_of,
            lists: lists.map(|list| DescribedList {
                territory: &list.territory,
                issued: list.issued,
                next_update: list.next_update,
            }),
            anchors: self.anchors.iter().map(|anchor| anchor.sha256.as_str()),
        })
    }

    /// How many anchors serve for a use.
    pub fn count(&self, of: Use) -> usize {
        let anchors = self.anchors.iter();
        anchors.filter(|anchor| anchor.uses.contains(&of)).count()
    }

    /// The list of a country, or the list of lists.
    pub fn list(&self, territory: &str) -> Option<&ListEntry> {
        let mut lists = std::iter::once(&self.list_of_lists).chain(&self.lists);
        lists.find(|list| list.territory == territory)
    }
}

impl ListEntry {
    fn new(source: &Source) -> Self {
        let scheme = &source.scheme;
        Self {
            territory: scheme.territory.clone(),
            operator: scheme.operator.clone(),
            version: scheme.version.number(),
            sequence: scheme.sequence,
            issued: scheme.issued,
            next_update: scheme.next_update,
            sha256: hex::encode(&source.sha256),
            signer: source.signer.subject(),
            signer_sha256: hex::encode(&source.signer.sha256()),
            services: Vec::new(),
        }
    }

    fn of_national(national: &National) -> Self {
        let counts = national.counts.iter();
        let services = counts.map(|((service_type, state), count)| Count {
            service_type: service_type.clone(),
            state: state.clone(),
            count: *count,
        });
        Self {
            services: services.collect(),
            ..Self::new(&national.source)
        }
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

/// Those whose keys can be read, by country, then by key, each key once. One whose key cannot be read issues nothing that passes.
fn named(anchors: &Anchors) -> Vec<NamedEntry> {
    let mut entries: Vec<_> = anchors.named().filter_map(named_entry).collect();
    let place = |it: &NamedEntry| (it.territory.clone(), it.key_sha256.clone());
    entries.sort_by_key(place);
    entries.dedup_by_key(|entry| place(entry));
    entries
}

fn named_entry(of: &Named) -> Option<NamedEntry> {
    let certificate = X509::from_der(of.certificate.der()).ok()?;
    Some(NamedEntry {
        key_sha256: KeyHash::of(&certificate).ok()?.to_string(),
        territory: of.territory.clone(),
        provider: of.provider.clone(),
        service: of.service.clone(),
        state: of.state.clone(),
        since: of.since,
    })
}

fn left_out(of: &LeftOut) -> LeftOutEntry {
    LeftOutEntry {
        territory: of.territory.clone(),
        provider: of.provider.clone(),
        service: of.service.clone(),
        reason: format!("{} (line {} of the list)", of.reason, of.line),
    }
}

/// Times as RFC 3339 in UTC.
mod moment {
    use portvakt_base::clock::Timestamp;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(at)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(from)?;
        let parsed = text.parse::<jiff::Timestamp>().ok();
        let seconds = parsed.and_then(|at| u64::try_from(at.as_second()).ok());
        seconds
            .map(Timestamp::from_unix)
            .ok_or_else(|| D::Error::custom("expected a time in UTC"))
    }
}

/// Times that may be missing.
mod optional_moment {
    use portvakt_base::clock::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Moment(#[serde(with = "super::moment")] Timestamp);

    pub(super) fn serialize<S: Serializer>(
        at: &Option<Timestamp>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        at.map(|at| at.to_string()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let moment = Option::<Moment>::deserialize(from)?;
        Ok(moment.map(|Moment(at)| at))
    }
}
