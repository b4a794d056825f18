//! The policy: limits, required signed headers, forms, hosts.
//!
//! Invariant: a [`Policy`] contains only valid values; a host that no TPP-Redirect-URI can name is reported here, at start,
//! instead of at a TPP's request. Deliberately not here: trust and the catalogue.

use http::HeaderName;
use jiff::tz::TimeZone;

use super::section::Section;
use super::value::Value;
use super::{limits, observe};
use crate::admission::Policy;
use crate::interface::Forbidden;
use crate::interface::headers::{identity::IdentityForm, redirect_uri};
use crate::interface::operations::Environment;
use crate::interface::{
    path::AccountIds,
    payload::{IbanCountry, Ibans},
};
use crate::trust::CertificatePolicy;

/// Reads the keys of the root that belong to the policy.
pub(super) fn read(root: &mut Section<'_>, environment: Environment) -> Policy {
    let mut policy = Policy::new(environment);
    let most = u64::try_from(Policy::MAX_BODY).unwrap_or(u64::MAX);
    if let Some(limit) = root
        .optional("body_limit")
        .and_then(|value| value.size(1..=most))
    {
        policy.body_limit = usize::try_from(limit).unwrap_or(Policy::MAX_BODY);
    }
    if let Some(mut signing) = root.optional_section("signing") {
        let names = signing.optional_list("require").unwrap_or_default();
        let names = names.iter().filter_map(signed_name).map(str::to_owned);
        policy.also_signed = names.collect();
        signing.finish();
    }
    if let Some(mut identity) = root.optional_section("psu_identity") {
        let digits = identity.optional("digits");
        let range = IdentityForm::LEAST..=IdentityForm::MOST;
        let form = digits
            .and_then(|value| value.integer(range))
            .and_then(IdentityForm::of_digits);
        policy.identity = form.unwrap_or(policy.identity);
        identity.finish();
    }
    if let Some(mut bank) = root.optional_section("bank") {
        let time_zone = bank.optional("time_zone");
        let time_zone = time_zone.and_then(|value| self::time_zone(&value));
        policy.time_zone = time_zone.unwrap_or(policy.time_zone);
        let class = bank.optional("account_ids");
        let class = class.and_then(|value| account_ids(&value));
        policy.account_ids = class.unwrap_or(policy.account_ids);
        if let Some(section) = bank.optional_section("ibans") {
            policy.ibans = ibans(section);
        }
        bank.finish();
    }
    if let Some(section) = root.optional_section("redirect_hosts") {
        policy.redirect_hosts = redirect_hosts(section);
    }
    policy.enforcement = observe::read(root, environment);
    policy.quota = limits::quota(root);
    policy.replay_everywhere = limits::replay_everywhere(root);
    policy
}

fn time_zone(value: &Value<'_>) -> Option<TimeZone> {
    let zone = Policy::time_zone(value.as_str()?);
    zone.or_else(|| value.refuse("the name of a time zone, such as Europe/Oslo"))
}

/// Reads the character class of account ids (HTTP-10).
fn account_ids(value: &Value<'_>) -> Option<AccountIds> {
    match AccountIds::parse(value.as_str()?) {
        Ok(class) => Some(class),
        Err(expected) => value.refuse(expected),
    }
}

/// Reads the countries that the bank adds to the IBAN registry (PAY-6).
fn ibans(mut section: Section<'_>) -> Ibans {
    let mut added = Vec::new();
    for (key, value) in section.entries() {
        let name = key.as_str().unwrap_or_default();
        let mut country = value.as_section();
        let length = country.required("length");
        let length = length.and_then(|value| value.integer(5..=34));
        let structure = country.required("structure");
        let structure = structure.and_then(|value| value.as_str());
        if let (Some(length), Some(structure)) = (length, structure) {
            match IbanCountry::new(name, length, structure) {
                Ok(country) => added.push(country),
                Err(expected) => key.fault(format!("expected {expected}")),
            }
        }
        country.finish();
    }
    section.finish();
    Ibans::with(added)
}

/// Reads the certificate policy (CRT-9): strict in production.
pub(super) fn certificates(root: &mut Section<'_>, environment: Environment) -> CertificatePolicy {
    let Some(value) = root.optional("certificate_policy") else {
        return CertificatePolicy::Strict;
    };
    let policy = value.one_of(&[
        ("strict", CertificatePolicy::Strict),
        ("tolerant", CertificatePolicy::Tolerant),
    ]);
    if policy == Some(CertificatePolicy::Tolerant) && environment == Environment::Production {
        value.fault("production is strict: a malformed certificate is for the sandbox only");
    }
    policy.unwrap_or_default()
}

/// Reads a header name as it occurs in a signature's `headers` (SIG-14).
fn signed_name<'a>(value: &Value<'a>) -> Option<&'a str> {
    let text = value.as_str()?;
    if text == "signature" {
        value.fault("a signature cannot sign itself: every request would be refused");
        return None;
    }
    if text == "request-target" {
        value.fault("it is no header: write \"(request-target)\"");
        return None;
    }
    let header = HeaderName::from_bytes(text.as_bytes());
    if text == "(request-target)" || header.is_ok_and(|header| header.as_str() == text) {
        return Some(text);
    }
    value.refuse("a header's name in lower case, or \"(request-target)\"")
}

/// Reads the hosts that each TPP may name in TPP-Redirect-URI (HDR-8), by identity. The list restricts a TPP, so it applies in every
/// spelling of the identity; its hosts are exact. A key that no certificate can contain is a fault, since its TPP would be
/// unrestricted.
fn redirect_hosts(mut section: Section<'_>) -> Forbidden<Vec<String>> {
    let mut all = Forbidden::default();
    for (key, value) in section.entries() {
        let tpp = key.forbidden_tpp();
        let Some(hosts) = value.as_list() else {
            continue;
        };
        if hosts.is_empty() {
            value.fault("expected at least one host; leave the TPP out to let it name any");
        }
        let hosts = hosts.iter().filter_map(host).map(str::to_owned).collect();
        if tpp.is_some_and(|tpp| all.insert(tpp, hosts).is_some()) {
            key.fault("this TPP is listed already, in another spelling");
        }
    }
    section.finish();
    all
}

fn host<'a>(value: &Value<'a>) -> Option<&'a str> {
    let text = value.as_str()?;
    if redirect_uri::is_host(text) {
        return Some(text);
    }
    value.refuse("a host as a URI names it, without scheme, port and path, such as tpp.example")
}
