//! Everything that ends at a time or fills up while the gateway runs: each kind once.
//!
//! Invariant: `check`, the log's line a day, and the metric `portvakt_expiring` with its alerts all come from [`Finding`]s, so a kind that has
//! one of them has all of them. Deliberately not here: where a kind's end is found, which is the part that reads the file or keeps the count.

use crate::{clock::Timestamp, trust::Validity};
use portvakt_base::values;

/// A day, in seconds.
const DAY: u64 = 86_400;

/// A disk has too little room below this many bytes or below a tenth of it, the smaller of both: a volume may be small by choice.
const LITTLE: (u64, u64) = (2 << 30, 10);

/// The same where writes fail any moment.
const NONE: (u64, u64) = (64 << 20, 100);

values! {
    /// What ends or fills.
    pub enum Expiring {
        /// The certificates of the public listener, with the CAs that are sent with them.
        Listener = "listener",
        /// The OCSP responses that the listener sends.
        ListenerOcsp = "listener_ocsp",
        /// The certificate that signs answers.
        ResponseSigning = "response_signing",
        /// The certificate of the control listener.
        Control = "control",
        /// The CAs of the control listener's callers.
        ControlCa = "control_ca",
        /// The certificates that the gateway shows to the core.
        Upstream = "upstream",
        /// The CAs of the core's certificates.
        UpstreamCa = "upstream_ca",
        /// The certificate that the gateway shows to the database.
        State = "state",
        /// The CAs of the database's certificate.
        StateCa = "state_ca",
        /// The trust anchors of TPPs.
        Anchor = "anchor",
        /// Intermediates of TPPs.
        Intermediate = "intermediate",
        /// The trust anchors of client certificates.
        ClientAnchor = "client_anchor",
        /// CRLs in files.
        Crl = "crl",
        /// OCSP answers and CRLs that the gateway fetches.
        Revocation = "revocation",
        /// The bundle of trust anchors.
        Bundle = "bundle",
        /// The registers of TPPs.
        Register = "register",
        /// The number of tokens that a key of SCA links may seal.
        TokenKey = "token_key",
        /// The disk of the state.
        StateDisk = "state_disk",
        /// The disk of the audit.
        AuditDisk = "audit_disk",
        /// The disk of the logs.
        LogsDisk = "logs_disk",
        /// The disk of the copies of revocation answers.
        CopiesDisk = "copies_disk",
    }
}

/// How bad it is. The numbers are the values of `portvakt_expiring`; 0 is none of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It ends or is full soon, or it has ended without an effect on requests.
    Soon = 1,
    /// It has ended or is full, so that requests fail.
    Over = 2,
}

/// Something that an operator has to replace or to empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind.
    pub of: Expiring,
    /// How bad it is.
    pub level: Level,
    /// What it is about, when it ends or how full it is, and the effect.
    pub text: String,
}

impl Expiring {
    /// The keys of the configuration that name its files or folders; none for a limit. `[]` is an element of a list, or the value of a name.
    pub const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Listener => &[
                "listener.certificate",
                "listener.other_certificates[].certificate",
            ],
            Self::ListenerOcsp => &[
                "listener.ocsp_response",
                "listener.other_certificates[].ocsp_response",
            ],
            Self::ResponseSigning => &["response_signing.certificate"],
            Self::Control => &["control.certificate"],
            Self::ControlCa => &["control.client_ca"],
            Self::Upstream => &["upstream.tls.certificate", "upstreams[].tls.certificate"],
            Self::UpstreamCa => &["upstream.tls.ca", "upstreams[].tls.ca"],
            Self::State => &["state.postgres.tls.certificate"],
            Self::StateCa => &["state.postgres.tls.ca"],
            Self::Anchor => &["trust.anchors"],
            Self::Intermediate => &["trust.intermediates"],
            Self::ClientAnchor => &["listener.client_anchors"],
            Self::Crl => &["revocation.crls"],
            // The addresses are in the certificates, or here; an address is no path.
            Self::Revocation => &[],
            Self::Bundle => &["trust.bundle"],
            Self::Register => &["registers.eba", "registers.lists[].file"],
            Self::TokenKey => &["sca.token_keys"],
            Self::StateDisk => &["state.file"],
            Self::AuditDisk => &["audit.folder"],
            Self::LogsDisk => &["log.access_file", "log.events_file"],
            Self::CopiesDisk => &["revocation.copies"],
        }
    }

    /// Whether it is a certificate, or the OCSP response about the listener's.
    pub const fn is_certificate(self) -> bool {
        match self {
            Self::Listener
            | Self::ListenerOcsp
            | Self::ResponseSigning
            | Self::Control
            | Self::ControlCa
            | Self::Upstream
            | Self::UpstreamCa
            | Self::State
            | Self::StateCa
            | Self::Anchor
            | Self::Intermediate
            | Self::ClientAnchor => true,
            Self::Crl
            | Self::Revocation
            | Self::Bundle
            | Self::Register
            | Self::TokenKey
            | Self::StateDisk
            | Self::AuditDisk
            | Self::LogsDisk
            | Self::CopiesDisk => false,
        }
    }

    /// Whether requests fail once it has ended or is full.
    pub const fn stops_requests(self) -> bool {
        !matches!(
            self,
            Self::ListenerOcsp
                | Self::Intermediate
                | Self::Bundle
                | Self::LogsDisk
                | Self::CopiesDisk
        )
    }

    /// The time from which the gateway warns of an end. Certificates are ordered and issued, which takes weeks: 30 days, as the alert
    /// PortvaktCertificateEndsSoon. The others are renewed by a tool again and again: days, but at most a quarter of the period, because
    /// some last only a day.
    pub fn warns_from(self, period: Validity) -> Timestamp {
        let Validity {
            not_before,
            not_after,
        } = period;
        let quarter = not_after.unix().saturating_sub(not_before.unix()) / 4;
        let before = match self {
            Self::ListenerOcsp => DAY.min(quarter),
            Self::Register => (2 * DAY).min(quarter),
            Self::Crl | Self::Revocation => (3 * DAY).min(quarter),
            // A list is good for months, and its next issue comes weeks before its end: only one that comes late is told.
            Self::Bundle => 7 * DAY,
            _ => 30 * DAY,
        };
        Timestamp::from_unix(not_after.unix().saturating_sub(before))
    }

    /// How bad it is that a disk has `free` of `size` bytes; `None` if there is room.
    pub fn of_disk(self, free: u64, size: u64) -> Option<Level> {
        let is_below = |(bytes, part): (u64, u64)| free < bytes.min(size / part);
        match (is_below(NONE), is_below(LITTLE)) {
            (true, _) if self.stops_requests() => Some(Level::Over),
            (true, _) | (_, true) => Some(Level::Soon),
            (false, false) => None,
        }
    }
}

impl Level {
    /// The value of `portvakt_expiring`.
    pub const fn value(self) -> f64 {
        match self {
            Self::Soon => 1.0,
            Self::Over => 2.0,
        }
    }

    /// [`Level::Over`] if requests fail.
    pub const fn at_end(fails: bool) -> Self {
        match fails {
            true => Self::Over,
            false => Self::Soon,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_warning_fits_the_period() {
        let of = |kind: Expiring, days: u64| {
            let period = Validity {
                not_before: Timestamp::from_unix(0),
                not_after: Timestamp::from_unix(days * DAY),
            };
            (days * DAY - kind.warns_from(period).unix()) / 3_600
        };
        assert_eq!(of(Expiring::Anchor, 3_650), 30 * 24);
        assert_eq!(of(Expiring::Crl, 30), 3 * 24);
        assert_eq!(of(Expiring::Crl, 1), 6);
        assert_eq!(of(Expiring::ListenerOcsp, 7), 24);
        assert_eq!(of(Expiring::Register, 8), 48);
        assert_eq!(of(Expiring::Bundle, 180), 7 * 24);
    }

    #[test]
    fn a_disk_is_judged_by_its_size() {
        let of = |kind: Expiring, free, size| kind.of_disk(free, size);
        let (state, logs) = (Expiring::StateDisk, Expiring::LogsDisk);
        assert_eq!(of(state, 3 << 30, 1 << 40), None, "a large disk");
        assert_eq!(of(state, 1 << 30, 1 << 40), Some(Level::Soon));
        assert_eq!(of(state, 512 << 20, 1 << 30), None, "a small volume");
        assert_eq!(of(state, 90 << 20, 1 << 30), Some(Level::Soon));
        assert_eq!(of(state, 5 << 20, 1 << 30), Some(Level::Over));
        assert_eq!(of(logs, 0, 1 << 30), Some(Level::Soon));
        assert_eq!(of(state, 0, 0), None, "no disk");
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<_> =
            Expiring::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), Expiring::ALL.len());
    }
}
