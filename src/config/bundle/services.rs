//! The services of a bundle's anchors, and when its lists are to be replaced, as `portvakt cert` and the warnings need them.

use crate::{
    clock::Timestamp,
    trust::{
        GrantedType,
        bundle::{BundleDocument, ServiceEntry, Use},
        qualification::Qualification,
    },
};
use std::collections::BTreeMap;

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

/// When the first list of a bundle is to be replaced.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NextUpdate {
    /// The time by which its operator publishes the next one (TS 119 612, clause 5.3.15).
    pub at: Timestamp,
    /// The country of the list; `EU` for the list of lists.
    pub territory: String,
}

impl NextUpdate {
    /// That of a bundle: the earliest of its lists; `None` if all lists are closed.
    pub(super) fn of(document: &BundleDocument) -> Option<Self> {
        let lists = document.lists.iter().chain([&document.list_of_lists]);
        let next = lists.filter_map(|list| {
            Some(Self {
                at: list.next_update?,
                territory: list.territory.clone(),
            })
        });
        next.min()
    }
}

/// The services of each anchor.
pub(super) fn services(document: BundleDocument) -> GrantedServices {
    let mut granted = GrantedServices::new();
    for anchor in document.anchors {
        let services = anchor.services.into_iter().map(GrantedService::from);
        granted.entry(anchor.sha256).or_default().extend(services);
    }
    granted
}

impl GrantedService {
    /// Whether it issues certificates of this type.
    pub const fn is_of(&self, of: GrantedType) -> bool {
        match of {
            GrantedType::Eseal => self.seals,
            GrantedType::Web => self.websites,
        }
    }
}

impl From<ServiceEntry> for GrantedService {
    fn from(written: ServiceEntry) -> Self {
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
