//! `bundle.yaml`, as the gateway reads it: which certificates a bundle holds, of which services they are, and when its lists are to be
//! replaced.
//!
//! Invariants: the schema is closed, so that a bundle with a meaning that this gateway does not know is refused; time and memory are
//! bounded.

use crate::{
    clock::Timestamp,
    trust::{
        GrantedType, KeyHash, ListedService,
        bundle::{
            DescribedBundle, DescribedList, DocumentFault, FORMAT, MAX_EVENTS, MAX_NESTING,
            MAX_NODES, judge_document,
        },
        qualification::Qualification,
    },
};
use serde::{Deserialize, Deserializer, de::Error as _, de::IgnoredAny};
use serde_saphyr::{Error, budget::BudgetBreach};
use std::collections::BTreeMap;

/// The most anchors of a bundle. The lists of all countries have some hundreds of granted services that issue certificates.
const MAX_ANCHORS: usize = 10_000;

/// What a bundle holds.
#[derive(Debug)]
pub(super) struct BundleDocument {
    /// When it was imported.
    pub(super) made: Timestamp,
    /// The time as of which services were judged: an import with `--at` judges as of another time than its own.
    pub(super) as_of: Timestamp,
    /// The list that is to be replaced first, with its country; `None` if all lists are closed.
    pub(super) next_update: Option<NextUpdate>,
    /// The SHA-256 of the anchors for seals, in hexadecimal digits, by the names of their files.
    pub(super) seals: Listed,
    /// The same of the anchors for web sites.
    pub(super) websites: Listed,
    /// The services of each anchor.
    pub(super) services: GrantedServices,
    /// The keys of CAs that lists name and that are no anchors.
    pub(super) named: Vec<KeyHash>,
}

/// The services of anchors, by the SHA-256 of the anchor's certificate in hexadecimal digits.
pub type GrantedServices = BTreeMap<String, Vec<GrantedService>>;

/// A service of a trusted list that is granted, and that an anchor identifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantedService {
    /// The country of the list.
    pub territory: String,
    /// The provider (TSP).
    pub provider: String,
    /// The service.
    pub service: String,
    /// Since when it is granted.
    pub granted_since: Timestamp,
    /// Whether it issues qualified certificates for seals.
    pub seals: bool,
    /// Whether it issues qualified certificates for web sites.
    pub websites: bool,
    /// Which of its certificates are not what they say themselves (CRT-3).
    pub qualifications: Vec<Qualification>,
}

/// The SHA-256 of certificates, by the names of their files.
pub(super) type Listed = BTreeMap<String, String>;

/// When the first list of a bundle is to be replaced.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NextUpdate {
    /// The time by which its operator publishes the next one (TS 119 612, clause 5.3.15).
    pub at: Timestamp,
    /// The country of the list; `EU` for the list of lists.
    pub territory: String,
}

/// The file. `_` begins the name of a field that only has to be there.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "format")]
    _format: u64,
    #[serde(deserialize_with = "moment")]
    made: Timestamp,
    #[serde(deserialize_with = "moment")]
    as_of: Timestamp,
    list_of_lists: List,
    #[serde(default, rename = "pivots")]
    _pivots: IgnoredAny,
    #[serde(default)]
    lists: Vec<List>,
    #[serde(default, rename = "missing")]
    _missing: IgnoredAny,
    #[serde(default)]
    anchors: Vec<Anchor>,
    #[serde(default)]
    named: Vec<Named>,
    #[serde(default, rename = "left_out")]
    _left_out: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    territory: String,
    #[serde(rename = "operator")]
    _operator: IgnoredAny,
    #[serde(rename = "version")]
    _version: IgnoredAny,
    #[serde(rename = "sequence")]
    _sequence: IgnoredAny,
    #[serde(deserialize_with = "moment")]
    issued: Timestamp,
    #[serde(default)]
    next_update: Option<Moment>,
    #[serde(rename = "sha256")]
    _sha256: IgnoredAny,
    #[serde(rename = "signer")]
    _signer: IgnoredAny,
    #[serde(rename = "signer_sha256")]
    _signer_sha256: IgnoredAny,
    #[serde(default, rename = "services")]
    _services: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Anchor {
    sha256: String,
    #[serde(rename = "subject")]
    _subject: IgnoredAny,
    #[serde(rename = "not_after")]
    _not_after: IgnoredAny,
    file: String,
    #[serde(rename = "for")]
    uses: Vec<Use>,
    services: Vec<Service>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    #[serde(deserialize_with = "key_hash")]
    key_sha256: KeyHash,
    #[serde(rename = "territory")]
    _territory: IgnoredAny,
    #[serde(rename = "provider")]
    _provider: IgnoredAny,
    #[serde(rename = "service")]
    _service: IgnoredAny,
    #[serde(rename = "state")]
    _state: IgnoredAny,
    #[serde(rename = "since")]
    _since: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Service {
    territory: String,
    provider: String,
    service: String,
    #[serde(deserialize_with = "moment")]
    granted_since: Timestamp,
    #[serde(rename = "for")]
    uses: Vec<Use>,
    #[serde(default)]
    qualifications: Vec<Qualification>,
}

impl GrantedService {
    /// Whether it issues certificates of this type.
    pub const fn is_of(&self, of: GrantedType) -> bool {
        match of {
            GrantedType::Eseal => self.seals,
            GrantedType::Web => self.websites,
        }
    }

    /// What matters for the anchor that identifies it.
    pub(super) fn listed(&self) -> ListedService<'_> {
        ListedService {
            seals: self.seals,
            websites: self.websites,
            qualifications: &self.qualifications,
        }
    }
}

impl From<Service> for GrantedService {
    fn from(written: Service) -> Self {
        Self {
            seals: written.uses.contains(&Use::Seals),
            websites: written.uses.contains(&Use::Websites),
            territory: written.territory,
            provider: written.provider,
            service: written.service,
            granted_since: written.granted_since,
            qualifications: written.qualifications,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Use {
    Seals,
    Websites,
}

/// Enough of the file to know its format.
#[derive(Deserialize)]
struct Format {
    format: u64,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Moment(#[serde(deserialize_with = "moment")] Timestamp);

/// A time as RFC 3339 in UTC.
fn moment<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(from)?;
    let parsed = text.parse::<jiff::Timestamp>().ok();
    let seconds = parsed.and_then(|at| u64::try_from(at.as_second()).ok());
    let found = seconds.map(Timestamp::from_unix);
    found.ok_or_else(|| D::Error::custom("expected a time in UTC, such as 2026-01-31T12:00:00Z"))
}

fn key_hash<'de, D: Deserializer<'de>>(from: D) -> Result<KeyHash, D::Error> {
    let text = String::deserialize(from)?;
    let found = KeyHash::parse(&text);
    found.ok_or_else(|| D::Error::custom("expected the SHA-256 of a key, 64 hexadecimal digits"))
}

impl BundleDocument {
    /// Reads the document.
    ///
    /// # Errors
    /// The first fault, with its line.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        // The format comes first: of another one, a key that is unknown here would be no fault.
        let text_of = |fault: DocumentFault| fault.to_string();
        let Format { format } = parse(text).map_err(text_of)?;
        if format != FORMAT {
            return Err(format!(
                "it has the format {format}, and this gateway reads {FORMAT}; import with the portvakt-lists of this version"
            ));
        }
        let written: Written = parse(text).map_err(text_of)?;
        let count = written.anchors.len();
        if count > MAX_ANCHORS {
            return Err(format!(
                "it lists {count} anchors; at most {MAX_ANCHORS} are read"
            ));
        }
        let lists = std::iter::once(&written.list_of_lists).chain(&written.lists);
        let described = DescribedBundle {
            made: written.made,
            as_of: written.as_of,
            lists: lists.map(|list| DescribedList {
                territory: &list.territory,
                issued: list.issued,
                next_update: list.next_update.as_ref().map(|Moment(at)| *at),
            }),
            anchors: written.anchors.iter().map(|anchor| anchor.sha256.as_str()),
        };
        judge_document(described).map_err(text_of)?;
        let lists = std::iter::once(written.list_of_lists).chain(written.lists);
        let next = lists.filter_map(|list| {
            let Moment(at) = list.next_update?;
            let territory = list.territory;
            Some(NextUpdate { at, territory })
        });
        let next_update = next.min();
        let (mut seals, mut websites) = (Listed::new(), Listed::new());
        let mut granted = GrantedServices::new();
        for Anchor {
            sha256,
            file,
            uses,
            services,
            ..
        } in written.anchors
        {
            for of in uses {
                let listed = match of {
                    Use::Seals => &mut seals,
                    Use::Websites => &mut websites,
                };
                if listed.insert(file.clone(), sha256.clone()).is_some() {
                    return Err(format!("it lists {file:?} twice"));
                }
            }
            let services = services.into_iter().map(GrantedService::from);
            granted.entry(sha256).or_default().extend(services);
        }
        Ok(Self {
            made: written.made,
            as_of: written.as_of,
            next_update,
            seals,
            websites,
            services: granted,
            named: written.named.iter().map(|named| named.key_sha256).collect(),
        })
    }
}

fn parse<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, DocumentFault> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: MAX_NODES,
            max_events: MAX_EVENTS,
            max_depth: MAX_NESTING,
        },
        with_snippet: false,
    };
    let parsed = serde_saphyr::from_str_with_options(text, options);
    parsed.map_err(|error| fault_of(error.without_snippet()))
}

/// What is wrong. The parser's own words stand behind ours only, and not for a limit, which they do not name.
fn fault_of(error: &Error) -> DocumentFault {
    match error {
        Error::DuplicateMappingKey { key, location } => {
            let line = location.line();
            match key.clone() {
                Some(key) => DocumentFault::KeyTwice { line, key },
                None => DocumentFault::OtherKeyTwice { line },
            }
        }
        Error::Budget { breach, location } => {
            let line = location.line();
            match breach {
                BudgetBreach::Depth { .. } => DocumentFault::TooDeep { line },
                BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } => {
                    DocumentFault::TooManyValues { line }
                }
                _ => DocumentFault::TooMuch { line },
            }
        }
        other => DocumentFault::NoDocument(other.to_string()),
    }
}
