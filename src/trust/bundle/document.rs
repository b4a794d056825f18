//! `bundle.yaml`: what a bundle holds, and where each anchor comes from.
//!
//! The file is for people, for the next import, which compares, and for the gateway. Invariant: both programs read it by this schema, which
//! is closed, so that a bundle with a meaning that this version does not know is refused. Deliberately not here: how it is read (`reading`).

use super::forms;
use crate::{GrantedType, KeyHash, ListedService, qualification::Qualification};
use portvakt_base::clock::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A bundle, as `bundle.yaml` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleDocument {
    /// The version of the format: [`super::FORMAT`].
    pub format: u64,
    /// When it was made.
    #[serde(with = "forms::moment")]
    pub made: Timestamp,
    /// The time as of which lists and services were judged.
    #[serde(with = "forms::moment")]
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
    #[serde(
        default,
        deserialize_with = "forms::territories",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub missing: Vec<String>,
    /// Lists of earlier bundles that this one has not: none that is older may come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierList>,
    /// The anchors.
    #[serde(default)]
    pub anchors: Vec<AnchorEntry>,
    /// CAs that lists name and that are no anchors: they vouch for nothing, and no anchor above them does. The key is always there, so that
    /// a document without it says nothing of CAs that were withdrawn, and is refused.
    pub named: Vec<NamedEntry>,
    /// Services of which a certificate is missing or cannot be read, or that have an unknown extension.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutEntry>,
    /// The last line, without which the document was cut off: what is distrusted stands at its end.
    #[serde(with = "forms::end")]
    pub end: (),
}

/// A list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListEntry {
    /// The country; `EU` for the list of lists.
    #[serde(deserialize_with = "forms::territory")]
    pub territory: String,
    /// The operator of the scheme.
    pub operator: String,
    /// The version of the format: 5 or 6.
    #[serde(deserialize_with = "forms::version")]
    pub version: u64,
    /// The number of the issue.
    #[serde(deserialize_with = "forms::sequence")]
    pub sequence: u64,
    /// When it was issued.
    #[serde(with = "forms::moment")]
    pub issued: Timestamp,
    /// When the next one was due; nothing for a list that is closed.
    #[serde(default, with = "forms::optional_moment")]
    pub next_update: Option<Timestamp>,
    /// The SHA-256 of the file.
    #[serde(deserialize_with = "forms::sha256")]
    pub sha256: String,
    /// The country, the organisation and the common name of the signer's certificate; its whole subject in a bundle that an import before
    /// 0.1.0 wrote.
    pub signer: String,
    /// The SHA-256 of the signer's certificate.
    #[serde(deserialize_with = "forms::sha256")]
    pub signer_sha256: String,
    /// When the signer's certificate ends; nothing in a bundle that an import before 0.1.0 wrote.
    #[serde(
        default,
        with = "forms::optional_moment",
        skip_serializing_if = "Option::is_none"
    )]
    pub signer_not_after: Option<Timestamp>,
    /// How many services it has of each type and state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Count>,
}

/// The last issue of a list that a bundle has not, because it was left out or is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierList {
    /// The country; `EU` for the list of lists.
    #[serde(deserialize_with = "forms::territory")]
    pub territory: String,
    /// The number of the issue.
    #[serde(deserialize_with = "forms::sequence")]
    pub sequence: u64,
    /// When it was issued.
    #[serde(with = "forms::moment")]
    pub issued: Timestamp,
    /// The SHA-256 of the file.
    #[serde(deserialize_with = "forms::sha256")]
    pub sha256: String,
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
    #[serde(deserialize_with = "forms::sha256")]
    pub sha256: String,
    /// Its subject.
    pub subject: String,
    /// When it ends.
    #[serde(with = "forms::moment")]
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

/// A service of an anchor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceEntry {
    /// The country of the list.
    #[serde(deserialize_with = "forms::territory")]
    pub territory: String,
    /// The provider.
    pub provider: String,
    /// The service.
    pub service: String,
    /// Since when it is granted.
    #[serde(with = "forms::moment")]
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
    /// The hash of its public key: a service is that of a key, whichever certificate has it.
    #[serde(with = "forms::key_hash")]
    pub key_sha256: KeyHash,
    /// The country of the list.
    #[serde(deserialize_with = "forms::territory")]
    pub territory: String,
    /// The provider.
    pub provider: String,
    /// The service.
    pub service: String,
    /// The state, such as `withdrawn`; `granted` for a service that is not for seals or web sites.
    pub state: String,
    /// Since when it is in this state.
    #[serde(with = "forms::moment")]
    pub since: Timestamp,
}

/// A service that lacks an anchor, or whose CA is not named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOutEntry {
    /// The country of the list.
    #[serde(deserialize_with = "forms::territory")]
    pub territory: String,
    /// The provider.
    pub provider: String,
    /// The service.
    pub service: String,
    /// Why.
    pub reason: String,
}

/// The SHA-256 of anchors in hexadecimal digits, by the names of their files.
pub(super) type Files<'d> = BTreeMap<&'d str, &'d str>;

impl BundleDocument {
    /// The files of the anchors for a use.
    pub(super) fn files(&self, of: Use) -> Files<'_> {
        let serving = self.anchors.iter().filter(|it| it.uses.contains(&of));
        serving
            .map(|anchor| (anchor.file.as_str(), anchor.sha256.as_str()))
            .collect()
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

impl Use {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Seals, Self::Websites];

    /// The type of certificate.
    pub const fn granted(self) -> GrantedType {
        match self {
            Self::Seals => GrantedType::Eseal,
            Self::Websites => GrantedType::Web,
        }
    }

    /// The name of its folder.
    pub const fn folder(self) -> &'static str {
        self.granted().name()
    }
}

impl ServiceEntry {
    /// What matters for the anchor that identifies it.
    pub(super) fn listed(&self) -> ListedService<'_> {
        ListedService {
            seals: self.uses.contains(&Use::Seals),
            websites: self.uses.contains(&Use::Websites),
            qualifications: &self.qualifications,
        }
    }
}
