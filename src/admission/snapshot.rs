//! The current world, in one value that a reload replaces: a request never sees half of a reload.

use super::{Enforcement, RateSettings, Rates, WhenUnknown};
use crate::{
    clock::Timestamp,
    interface::{
        BareTppId,
        headers::identity::IdentityForm,
        operations::{Catalogue, Environment, Operation},
        path::AccountIds,
    },
    sca::{PsuPresent, UnknownPsu},
    trust::{Registers, Trust},
};
use jiff::{civil::Date, tz::TimeZone};
use std::{collections::BTreeMap, sync::Arc};

/// Everything that a judgement depends on, the request and the time apart. It is taken once per request and replaced
/// whole.
#[derive(Debug)]
pub struct Snapshot {
    /// The decisions of the operator.
    pub policy: Policy,
    /// The operations.
    pub catalogue: Catalogue,
    /// The trust anchors and the certificates that are known by them.
    pub trust: Trust,
    /// Who is registered; `None` where that is not checked (CRT-7).
    pub registers: Option<Arc<Registers>>,
    /// The counts of the general rates (QUO-12).
    pub rates: Arc<Rates>,
}

impl Snapshot {
    /// A world with every default.
    pub fn new(policy: Policy, catalogue: Catalogue, trust: Trust) -> Self {
        Self {
            policy,
            catalogue,
            trust,
            registers: None,
            rates: Arc::new(Rates::new(RateSettings::default())),
        }
    }
}

/// The decisions of the operator.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The environment that this process serves (CRT-9).
    pub environment: Environment,
    /// The most bytes that a body may have (HTTP-6).
    pub body_limit: usize,
    /// The headers that must be signed besides those of SIG-7, in lower case (SIG-14).
    pub also_signed: Vec<String>,
    /// How X-PSU-IDENTITY is written (HDR-12).
    pub identity: IdentityForm,
    /// The hosts that a TPP may name in TPP-Redirect-URI, by its identity; a TPP that is not here may name any (HDR-8).
    pub redirect_hosts: BTreeMap<BareTppId, Vec<String>>,
    /// The requirement of account information with the PSU present (SCA-16).
    pub psu_present: PsuPresent,
    /// The treatment of a PSU-ID that no SCA gave out (SCA-19).
    pub unknown_psu: UnknownPsu,
    /// The authorities that this gateway is called by; none where it is called by any (FWD-2).
    pub hosts: Vec<String>,
    /// How calls without the PSU are counted.
    pub quota: QuotaPolicy,
    /// Whether request ids of safe methods are remembered like those of unsafe ones (REP-1). Default false.
    pub replay_everywhere: bool,
    /// Where the bank's days begin. It decides the present day (PAY-12, QUO-8). Default Europe/Oslo.
    pub time_zone: TimeZone,
    /// The characters of account ids (HTTP-10).
    pub account_ids: AccountIds,
    /// The treatment of a request whose certificate no source judges (CRT-6).
    pub revocation_unknown: WhenUnknown,
    /// The same by the group of its operation, where that differs.
    pub revocation_unknown_by_group: BTreeMap<String, WhenUnknown>,
    /// Which checks refuse, and which are only observed (FWD-6).
    pub enforcement: Enforcement,
}

/// How calls without the PSU are counted (QUO-1 to QUO-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaPolicy {
    /// Details are counted for each transaction, not for the account (QUO-3). Default false.
    pub details_each: bool,
    /// Later pages of a list are counted with the call that they continue (QUO-13). Default true.
    pub pages_once: bool,
    /// Calls with the PSU present are counted too, unless a session is valid (QUO-14). Default false.
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
            redirect_hosts: BTreeMap::new(),
            psu_present: PsuPresent::SessionWhenSent,
            unknown_psu: UnknownPsu::Refuse,
            hosts: Vec::new(),
            quota: QuotaPolicy::default(),
            replay_everywhere: false,
            time_zone: Self::time_zone(Self::TIME_ZONE).unwrap_or(TimeZone::UTC),
            account_ids: AccountIds::default(),
            revocation_unknown: match environment {
                Environment::Production => WhenUnknown::Closed,
                Environment::Sandbox => WhenUnknown::Open,
            },
            revocation_unknown_by_group: BTreeMap::new(),
            enforcement: Enforcement::default(),
        }
    }

    /// The largest body limit there is, 64 KiB: the proxy can keep and send again no more (HTTP-6).
    pub const MAX_BODY: usize = 64 * 1024;

    /// Where the bank is by default (PAY-12).
    pub const TIME_ZONE: &'static str = "Europe/Oslo";

    /// A time zone by its name in the tz database, which the program brings with it. None where it has none of that name.
    pub fn time_zone(name: &str) -> Option<TimeZone> {
        TimeZone::get(name).ok()
    }

    /// The present day in the time zone of the bank (PAY-12, QUO-8).
    pub fn today(&self, at: Timestamp) -> Date {
        let seconds = i64::try_from(at.unix()).unwrap_or(i64::MAX);
        let moment = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX);
        self.time_zone.to_datetime(moment).date()
    }

    /// The treatment of a request of this operation whose certificate no source judges.
    pub(super) fn when_unknown(&self, operation: &Operation) -> WhenUnknown {
        let by_group = self.revocation_unknown_by_group.get(&operation.group);
        by_group.copied().unwrap_or(self.revocation_unknown)
    }
}
