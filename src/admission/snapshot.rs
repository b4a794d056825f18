//! The current configuration in one value, which a reload replaces: a request never sees half of a reload.

use super::{Enforcement, RateSettings, Rates, WhenUnknown};
use crate::{
    clock::Timestamp,
    interface::{
        Forbidden,
        headers::identity::IdentityForm,
        operations::{Catalogue, Environment, Operation},
        path::AccountIds,
        payload::Ibans,
    },
    sca::{PsuPresent, UnknownPsu},
    seen::SeenCertificates,
    trust::{Registers, Trust},
};
use jiff::{civil::Date, tz::TimeZone};
use std::{collections::BTreeMap, sync::Arc};

/// Everything that a judgement depends on, except the request and the time. A request takes one snapshot, and a reload replaces the
/// snapshot as a whole.
#[derive(Debug)]
pub struct Snapshot {
    /// The settings of the operator.
    pub policy: Policy,
    /// The operations.
    pub catalogue: Catalogue,
    /// The trust anchors, and the cached certificates.
    pub trust: Trust,
    /// The registers of TPPs; `None` if registration is not checked (CRT-7).
    pub registers: Option<Arc<Registers>>,
    /// The counts of the general rates (QUO-12).
    pub rates: Arc<Rates>,
    /// The certificates by which requests were signed, which outlive a reload.
    pub seen: Arc<SeenCertificates>,
}

impl Snapshot {
    /// A snapshot with every default.
    pub fn new(policy: Policy, catalogue: Catalogue, trust: Trust) -> Self {
        Self {
            policy,
            catalogue,
            trust,
            registers: None,
            rates: Arc::new(Rates::new(RateSettings::default())),
            seen: Arc::default(),
        }
    }
}

/// The settings of the operator.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The environment that this process serves (CRT-9).
    pub environment: Environment,
    /// The maximum length of a body in bytes (HTTP-6).
    pub body_limit: usize,
    /// The headers that must be signed in addition to those of SIG-7, in lower case (SIG-14).
    pub also_signed: Vec<String>,
    /// The form of X-PSU-IDENTITY (HDR-12).
    pub identity: IdentityForm,
    /// The hosts that a TPP may name in TPP-Redirect-URI, by its identity in any spelling; a TPP without an entry may name any host (HDR-8).
    pub redirect_hosts: Forbidden<Vec<String>>,
    /// The requirement of account information with the PSU present (SCA-16).
    pub psu_present: PsuPresent,
    /// The treatment of a PSU-ID that no SCA gave to the TPP (SCA-19).
    pub unknown_psu: UnknownPsu,
    /// The authorities of this gateway; empty if every authority is accepted (FWD-2).
    pub hosts: Vec<String>,
    /// The counting of calls without the PSU.
    pub quota: QuotaPolicy,
    /// Whether request ids of safe methods are stored like those of unsafe methods (REP-1). Default false.
    pub replay_everywhere: bool,
    /// The time zone of the bank, which determines the current date (PAY-12, QUO-8). Default Europe/Oslo.
    pub time_zone: TimeZone,
    /// The characters that account ids may have (HTTP-10).
    pub account_ids: AccountIds,
    /// The countries whose IBANs are accepted (PAY-6). Default: those of the IBAN registry.
    pub ibans: Ibans,
    /// The treatment of a request with unknown revocation status (CRT-6).
    pub revocation_unknown: WhenUnknown,
    /// Exceptions from `revocation_unknown`, by the group of the operation.
    pub revocation_unknown_by_group: BTreeMap<String, WhenUnknown>,
    /// The checks that refuse, and those that are only observed (FWD-6).
    pub enforcement: Enforcement,
}

/// The counting of calls without the PSU (QUO-1 to QUO-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaPolicy {
    /// Whether details are counted for each transaction, and not for the account (QUO-3). Default false.
    pub details_each: bool,
    /// Whether later pages of a list are counted with the call that they continue (QUO-13). Default true.
    pub pages_once: bool,
    /// Whether calls with the PSU present are counted too, unless a session is valid (QUO-14). Default false.
    pub psu_present_needs_session: bool,
}

impl Default for QuotaPolicy {
    fn default() -> Self {
        Self {
            details_each: false,
            pages_once: true,
            psu_present_needs_session: false,
        }
    }
}

impl Policy {
    /// The policy of an environment with every default.
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            body_limit: Self::MAX_BODY,
            also_signed: Vec::new(),
            identity: IdentityForm::NORWEGIAN,
            redirect_hosts: Forbidden::default(),
            psu_present: PsuPresent::SessionWhenSent,
            unknown_psu: UnknownPsu::Refuse,
            hosts: Vec::new(),
            quota: QuotaPolicy::default(),
            replay_everywhere: false,
            time_zone: Self::time_zone(Self::TIME_ZONE).unwrap_or(TimeZone::UTC),
            account_ids: AccountIds::default(),
            ibans: Ibans::default(),
            revocation_unknown: match environment {
                Environment::Production => WhenUnknown::Closed,
                Environment::Sandbox => WhenUnknown::Open,
            },
            revocation_unknown_by_group: BTreeMap::new(),
            enforcement: Enforcement::default(),
        }
    }

    /// The maximum body limit, 64 KiB: the proxy cannot buffer and resend more (HTTP-6).
    pub const MAX_BODY: usize = 64 * 1024;

    /// The default time zone of the bank (PAY-12).
    pub const TIME_ZONE: &'static str = "Europe/Oslo";

    /// A time zone by its name in the tz database, which is compiled in. `None` if the database has no such name.
    pub fn time_zone(name: &str) -> Option<TimeZone> {
        TimeZone::get(name).ok()
    }

    /// The current date in the time zone of the bank (PAY-12, QUO-8).
    pub fn today(&self, at: Timestamp) -> Date {
        let seconds = i64::try_from(at.unix()).unwrap_or(i64::MAX);
        let moment = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX);
        self.time_zone.to_datetime(moment).date()
    }

    /// The treatment of a request of this operation with unknown revocation status.
    pub(super) fn when_unknown(&self, operation: &Operation) -> WhenUnknown {
        let by_group = self.revocation_unknown_by_group.get(&operation.group);
        by_group.copied().unwrap_or(self.revocation_unknown)
    }
}
