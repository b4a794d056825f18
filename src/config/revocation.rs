//! The section `revocation`: whether certificates are checked, the sources, and the behaviour if a status is unknown (CRT-6,
//! CRT-11).
//!
//! Invariants: production checks revocation; a list that can never be used (a delta or an indirect CRL, for example) is found
//! at start. Deliberately not here: whether a responder answers.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use super::fault::FilePosition;
use super::pem;
use super::section::Section;
use super::value::Value;
use super::warning::{Condition, Period};
use crate::admission::WhenUnknown;
use crate::expiring::{Expiring, Level};
use crate::interface::operations::{Catalogue, Environment};
use crate::network::Network;
use crate::private_file;
use crate::trust::revocation::{IssuerAddresses, RevocationSettings, SourceUrl};
use crate::trust::{Revocation, Validity};

/// The default time for which an OCSP response or a CRL is used after its nextUpdate.
const STALE: Duration = Duration::from_secs(3_600);

/// The longest such time that can be configured.
const LONGEST_STALE: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The default folder of the copies, beside the state's file.
const COPIES: &str = "revocation";

/// The bounds of the longest time for which an OCSP response is used.
const OCSP_MAX_AGE: RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(7 * 24 * 3_600);

/// The consequence of `open`.
const OPEN: &str = "a revoked certificate passes while nobody says that it is revoked";

/// The longest file of a CRL, in bytes: the same as for a fetched CRL.
const MAX_LIST_BYTES: u64 = 5 * 1024 * 1024;

/// The section as written.
pub(super) struct RevocationSection {
    /// The settings of the check; `None` if it is off.
    pub(super) settings: Option<RevocationSettings>,
    /// The behaviour if a status is unknown.
    pub(super) unknown: Option<WhenUnknown>,
    groups: Vec<(String, WhenUnknown, FilePosition)>,
}

impl RevocationSection {
    /// The file of the state; copies are kept beside that file.
    pub(super) fn read(
        root: &mut Section<'_>,
        environment: Environment,
        base: &Path,
        state: &Path,
    ) -> Self {
        let Some(mut section) = root.optional_section("revocation") else {
            if environment == Environment::Production {
                root.fault(
                    "revocation",
                    "production checks revocation; expected {check: on}",
                );
            }
            return Self {
                settings: None,
                unknown: None,
                groups: Vec::new(),
            };
        };
        let check = section.optional("check");
        let is_on = check
            .as_ref()
            .and_then(|value| value.one_of(&[("on", true), ("off", false)]));
        if environment == Environment::Production && is_on != Some(true) {
            section.fault("check", "production checks revocation; expected \"on\"");
        }
        let unknown = section
            .optional("unreachable")
            .and_then(|value| open_or_closed(&value));
        if unknown == Some(WhenUnknown::Open) {
            section.weakens("unreachable", OPEN);
        }
        let groups = section.optional_section("by_group").map(groups);
        let of_groups = groups.iter().flatten().map(|(_, when, _)| *when);
        let is_closed = match unknown {
            None => environment == Environment::Production,
            Some(unknown) => unknown == WhenUnknown::Closed,
        } || of_groups
            .into_iter()
            .any(|when| when == WhenUnknown::Closed);
        let settings = settings(&mut section, base, state, is_closed);
        section.finish();
        Self {
            settings: settings.filter(|_| is_on == Some(true)),
            unknown,
            groups: groups.unwrap_or_default(),
        }
    }

    /// Reads the behaviour by group; reports a group that has no operation.
    pub(super) fn by_group(
        self,
        catalogue: &Catalogue,
        report: impl Fn(FilePosition, String),
    ) -> BTreeMap<String, WhenUnknown> {
        let is_known = |group: &str| {
            let mut all = catalogue.operations().iter();
            all.any(|operation| operation.group == group)
        };
        for (group, _, place) in self.groups.iter().filter(|(group, _, _)| !is_known(group)) {
            report(
                place.clone(),
                format!("no operation has the group \"{group}\""),
            );
        }
        let pairs = self.groups.into_iter();
        pairs.map(|(group, when, _)| (group, when)).collect()
    }
}

/// Builds the checker from the settings of the sources.
pub(super) fn ready(settings: RevocationSettings) -> Result<Revocation, String> {
    Revocation::new(settings).map_err(|error| format!("revocation cannot be checked: {error}"))
}

/// `is_closed`: requests are refused if no source tells a status.
fn settings(
    section: &mut Section<'_>,
    base: &Path,
    state: &Path,
    is_closed: bool,
) -> Option<RevocationSettings> {
    let stale = section
        .optional("stale")
        .and_then(|value| value.duration(Duration::ZERO..=LONGEST_STALE));
    let networks = section
        .optional_list("private_addresses")
        .unwrap_or_default();
    let networks = networks.iter().filter_map(|value| {
        value.parse::<Network>("an IP address or a network, such as 10.1.0.0/16")
    });
    let private_addresses = networks.collect();
    let addresses = section.optional_list("addresses").unwrap_or_default();
    let mut known: Vec<IssuerAddresses> = Vec::new();
    for value in &addresses {
        let Some(of) = addresses_of(value, base) else {
            continue;
        };
        if known.iter().any(|other| other.issuer == of.issuer) {
            value.fault("the list already contains this issuer; write its addresses in one entry");
        }
        known.push(of);
    }
    let addresses = known;
    let crls = section.optional("crls");
    let lists = crls.map(|value| lists(&value, base, stale.unwrap_or(STALE), is_closed));
    let ocsp_max_age = section
        .optional("ocsp_max_age")
        .and_then(|value| value.duration(OCSP_MAX_AGE));
    let copies = section.optional("copies");
    let copies = copies.and_then(|value| value.path(base));
    let defaults = RevocationSettings::default();
    Some(RevocationSettings {
        stale: stale.unwrap_or(STALE),
        ocsp_max_age: ocsp_max_age.unwrap_or(defaults.ocsp_max_age),
        copies: Some(copies.unwrap_or_else(|| private_file::folder_of(state).join(COPIES))),
        private_addresses,
        addresses,
        lists: lists.unwrap_or_default(),
    })
}

fn open_or_closed(value: &Value<'_>) -> Option<WhenUnknown> {
    value.one_of(&[("open", WhenUnknown::Open), ("closed", WhenUnknown::Closed)])
}

fn groups(mut section: Section<'_>) -> Vec<(String, WhenUnknown, FilePosition)> {
    let mut found = Vec::new();
    for (key, value) in section.entries() {
        if let (Some(group), Some(when)) = (key.as_str(), open_or_closed(&value)) {
            if when == WhenUnknown::Open {
                value.weakens(OPEN);
            }
            found.push((group.to_owned(), when, key.place().clone()));
        }
    }
    section.finish();
    found
}

fn addresses_of(value: &Value<'_>, base: &Path) -> Option<IssuerAddresses> {
    let mut section = value.as_section();
    let issuer = section.required("issuer").and_then(|value| {
        let found = pem::certificates(&value.path(base)?);
        found.map_err(|text| value.fault(text)).ok()
    });
    let ocsp = section.optional("ocsp");
    let crl = section.optional("crl");
    if ocsp.is_none() && crl.is_none() {
        value.fault("expected an address: ocsp, crl or both");
    }
    section.finish();
    let (ocsp, crl) = (
        ocsp.and_then(|value| address_or_none(&value)),
        crl.and_then(|value| address_or_none(&value)),
    );
    let is_none = |of: &Option<Vec<SourceUrl>>| of.as_ref().is_some_and(Vec::is_empty);
    if is_none(&ocsp) && is_none(&crl) {
        value.fault("expected at least one of ocsp and crl");
    }
    Some(IssuerAddresses {
        issuer: issuer?.into_iter().next()?,
        ocsp,
        crl,
    })
}

/// `none`: the responders that certificates name are not asked.
fn address_or_none(value: &Value<'_>) -> Option<Vec<SourceUrl>> {
    let text = value.as_str()?;
    if text == "none" {
        return Some(Vec::new());
    }
    let address = SourceUrl::configured(text).map(|address| vec![address]);
    address.or_else(|| value.refuse("an http or https URL, without user and password, or none"))
}

/// The CRLs of a folder or file. `is_closed` as above.
fn lists(value: &Value<'_>, base: &Path, stale: Duration, is_closed: bool) -> Vec<Vec<u8>> {
    let Some(path) = value.path(base) else {
        return Vec::new();
    };
    let (found, faults) = pem::files(&path, MAX_LIST_BYTES);
    if found.is_empty() && faults.is_empty() && is_closed {
        let path = path.display();
        let text = format!(
            "{path} holds no CRL: requests are refused with 503 unless their certificates name a source that answers"
        );
        value.warn_while(Condition::Missing(Expiring::Crl, text));
    }
    for fault in faults {
        value.fault(fault);
    }
    let mut lists = Vec::new();
    for (path, bytes) in found {
        match Revocation::inspect(&bytes) {
            Ok(validity) => {
                value.warn_while(end_of_list(&path, validity, stale, is_closed));
                lists.push(bytes);
            }
            Err(fault) => value.fault(format!("{}: {fault}", path.display())),
        }
    }
    lists
}

/// Warns of a CRL in a file, which nobody but the operator replaces. It is over at its nextUpdate already: for the time of `stale` requests
/// pass, and then they fail all at once.
fn end_of_list(path: &Path, validity: Validity, stale: Duration, is_closed: bool) -> Condition {
    let Validity {
        not_before,
        not_after,
    } = validity;
    let (path, seconds) = (path.display(), stale.as_secs());
    let effect = match is_closed {
        true => format!(
            "{seconds} s after that, requests that rest on it are refused with 503 (revocation.stale)"
        ),
        false => OPEN.to_owned(),
    };
    Condition::Period(Period {
        of: Expiring::Crl,
        validity,
        at_end: Level::at_end(is_closed),
        texts: [
            format!("the CRL {path} is dated {not_before}, which lies ahead"),
            format!("the CRL {path} is to be replaced by {not_after}: {effect}; get the next one"),
            format!(
                "the CRL {path} was to be replaced by {not_after}: {effect}; get the next one, or remove it if another replaces it"
            ),
        ],
    })
}
