//! The sections `rates`, `quota` and `replay`: general rates, calls without the PSU, the scope of request ids.
//!
//! Deliberately not here: the numbers of the interface itself; four calls in 24 hours is no setting.

use std::num::NonZeroU32;

use super::section::Section;
use super::value::Value;
use crate::admission::{QuotaPolicy, RateSettings};

/// Reads the section `rates` (QUO-12), which is optional.
pub(super) fn rates(root: &mut Section<'_>) -> RateSettings {
    let mut rates = RateSettings::default();
    let Some(mut section) = root.optional_section("rates") else {
        return rates;
    };
    for (key, rate) in [
        ("per_address", &mut rates.per_address),
        ("per_tpp", &mut rates.per_tpp),
        ("unsafe_per_tpp", &mut rates.unsafe_per_tpp),
        ("chains_per_address", &mut rates.chains_per_address),
        ("chains", &mut rates.chains),
    ] {
        if let Some(value) = section.optional(key) {
            *rate = per_second(&value, key);
        }
    }
    section.finish();
    rates
}

/// Reads requests per second, or `off`.
fn per_second(value: &Value<'_>, key: &str) -> Option<NonZeroU32> {
    let lost = match key {
        "per_address" => "one address may take all that the gateway can do",
        "per_tpp" => "one TPP may take all that the gateway and the core can do",
        "unsafe_per_tpp" => "one TPP may fill the disk with state and audit",
        _ => "strangers may have any number of certificate chains built",
    };
    if value.is_off(lost) {
        return None;
    }
    value.integer(1..=1_000_000).and_then(NonZeroU32::new)
}

/// Reads the section `quota` (QUO-3, QUO-13, QUO-14), which is optional.
pub(super) fn quota(root: &mut Section<'_>) -> QuotaPolicy {
    let mut policy = QuotaPolicy::default();
    let Some(mut section) = root.optional_section("quota") else {
        return policy;
    };
    if let Some(value) = section.optional("details") {
        policy.details_each =
            value.one_of(&[("account", false), ("transaction", true)]) == Some(true);
    }
    if let Some(value) = section.optional("pages") {
        policy.pages_once = value.one_of(&[("each", false), ("once", true)]) == Some(true);
    }
    if let Some(value) = section.optional("psu_present_needs_session") {
        policy.psu_present_needs_session = value.boolean() == Some(true);
    }
    section.finish();
    policy
}

/// Reads the section `replay` (REP-1), which is optional: whether the store also keeps the request ids of safe methods.
pub(super) fn replay_everywhere(root: &mut Section<'_>) -> bool {
    let Some(mut section) = root.optional_section("replay") else {
        return false;
    };
    let scope = section.optional("scope");
    let scope = scope.and_then(|value| value.one_of(&[("unsafe", false), ("all", true)]));
    section.finish();
    scope == Some(true)
}
