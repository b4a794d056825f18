//! The certificates of the record that end soon (CTL-3).

use super::record::{SeenRecord, fingerprint_of};
use crate::{
    clock::Timestamp,
    interface::TppId,
    trust::{judgement::serial_hex, validity_of},
};
use openssl::x509::X509;
use std::collections::BTreeSet;

/// How long before its end a certificate is spoken of, in seconds: 30 days.
const SOON: u64 = 30 * 86_400;

/// What the keeper finds in the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenEvent {
    /// A TPP was not seen within 30 days before.
    New(TppId),
    /// A TPP was seen before this start. A process that was killed may have told nobody.
    Before(TppId),
    /// A certificate ends within 30 days.
    Ends {
        /// The TPP that it identifies.
        tpp: TppId,
        /// The serial number in upper-case hexadecimal digits.
        serial: String,
        /// The last second in which it is valid.
        end: Timestamp,
    },
}

/// The certificates of which was spoken.
#[derive(Debug, Default)]
pub(super) struct Spoken(BTreeSet<[u8; 32]>);

impl Spoken {
    /// The certificates that end soon, each once. Those that have ended are left out.
    pub(super) fn take_ending(&mut self, record: &SeenRecord, now: Timestamp) -> Vec<SeenEvent> {
        let own = record
            .all()
            .map(|seen| fingerprint_of(&seen.certificates.leaf));
        let own: BTreeSet<_> = own.collect();
        self.0.retain(|spoken| own.contains(spoken));
        let mut found = Vec::new();
        for seen in record.all() {
            let Some((serial, end)) = serial_and_end(&seen.certificates.leaf) else {
                continue;
            };
            let left = end.unix().checked_sub(now.unix());
            let is_soon = left.is_some_and(|left| left <= SOON);
            if is_soon && self.0.insert(fingerprint_of(&seen.certificates.leaf)) {
                let tpp = seen.tpp.clone();
                found.push(SeenEvent::Ends { tpp, serial, end });
            }
        }
        found
    }
}

/// The serial number and the end of a certificate; `None` if it cannot be read.
fn serial_and_end(leaf: &[u8]) -> Option<(String, Timestamp)> {
    let leaf = X509::from_der(leaf).ok()?;
    let serial = leaf.serial_number().to_bn().ok()?.to_vec();
    let end = validity_of(&leaf).ok()?.not_after;
    Some((serial_hex(&serial), end))
}
