//! The links by which an SCA proceeds (SCA-23), and its end as failed.
//!
//! Invariant: nothing is read from a link, and nothing is completed by it, unless the TPP is served at that moment. Deliberately not here:
//! the standing itself, which admission judges.

use super::{context::Call, fault::ApiFault};
use crate::{
    admission::standing::{self, GoodStanding},
    audit::{AuditEvent, AuditKind},
    interface::{Code, Reason, headers::PsuId},
    sca::{self, Failure, Opened, Pending, TokenFault},
    state::{Finish, Finished, Known, StateStore},
    telemetry::ScaEvent,
};

/// A pending SCA that can proceed. Only [`open_live`] makes one.
pub(super) struct LiveSca {
    pub(super) opened: Opened,
    /// The TPP is served, or its link would be void (SCA-23).
    _standing: GoodStanding,
}

/// When an SCA ended: by this report, or by the same one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Now,
    Before,
}

impl End {
    /// The record of a report. A repeated one changed nothing, and says so: the record of the first may be missing.
    pub(super) fn told(self, event: AuditEvent) -> AuditEvent {
        let repeated = (self == Self::Before).then_some(true);
        event.with_some("repeated", repeated)
    }
}

/// Opens a link by which the SCA of a PSU, if it is known, proceeds. SCA-23: the link of a TPP that is turned away is void, by the
/// configuration in use now, because the call may have taken a while, and by the bank's calls (CTL-2).
pub(super) async fn open_live(
    call: Call<'_>,
    request: Option<String>,
    psu: Option<Known<PsuId>>,
) -> Result<LiveSca, ApiFault> {
    let opened = open(call, request)?;
    let context = call.context;
    let (current, at) = (context.current.load_full(), context.clock.now());
    let (snapshot, store) = (&current.snapshot, &context.store);
    match standing::of_link(snapshot, store, &opened.pending, psu, at).await {
        Ok(standing) => Ok(LiveSca {
            opened,
            _standing: standing,
        }),
        Err(refusal) if refusal.reason() == Reason::StateUnavailable => Err(ApiFault::Unavailable),
        Err(refusal) => Err(void(call, &opened, refusal.reason()).await?),
    }
}

/// Ends the SCA of a TPP that is turned away as failed. One that ended before stays as it ended, and its link is void all the same.
async fn void(call: Call<'_>, opened: &Opened, reason: Reason) -> Result<ApiFault, ApiFault> {
    let failure = Failure {
        system: &call.context.system,
        status: reason.status(),
        code: Code::Forbidden,
        message: "The bank does not serve this TPP.",
    };
    let redirect_uri = match finish_as_failed(call, &call.context.store, opened, &failure).await {
        Err(ApiFault::FinishedOtherwise) => sca::failed(&opened.pending, &failure),
        ended => ended?,
    };
    let Pending { tpp, operation, .. } = &opened.pending;
    let name = reason.slug();
    tracing::warn!(
        tpp = tpp.as_str(),
        operation,
        reason = name,
        "the link is void"
    );
    Ok(match reason {
        Reason::TppBlocked => ApiFault::TppBlocked { redirect_uri },
        _ => ApiFault::TppNotRegistered { redirect_uri },
    })
}

/// Consumes the token as failed; returns the redirect URI.
pub(super) async fn finish_as_failed(
    call: Call<'_>,
    store: &StateStore,
    opened: &Opened,
    failure: &Failure<'_>,
) -> Result<String, ApiFault> {
    let Failure {
        system,
        status,
        code,
        message,
    } = failure;
    let status = status.to_be_bytes();
    let parts = [
        system.as_bytes(),
        &status,
        code.as_str().as_bytes(),
        message.as_bytes(),
    ];
    let finish = Finish {
        token: store.keys().token(opened.id),
        expires: opened.expires,
        said: store.keys().failed(&parts),
        completion: None,
        now: call.context.clock.now(),
    };
    let ended = match store.finish(finish).await? {
        Finished::Done => {
            call.context.telemetry.sca(ScaEvent::Failed);
            End::Now
        }
        Finished::Again => End::Before,
        // The SCA has not failed, so no record says that it has.
        Finished::Otherwise | Finished::BoundElsewhere => {
            return Err(ApiFault::FinishedOtherwise);
        }
    };
    let Pending {
        tpp,
        operation,
        psu,
        ..
    } = &opened.pending;
    let event = call.event(AuditKind::ScaFailed, tpp, *psu);
    let event = event.with("operation", operation.as_str());
    let event = event.with("code", code.as_str());
    call.record(ended.told(event)).await?;
    Ok(sca::failed(&opened.pending, failure))
}

/// Opens a link, also a void one: to end its SCA as failed.
pub(super) fn open(call: Call<'_>, request: Option<String>) -> Result<Opened, ApiFault> {
    let request = request.unwrap_or_default();
    let opened = call.in_use.links.open(&request, call.context.clock.now());
    if opened == Err(TokenFault::Expired) {
        call.context.telemetry.sca(ScaEvent::Expired);
    }
    Ok(opened?)
}
