//! What is settled once the upstream has answered or failed: calls that are given back (QUO-5), PSUs that are learned
//! (SCA-19).
//!
//! It is done before the answer goes out, so that whoever has the answer can rely on it. Where the store is away now,
//! nothing is undone: a call stays counted, a PSU unknown.

use crate::{
    admission::{Admitted, Claim, Grant},
    clock::Timestamp,
    interface::QuotaLeft,
    state::{Bind, Bound, Kept, PsuRef},
    telemetry::Telemetry,
};
use http::{HeaderMap, HeaderName};
use jiff::fmt::temporal::DateTimeParser;

/// When the core last saw SCA of a PSU that is being learned (SCA-19).
const SCA_AT: HeaderName = HeaderName::from_static("gateway-sca-at");
/// When that PSU consented.
const CONSENT_AT: HeaderName = HeaderName::from_static("gateway-consent-at");

/// What the quota says with the answer (QUO-11).
pub(super) async fn answered(admitted: &Admitted, kept: &Kept, status: u16) -> Option<QuotaLeft> {
    let claim = admitted.claim()?;
    let given_back =
        matches!(status, 401 | 404 | 429 | 500..) && give_back(claim, kept, true).await;
    let left = claim.left()?;
    Some(if given_back {
        with_one_more(left)
    } else {
        left
    })
}

/// Gives a call back; where the upstream was never connected, the request id too. Whether it was done.
pub(super) async fn give_back(claim: &Claim, kept: &Kept, connected: bool) -> bool {
    let given = kept.give_back(claim.taken(), connected).await;
    if let Err(fault) = &given {
        tracing::warn!(%fault, "a call cannot be given back: it stays counted");
    }
    given.is_ok()
}

/// The quota once a call was given back. The only call of the window leaves nothing to wait for.
const fn with_one_more(left: QuotaLeft) -> QuotaLeft {
    let calls = left.calls.saturating_add(1);
    QuotaLeft {
        calls,
        seconds: if calls < 4 { left.seconds } else { 0 },
    }
}

/// Binds a PSU that the core knows: it answered 2xx (SCA-19).
pub(super) async fn learn(
    admitted: &Admitted,
    answer: &HeaderMap,
    since: Timestamp,
    kept: &Kept,
    telemetry: &Telemetry,
) {
    let unbound = admitted.grant().filter(|grant| !grant.bound());
    let Some((psu, tpp)) = unbound.and_then(Grant::psu).zip(admitted.tpp()) else {
        return;
    };
    let (last_sca, consented) = (time(answer, &SCA_AT), time(answer, &CONSENT_AT));
    let bind = Bind {
        who: PsuRef {
            tpp: tpp.certificate().tpp_id(),
            psu,
        },
        corporate: unbound.and_then(Grant::corporate),
        last_sca: last_sca.unwrap_or(since),
        consent: Some((consented.unwrap_or(since), None)),
    };
    match kept.bind(bind).await {
        Ok(Bound::Here) => {}
        Ok(Bound::Elsewhere) => telemetry.psu_bound_elsewhere("learning"),
        Err(fault) => tracing::warn!(%fault, "a PSU cannot be learned"),
    }
}

/// A time as RFC 3339 has it.
fn time(answer: &HeaderMap, name: &HeaderName) -> Option<Timestamp> {
    let text = answer.get(name)?.as_bytes();
    let time = DateTimeParser::new().parse_timestamp(text).ok()?;
    u64::try_from(time.as_second())
        .ok()
        .map(Timestamp::from_unix)
}
