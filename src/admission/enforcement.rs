//! The checks that refuse a request, and those that are only observed (FWD-6): for every caller, and for single TPPs.
//!
//! One process serves one environment (CRT-9), so the checks that its configuration observes are those of that environment. Invariant: a
//! fault without an [`ObservableCheck`] always refuses: framing, limits, blocked TPPs, and checks that could not be made.

use super::Stage;
use crate::interface::{
    FaultPlace, Forbidden, Permitted, PermittedTpp, Reason, Refusal, TppId, headers,
};
use portvakt_base::values;
use std::collections::BTreeSet;

values! {
    /// A check that can be observed, by the name that operators use in the configuration; in the order of the pipeline.
    pub enum ObservableCheck {
        /// Required headers and their forms, the media type, Accept.
        Headers = "headers",
        /// The query.
        Query = "query",
        /// Date, which must be there and current.
        Date = "date",
        /// TPP-Signature-Certificate, its chain, and the certificate of the TLS connection.
        Certificate = "certificate",
        /// The role in the certificate.
        Role = "role",
        /// Signature.
        Signature = "signature",
        /// The registers; a TPP that the bank blocks is always refused.
        Register = "register",
        /// The revocation of the certificate.
        Revocation = "revocation",
        /// TPP-Redirect-URI: its form and its host.
        RedirectHost = "redirect-host",
        /// Digest, where it is required, and its comparison with the body.
        Digest = "digest",
        /// The body: whether the operation takes one, and its members.
        Payload = "payload",
        /// The PSU's binding, consent and session, PSU-Context and PSU-Corporate-ID.
        Sca = "sca",
        /// X-Request-ID: one that was used before, or none that can be remembered.
        Replay = "replay",
        /// The calls without the PSU.
        Quota = "quota",
    }
}

impl ObservableCheck {
    /// Whether the check proves who sent the request. If one of these fails, the sender is unknown (FWD-6).
    pub const fn is_identity(self) -> bool {
        matches!(
            self,
            Self::Certificate | Self::Signature | Self::Revocation | Self::Digest
        )
    }

    /// Whether the check judges the TPP that the request shows, before its signature can prove that the caller is this TPP.
    pub const fn is_of_shown(self) -> bool {
        matches!(self, Self::Certificate | Self::Role | Self::Signature)
    }

    /// The check that a fault belongs to; `None` if the fault is always refused.
    ///
    /// A header that a later check reads belongs to that check: otherwise a caller could avoid an enforced check by leaving the header out.
    fn of(stage: Stage, reason: Reason, place: &FaultPlace) -> Option<Self> {
        if reason.status() >= 500 || is_always_refused(reason) {
            return None;
        }
        let is = |header: &'static str| *place == FaultPlace::Header(header);
        match stage {
            Stage::Match | Stage::AddressRate | Stage::TppRate => None,
            Stage::Envelope => Some(match reason {
                Reason::SignatureMissing => Self::Signature,
                _ if is(headers::TPP_SIGNATURE_CERTIFICATE.written) => Self::Certificate,
                _ if is(headers::DATE.written) => Self::Date,
                _ if is(headers::DIGEST.written) => Self::Digest,
                _ if is(headers::X_REQUEST_ID.written) => Self::Replay,
                _ if is(headers::PSU_CONTEXT.written) => Self::Sca,
                _ if is(headers::PSU_CORPORATE_ID.written) => Self::Sca,
                Reason::HeaderMalformed if is(headers::TPP_REDIRECT_URI.written) => {
                    Self::RedirectHost
                }
                _ => Self::Headers,
            }),
            Stage::Query => Some(Self::Query),
            Stage::Date => Some(Self::Date),
            Stage::Certificate => Some(Self::Certificate),
            Stage::Role => Some(Self::Role),
            Stage::Signature => Some(Self::Signature),
            Stage::Register => Some(Self::Register),
            Stage::Revocation => Some(Self::Revocation),
            Stage::Redirect => Some(Self::RedirectHost),
            Stage::Digest => Some(Self::Digest),
            Stage::Body | Stage::Payload => Some(Self::Payload),
            Stage::Sca => Some(Self::Sca),
            Stage::Claim => match reason {
                Reason::RequestReplayed => Some(Self::Replay),
                Reason::QuotaExceeded => Some(Self::Quota),
                Reason::DateSkewed => Some(Self::Date),
                _ => None,
            },
        }
    }
}

/// Limits, ambiguous requests, which the core could read in another way than the gateway, and TPPs that the bank blocks.
const fn is_always_refused(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::MalformedRequest
            | Reason::HeaderDuplicated
            | Reason::HeadersTooLarge
            | Reason::BodyTooLarge
            | Reason::RequestTimeout
            | Reason::RateLimited
            | Reason::TppBlocked
    )
}

/// The checks that are only observed. By default there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Enforcement {
    observed: BTreeSet<ObservableCheck>,
    of_tpps: TppChecks,
}

/// The sets of single TPPs. A set does two things: it permits its TPP to fail some checks, which applies to exactly this TPP; and it
/// withholds from it the other checks that are observed for every caller, which applies to every spelling of its identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TppChecks {
    permitted: Permitted<BTreeSet<ObservableCheck>>,
    /// The checks that all sets of one TPP have, in whatever spelling.
    left: Forbidden<BTreeSet<ObservableCheck>>,
}

impl TppChecks {
    /// Adds the set of a TPP. Returns whether exactly this TPP had none.
    pub fn add(&mut self, tpp: PermittedTpp, checks: BTreeSet<ObservableCheck>) -> bool {
        let alike = tpp.as_forbidden();
        match self.left.get_mut(&alike) {
            Some(left) => left.retain(|check| checks.contains(check)),
            None => {
                self.left.insert(alike, checks.clone());
            }
        }
        self.permitted.insert(tpp, checks).is_none()
    }

    /// The checks that are observed for any TPP.
    pub fn all(&self) -> impl Iterator<Item = &ObservableCheck> {
        self.permitted.values().flatten()
    }

    /// Whether a check is observed for this TPP; `for_all` says whether it is for every caller.
    fn observe(&self, check: ObservableCheck, tpp: &TppId, for_all: bool) -> bool {
        match self.permitted.get(tpp) {
            Some(own) => own.contains(&check),
            None => {
                let left = self.left.get(tpp);
                for_all && left.is_none_or(|left| left.contains(&check))
            }
        }
    }
}

/// The permission to waive a refusal. Only an [`Enforcement`] creates one.
#[derive(Debug)]
pub struct Waiver {
    _minted: (),
}

/// The sender, as far as the observed checks depend on it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose<'a> {
    /// No certificate was read yet, so the sender can be any TPP.
    Any,
    /// This caller.
    Of(Caller<'a>),
}

/// The identities of a caller.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Caller<'a> {
    /// The TPP of the certificate that the request shows, valid or not. Its set applies to the checks of certificate, role and signature:
    /// nothing else says whose they are.
    pub(super) shown: Option<&'a TppId>,
    /// The same, if the signature verified. Its set applies to every other check.
    pub(super) proven: Option<&'a TppId>,
}

impl<'a> Caller<'a> {
    /// A caller whose signature verified; `None` for a caller without an identity.
    pub(super) const fn proven(tpp: Option<&'a TppId>) -> Self {
        Self {
            shown: tpp,
            proven: tpp,
        }
    }
}

/// A fault that is only observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedFault {
    /// The failed check.
    pub check: ObservableCheck,
    /// The reason for which it would refuse.
    pub reason: Reason,
}

/// The decision on a failed check.
#[derive(Debug)]
pub(super) struct Ruling {
    /// The faults that are only observed, each once.
    pub(super) observed: Vec<ObservedFault>,
    /// The waiver, or the refusal with the remaining faults.
    pub(super) decision: Result<Waiver, Refusal>,
}

impl Enforcement {
    /// `observed` are the checks that are only observed. A TPP in `of_tpps` has its own set instead.
    pub const fn new(observed: BTreeSet<ObservableCheck>, of_tpps: TppChecks) -> Self {
        Self { observed, of_tpps }
    }

    /// The checks that are only observed, for every caller or for at least one TPP, in the order of the pipeline.
    pub fn observed(&self) -> BTreeSet<ObservableCheck> {
        let of_tpps = self.of_tpps.permitted.values().flatten();
        self.observed.iter().chain(of_tpps).copied().collect()
    }

    /// Whether a TPP has its own set of observed checks.
    pub fn has_tpps(&self) -> bool {
        !self.of_tpps.permitted.is_empty()
    }

    /// Whether a check is only observed.
    pub(super) fn observes(&self, check: ObservableCheck, whose: Whose<'_>) -> bool {
        match whose {
            Whose::Any => {
                let mut sets = self.of_tpps.permitted.values();
                self.observed.contains(&check) || sets.any(|set| set.contains(&check))
            }
            Whose::Of(caller) => {
                let tpp = if check.is_of_shown() {
                    caller.shown
                } else {
                    caller.proven
                };
                let for_all = self.observed.contains(&check);
                tpp.map_or(for_all, |tpp| self.of_tpps.observe(check, tpp, for_all))
            }
        }
    }

    /// Decides on a failed check. A refusal with status 5xx means that the check could not be made, so it is never waived.
    pub(super) fn rule(&self, stage: Stage, refusal: Refusal, whose: Whose<'_>) -> Ruling {
        let mut observed = Vec::new();
        let refused = refusal.retain(|reason, place| {
            let check = ObservableCheck::of(stage, reason, place);
            let Some(check) = check.filter(|check| self.observes(*check, whose)) else {
                return true;
            };
            let fault = ObservedFault { check, reason };
            if !observed.contains(&fault) {
                observed.push(fault);
            }
            false
        });
        Ruling {
            observed,
            decision: refused.map_or(Ok(Waiver { _minted: () }), Err),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Fault;

    fn id(text: &str) -> TppId {
        TppId::parse(text).unwrap()
    }

    fn of(tpp: &str, checks: BTreeSet<ObservableCheck>) -> TppChecks {
        let mut of_tpps = TppChecks::default();
        assert!(of_tpps.add(PermittedTpp::parse(tpp).unwrap(), checks));
        of_tpps
    }

    /// FWD-6: two spellings have a set each; a third one keeps the checks for every caller that both sets have.
    #[test]
    fn sets_of_tpps_that_differ_in_dashes() {
        use ObservableCheck::{Date, Payload, Query, Sca};
        let mut of_tpps = of("PSDNO-FSA-12", BTreeSet::from([Date, Payload]));
        let other = PermittedTpp::parse("PSDNO-FSA-1-2").unwrap();
        assert!(of_tpps.add(other, BTreeSet::from([Date, Query])));
        let again = PermittedTpp::parse("psdno-fsa-1-2").unwrap();
        assert!(!of_tpps.clone().add(again, BTreeSet::new()));
        let enforcement = Enforcement::new(BTreeSet::from([Date, Payload, Sca]), of_tpps);
        for (tpp, expected) in [
            ("PSDNO-FSA-12", &[Date, Payload][..]),
            ("PSDNO-FSA-1-2", &[Query, Date]),
            ("PSDNO-FSA-1 2", &[Date]),
            ("PSDNO-FSA-13", &[Date, Payload, Sca]),
        ] {
            let tpp = id(tpp);
            let whose = Whose::Of(Caller::proven(Some(&tpp)));
            let checks = ObservableCheck::ALL.iter().copied();
            let found: Vec<_> = checks
                .filter(|check| enforcement.observes(*check, whose))
                .collect();
            assert_eq!(found, expected, "{tpp}");
        }
    }

    #[test]
    fn a_tpp_has_its_own_checks() {
        let tpp = "PSDNO-FSA-123456";
        let own = BTreeSet::from([ObservableCheck::Payload]);
        let enforcement = Enforcement::new(BTreeSet::from([ObservableCheck::Date]), of(tpp, own));
        let table = [
            (ObservableCheck::Date, None, true),
            (ObservableCheck::Date, Some("PSDNO-FSA-1"), true),
            (ObservableCheck::Date, Some(tpp), false),
            (ObservableCheck::Payload, Some("psdno-fsa-123456"), true),
            // Its permission is for exactly this TPP; the date is enforced for every spelling.
            (ObservableCheck::Payload, Some("PSDNO-FSA-123-456"), false),
            (ObservableCheck::Date, Some("PSDNO-FSA-123-456"), false),
            (ObservableCheck::Payload, Some("PSDNO-FSA-1"), false),
            (ObservableCheck::Payload, None, false),
        ];
        for (check, tpp, observed) in table {
            let whose = tpp.map(id);
            let whose = Whose::Of(Caller::proven(whose.as_ref()));
            let found = enforcement.observes(check, whose);
            assert_eq!(found, observed, "{check:?} {tpp:?}");
        }
        for check in [ObservableCheck::Date, ObservableCheck::Payload] {
            assert!(enforcement.observes(check, Whose::Any));
        }
        assert!(!enforcement.observes(ObservableCheck::Sca, Whose::Any));
    }

    /// Anybody can show a TPP's certificate: the TPP's set applies to the certificate and the signature only, until the signature verifies.
    #[test]
    fn a_shown_tpp_has_its_own_checks_of_certificate_role_and_signature() {
        let tpp = id("PSDNO-FSA-123456");
        let own = ObservableCheck::ALL.iter().copied().collect();
        let enforcement = Enforcement::new(BTreeSet::new(), of("PSDNO-FSA-123456", own));
        let whose = Whose::Of(Caller {
            shown: Some(&tpp),
            proven: None,
        });
        let checks = ObservableCheck::ALL.iter();
        let observed: Vec<_> = checks
            .filter(|check| enforcement.observes(**check, whose))
            .map(|check| check.name())
            .collect();
        assert_eq!(observed, ["certificate", "role", "signature"]);
    }

    #[test]
    fn by_default_every_check_refuses() {
        let enforcement = Enforcement::default();
        for check in ObservableCheck::ALL {
            assert!(!enforcement.observes(*check, Whose::Any));
            assert!(!enforcement.observes(*check, Whose::Of(Caller::default())));
        }
    }

    /// Everything is observed: what is still refused is refused always.
    #[test]
    fn some_faults_are_always_refused() {
        let all = ObservableCheck::ALL.iter().copied().collect();
        let enforcement = Enforcement::new(all, TppChecks::default());
        let rule = |stage, reason| {
            let ruling =
                enforcement.rule(stage, Refusal::new(reason), Whose::Of(Caller::default()));
            ruling.decision.is_ok()
        };
        for reason in Reason::ALL {
            for stage in [Stage::Match, Stage::AddressRate, Stage::TppRate] {
                assert!(!rule(stage, *reason));
            }
            if reason.status() >= 500 {
                assert!(Stage::ALL.iter().all(|stage| !rule(*stage, *reason)));
            }
        }
        let table = [
            (Stage::Envelope, Reason::MalformedRequest),
            (Stage::Envelope, Reason::HeaderDuplicated),
            (Stage::Envelope, Reason::BodyTooLarge),
            (Stage::Certificate, Reason::RateLimited),
            (Stage::Certificate, Reason::HeadersTooLarge),
            (Stage::Register, Reason::TppBlocked),
            (Stage::Body, Reason::RequestTimeout),
            (Stage::Body, Reason::BodyTooLarge),
        ];
        for (stage, reason) in table {
            assert!(!rule(stage, reason), "{stage:?} {reason:?}");
        }
        assert!(rule(Stage::Sca, Reason::ScaRequired));
    }

    /// One refusal with faults of an observed and of an enforced check.
    #[test]
    fn the_enforced_part_of_a_refusal_refuses() {
        let observed = BTreeSet::from([ObservableCheck::Headers]);
        let enforcement = Enforcement::new(observed, TppChecks::default());
        let faults = vec![
            Fault::header(Reason::HeaderMissing, "X-Request-ID", "missing"),
            Fault::header(Reason::HeaderMissing, "TPP-Redirect-URI", "missing"),
            Fault::header(Reason::HeaderMissing, "Date", "missing"),
            Fault::header(Reason::SignatureMissing, "Signature", "missing"),
        ];
        let refusal = Refusal::of(faults).unwrap();
        let ruling = enforcement.rule(Stage::Envelope, refusal, Whose::Of(Caller::default()));
        let expected = ObservedFault {
            check: ObservableCheck::Headers,
            reason: Reason::HeaderMissing,
        };
        assert_eq!(ruling.observed, [expected]);
        let refused = ruling.decision.unwrap_err();
        assert_eq!(refused.reason(), Reason::HeaderMissing);
        let left: Vec<_> = refused.faults().iter().map(|fault| &fault.place).collect();
        assert_eq!(
            left,
            [
                &FaultPlace::Header("X-Request-ID"),
                &FaultPlace::Header("Date"),
                &FaultPlace::Header("Signature")
            ]
        );
    }
}
