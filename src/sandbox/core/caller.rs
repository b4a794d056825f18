//! The caller, and its PSU: the facts that the gateway established (FWD-1), read once per request.
//!
//! Invariant: with an assertion, every fact is one of its claims, except X-PSU-IDENTITY, a header that the assertion's hash
//! covers, and x-accept-fix and Accept-Language, which decide only how an answer is written.

use super::language::Language;
use axum::http::HeaderMap;
use jiff::civil::Date;
use serde_json::{Map, Value};
use uuid::Uuid;

/// The facts of a request before its body is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Caller {
    /// Gateway-Tpp-Id; empty without one.
    pub(super) tpp: String,
    /// PSU-ID.
    pub(super) psu: Option<Uuid>,
    /// PSU-Corporate-ID.
    pub(super) agreement: Option<Uuid>,
    /// X-PSU-IDENTITY.
    pub(super) identity: Option<String>,
    /// Gateway-Sca-Redirect: where an SCA for this request starts.
    pub(super) sca_redirect: Option<String>,
    /// Gateway-History-From: the first day to show.
    pub(super) history_from: Option<Date>,
    /// The breaking changes that are on.
    pub(super) fixes: Fixes,
    /// The language for texts to the PSU, by Accept-Language.
    pub(super) language: Language,
}

/// x-accept-fix (§Versioning 2), as the gateway resolved it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fixes {
    /// Amounts are strings, not numbers.
    pub(super) amount_as_string: bool,
    /// transactionAmount and originalAmount of card accounts are what they are called.
    pub(super) card_amounts: bool,
    /// Names of card accounts have up to 70 characters, not 35.
    pub(super) longer_names: bool,
    /// cashAccountType is an ISO 20022 code.
    pub(super) account_type_iso: bool,
}

impl Caller {
    /// By the claims of an assertion that was verified.
    pub(super) fn by_claims(claims: &Map<String, Value>, headers: &HeaderMap) -> Self {
        Self::read(
            |name| claims.get(name)?.as_str(),
            ["psu_id", "psu_corporate_id"],
            headers,
        )
    }

    /// By headers that are believed.
    pub(super) fn by_headers(headers: &HeaderMap) -> Self {
        let names = ["psu-id", "psu-corporate-id"];
        Self::read(|name| headers.get(name)?.to_str().ok(), names, headers)
    }

    fn read<'a>(
        fact: impl Fn(&str) -> Option<&'a str>,
        [psu, agreement]: [&str; 2],
        headers: &HeaderMap,
    ) -> Self {
        let header = |name: &str| headers.get(name)?.to_str().ok();
        let text = |name: &str| fact(name).map(str::to_owned);
        Self {
            tpp: text("gateway-tpp-id").unwrap_or_default(),
            psu: fact(psu).and_then(|id| id.parse().ok()),
            agreement: fact(agreement).and_then(|id| id.parse().ok()),
            identity: header("x-psu-identity").map(str::to_owned),
            sca_redirect: text("gateway-sca-redirect"),
            history_from: fact("gateway-history-from").and_then(|day| day.parse().ok()),
            fixes: Fixes::named(header("x-accept-fix").unwrap_or_default()),
            language: language(headers),
        }
    }
}

/// The language that the Accept-Language fields prefer together (RFC 9110, section 5.3).
fn language(headers: &HeaderMap) -> Language {
    let fields = headers.get_all("accept-language").iter();
    let accepted: Vec<&str> = fields.filter_map(|value| value.to_str().ok()).collect();
    Language::preferred(&accepted.join(","))
}

impl Fixes {
    /// The fixes in a comma-separated list.
    pub(super) fn named(list: &str) -> Self {
        let mut names = list.split(',').map(str::trim);
        let mut fixes = Self::default();
        for name in &mut names {
            match name {
                "amount-as-string" => fixes.amount_as_string = true,
                "cardaccount-switch-originalamount-and-transactionamount" => {
                    fixes.card_amounts = true;
                }
                "longer-names" => fixes.longer_names = true,
                "cash-account-type-iso" => fixes.account_type_iso = true,
                _ => {}
            }
        }
        fixes
    }

    /// Every fix, as the gateway sends them since their default dates have passed.
    #[cfg(test)]
    pub(super) fn all() -> Self {
        Self {
            amount_as_string: true,
            card_amounts: true,
            longer_names: true,
            account_type_iso: true,
        }
    }
}
