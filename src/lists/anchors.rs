//! Which certificates of a list are trust anchors at a time (CRT-13, ETSI TS 119 615).
//!
//! Invariant: an anchor identifies a service of the type CA/QC whose state is `granted` at that time, whose additional information names
//! electronic seals or authentication of web sites, and whose critical extensions are all known. Every other certificate by which a list
//! names a CA/QC service is kept as [`Named`]: it vouches for nothing, and no anchor above it does. Deliberately not here: whether a
//! certificate below an anchor is qualified; its own statements say that, and the qualifications, which are kept with the anchor.

use crate::{
    certificate::Certificate,
    list::{CA_QC, GRANTED, Identity, Qualification, Service, State, TrustedList},
};
use portvakt_base::clock::Timestamp;
use portvakt_trust::KeyHash;
use std::collections::{BTreeMap, BTreeSet};

/// For which certificates of TPPs an anchor serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Qualified certificates for electronic seals (QSealC).
    pub seals: bool,
    /// Qualified certificates for authentication of web sites (QWAC).
    pub websites: bool,
}

impl Uses {
    fn of(state: &State) -> Self {
        let names = |wanted: &str| state.extensions.additional.iter().any(|it| it == wanted);
        Self {
            seals: names("ForeSeals"),
            websites: names("ForWebSiteAuthentication"),
        }
    }

    /// Whether it serves for any.
    pub const fn any(self) -> bool {
        self.seals || self.websites
    }

    /// Both, if either has it.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            seals: self.seals || other.seals,
            websites: self.websites || other.websites,
        }
    }
}

/// A trust anchor, and the services that it identifies.
#[derive(Clone, Debug)]
pub struct Anchor {
    /// The certificate.
    pub certificate: Certificate,
    /// For what it serves.
    pub uses: Uses,
    /// The services, in the order of the lists.
    pub services: Vec<Provenance>,
}

/// The service for which a certificate is an anchor.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// The country of the list.
    pub territory: String,
    /// The provider of the service.
    pub provider: String,
    /// The service.
    pub service: String,
    /// Since when it is granted.
    pub since: Timestamp,
    /// For what.
    pub uses: Uses,
    /// Which of its certificates are more, or less, than they say.
    pub qualifications: Vec<Qualification>,
}

/// A CA that a list names, and that is no anchor, such as one whose service was withdrawn.
#[derive(Clone, Debug)]
pub struct Named {
    /// The provider of the service.
    pub provider: String,
    /// The service.
    pub service: String,
    /// The state of the service, such as `withdrawn`.
    pub state: String,
    /// Since when it is in this state.
    pub since: Timestamp,
}

/// A service of which something is missing: an anchor, or the key by which its CA would be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The country of the list.
    pub territory: String,
    /// The provider of the service.
    pub provider: String,
    /// The service.
    pub service: String,
    /// Why.
    pub reason: String,
    /// The line of the list.
    pub line: usize,
}

/// Anchors of several lists, one for each certificate.
#[derive(Clone, Debug, Default)]
pub struct Anchors {
    found: BTreeMap<[u8; 32], Anchor>,
    /// By country and key.
    named: BTreeMap<(String, KeyHash), Named>,
    /// The keys of anchors.
    keys: BTreeSet<KeyHash>,
    left_out: Vec<LeftOut>,
}

impl Anchors {
    /// Adds those of a list as of a time.
    pub fn add(&mut self, list: &TrustedList, at: Timestamp) {
        let territory = &list.scheme.territory;
        for service in &list.services {
            // One whose first state lies ahead is not granted yet, so that it is named by that state.
            let now = service.state_at(at);
            let first = service.history.last().unwrap_or(&service.current);
            let state = now.unwrap_or(first);
            if state.service_type != CA_QC {
                continue;
            }
            match now.is_some() && state.status == GRANTED && Uses::of(state).any() {
                true => self.add_service(territory, service, state),
                false => {
                    self.tell(territory, service, state, not_named(service, state));
                    self.name(territory, service, state);
                }
            }
        }
    }

    /// By the SHA-256 of the certificate.
    pub fn all(&self) -> impl Iterator<Item = (&[u8; 32], &Anchor)> {
        self.found.iter()
    }

    /// The CAs that lists name and that are no anchors, with country and key, each once.
    pub fn named(&self) -> impl Iterator<Item = (&str, KeyHash, &Named)> {
        let named = self.named.iter();
        let named = named.filter(|((_, key), _)| !self.keys.contains(key));
        named.map(|((territory, key), named)| (territory.as_str(), *key, named))
    }

    /// Services that have no anchor, not all, or no key to be named by, with the reason.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Keeps the reason why something of a service is missing, if there is one.
    fn tell(&mut self, territory: &str, service: &Service, state: &State, reason: Option<String>) {
        self.left_out.extend(reason.map(|reason| LeftOut {
            territory: territory.to_owned(),
            provider: service.provider.clone(),
            service: state.name.clone(),
            reason,
            line: service.line,
        }));
    }

    fn name(&mut self, territory: &str, service: &Service, state: &State) {
        for key in &service.identity.keys {
            let named = self.named.entry((territory.to_owned(), *key));
            named.or_insert_with(|| Named {
                provider: service.provider.clone(),
                service: state.name.clone(),
                state: state.status.clone(),
                since: state.since,
            });
        }
    }

    fn add_service(&mut self, territory: &str, service: &Service, state: &State) {
        let uses = Uses::of(state);
        self.tell(
            territory,
            service,
            state,
            reason_to_leave_out(service, state),
        );
        if !state.extensions.unknown.is_empty() {
            self.name(territory, service, state);
            return;
        }
        // What is no anchor vouches for nothing: a key that only `ds:KeyValue` has, or that no anchor may have.
        self.name(territory, service, state);
        for certificate in &service.identity.certificates {
            // The gateway refuses a bundle with an anchor whose key it cannot compare.
            let Ok(key) = certificate.key() else {
                continue;
            };
            self.keys.insert(key);
            let anchor = self.found.entry(certificate.sha256());
            let anchor = anchor.or_insert_with(|| Anchor {
                certificate: certificate.clone(),
                uses: Uses::default(),
                services: Vec::new(),
            });
            anchor.uses = anchor.uses.or(uses);
            anchor.services.push(Provenance {
                territory: territory.to_owned(),
                provider: service.provider.clone(),
                service: state.name.clone(),
                since: state.since,
                uses,
                qualifications: state.extensions.qualifications.clone(),
            });
        }
    }
}

/// How many certificates of a service cannot be read, or have a key that cannot be.
fn unreadable(identity: &Identity) -> usize {
    let all = identity.certificates.iter();
    let keyless = all.filter(|certificate| certificate.key().is_err());
    identity.unreadable.saturating_add(keyless.count())
}

/// Why a CA that is not granted is not named, or not by each of its certificates and keys.
fn not_named(service: &Service, state: &State) -> Option<String> {
    let status = &state.status;
    match (service.identity.keys.is_empty(), service.identity.keyless) {
        (true, 0) => Some(format!(
            "{status}, and without a certificate or a key, so that its CA is not named: a chain through it to a granted CA passes"
        )),
        (false, 0) => None,
        (_, count) => Some(format!(
            "{status}, and {count} of its certificates and keys cannot be read or compared, so that a CA with that key is not named: a chain through it to a granted CA passes"
        )),
    }
}

fn reason_to_leave_out(service: &Service, state: &State) -> Option<String> {
    if !state.extensions.unknown.is_empty() {
        let names = state.extensions.unknown.join(", ");
        return Some(format!(
            "a critical extension that is unknown here: {names}"
        ));
    }
    let identity = &service.identity;
    match (identity.certificates.len(), unreadable(identity)) {
        (0, 0) => Some("it has no certificate".to_owned()),
        (_, 0) => None,
        (_, unreadable) => Some(format!("{unreadable} of its certificates cannot be read")),
    }
}
