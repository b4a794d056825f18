//! Faults of a call, and their answers in the form of the interface's errors (ERR-1).
//!
//! The set of reasons is closed, and docs/sca.md explains each. Invariant: no text repeats a value of the call.

use super::context::{ControlContext, MAX_BODY};
use crate::{interface::Code, sca::TokenFault, state::Unavailable, upstreams::DrainFault};
use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use serde_json::{Value, json};

/// The reason why a call failed.
#[derive(Debug)]
pub(super) enum ApiFault {
    /// The path does not exist.
    NoSuchCall,
    /// The path exists, with another method.
    OtherMethod,
    /// The host is not one of the listener's.
    ForeignHost,
    /// The connection is from before a reload that changed the requirements on client certificates.
    OldConnection,
    /// A browser sent the request for a page of another origin.
    ForeignOrigin,
    /// The bearer token is missing or wrong.
    Unauthorized,
    /// The client certificate has another role.
    OtherRole,
    /// The call has a query.
    Query,
    /// The query of `/events` is not one that it takes (CTL-3).
    EventsQuery(&'static str),
    /// The cursor is none of this state's stream.
    CursorUnknown,
    /// Events after the cursor are no longer kept.
    CursorTooOld {
        /// The oldest cursor that works.
        oldest: String,
    },
    /// The cursor is later than this state, which was restored.
    StreamRestored {
        /// The oldest cursor that works.
        oldest: String,
    },
    /// As many calls as may wait for events do.
    TooManyWait,
    /// As many connections as may be open are, and that of the call is an old one.
    TooManyConnections,
    /// The query of `/readyz` is not the one that it takes.
    OtherQuery,
    /// The content type is not JSON.
    OtherMediaType,
    /// The body is too long or incomplete.
    LongBody,
    /// The body timed out.
    SlowBody,
    /// The body is not a JSON object.
    NotJson(&'static str),
    /// Faulty members, each with its name.
    Members(Vec<MemberFault>),
    /// The token is invalid or expired.
    Token(TokenFault),
    /// The SCA ended before with another result (SCA-12).
    FinishedOtherwise,
    /// The completion names another PSU than the token, so the SCA has failed (SCA-12).
    OtherPsu {
        /// The redirect URI for the browser.
        redirect_uri: String,
    },
    /// The bank blocks the TPP, so the SCA has failed (SCA-23).
    TppBlocked {
        /// The redirect URI for the browser.
        redirect_uri: String,
    },
    /// A register took the TPP's role or registration, so the SCA has failed (SCA-23).
    TppNotRegistered {
        /// The redirect URI for the browser.
        redirect_uri: String,
    },
    /// The completion names another context than the TPP chose.
    OtherContext,
    /// The PSU-ID belongs to another TPP (SCA-19).
    BoundElsewhere,
    /// The TPP has no such PSU.
    PsuUnknown,
    /// No PSU-ID has the key of this customer (CTL-1).
    CustomerUnknown,
    /// The PSU has no such agreement: nothing was withdrawn (SCA-13).
    AgreementUnknown,
    /// The PSU has consents of agreements only, and none was named: nothing was withdrawn (SCA-13).
    AgreementMissing,
    /// A newer consent for other accounts is stored.
    ConsentOutdated,
    /// The TPP has no such block (CTL-2).
    BlockUnknown,
    /// The TPP cannot be moved, or has another identity (CTL-4).
    NotMoved {
        /// The reason of the answer.
        reason: &'static str,
        /// The text, with the remedy.
        text: &'static str,
    },
    /// The core has no such endpoint.
    EndpointUnknown,
    /// No other endpoint of its group is healthy.
    EndpointNeeded,
    /// The store is unavailable (ERR-4).
    Unavailable,
    /// The configuration was refused, with all its faults.
    Configuration(Vec<String>),
    /// The configuration was not read from a file.
    NotFromFile,
}

/// A faulty member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemberFault {
    /// The member's name.
    pub(super) member: String,
    /// The fault, and the accepted form.
    pub(super) text: String,
}

/// Status, code and reason of a fault.
struct Meaning(u16, Code, &'static str);

impl ApiFault {
    /// The answer.
    pub(super) fn answer(&self, context: &ControlContext) -> Response {
        self.answer_of(&context.system)
    }

    /// The answer of the gateway with this `system` (ERR-1).
    pub(super) fn answer_of(&self, system: &str) -> Response {
        let Meaning(status, code, reason) = self.meaning();
        let mut body = json!({
            "id": uuid::Uuid::new_v4().to_string(),
            "system": system,
            "status": status,
            "code": code.as_str(),
            "message": self.message(),
            "reason": reason,
        });
        if let Some(members) = body.as_object_mut() {
            match self {
                Self::Members(faults) => {
                    let faults = faults.iter().map(|fault| {
                        json!({ "reason": reason, "path": fault.member, "text": fault.text })
                    });
                    members.insert("faults".into(), faults.collect());
                }
                Self::Configuration(faults) => {
                    let faults = faults
                        .iter()
                        .map(|fault| json!({ "reason": reason, "text": fault }));
                    members.insert("faults".into(), faults.collect());
                }
                Self::CursorTooOld { oldest } | Self::StreamRestored { oldest } => {
                    members.insert("oldest".into(), json!(oldest));
                }
                Self::OtherPsu { redirect_uri }
                | Self::TppBlocked { redirect_uri }
                | Self::TppNotRegistered { redirect_uri } => {
                    members.insert("redirect_uri".into(), json!(redirect_uri));
                }
                _ => {}
            }
        }
        let mut answer = json(status, &body);
        let header = match self {
            Self::Unauthorized => Some((header::WWW_AUTHENTICATE, "Bearer")),
            Self::Unavailable | Self::TooManyConnections => Some((header::RETRY_AFTER, "1")),
            Self::TooManyWait => Some((header::RETRY_AFTER, "5")),
            // The rest of the body is not read.
            Self::LongBody | Self::SlowBody | Self::OldConnection => {
                Some((header::CONNECTION, "close"))
            }
            _ => None,
        };
        if let Some((name, value)) = header {
            answer
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        answer
    }

    const fn meaning(&self) -> Meaning {
        match self {
            Self::NoSuchCall => Meaning(404, Code::NotFound, "call-unknown"),
            Self::OtherMethod => Meaning(405, Code::BadRequest, "method-not-allowed"),
            Self::ForeignHost => Meaning(421, Code::BadRequest, "host-foreign"),
            // RFC 9110, section 15.5.20: the client may repeat the request over another connection.
            Self::OldConnection => Meaning(421, Code::BadRequest, "connection-outdated"),
            Self::ForeignOrigin => Meaning(403, Code::Forbidden, "origin-foreign"),
            Self::Query | Self::OtherQuery => Meaning(400, Code::BadRequest, "query-unexpected"),
            Self::EventsQuery(_) => Meaning(400, Code::BadRequest, "events-query-invalid"),
            Self::CursorUnknown => Meaning(400, Code::BadRequest, "cursor-unknown"),
            Self::CursorTooOld { .. } => Meaning(410, Code::BadRequest, "cursor-too-old"),
            Self::StreamRestored { .. } => Meaning(410, Code::BadRequest, "stream-restored"),
            Self::TooManyWait => Meaning(503, Code::SystemError, "consumers-waiting"),
            Self::TooManyConnections => Meaning(503, Code::SystemError, "connections-too-many"),
            Self::Unauthorized => Meaning(401, Code::Forbidden, "caller-unknown"),
            Self::OtherRole => Meaning(403, Code::Forbidden, "role-other"),
            Self::OtherMediaType => Meaning(415, Code::FormatError, "media-type-unsupported"),
            Self::LongBody => Meaning(413, Code::BadRequest, "body-too-large"),
            Self::SlowBody => Meaning(408, Code::BadRequest, "request-timeout"),
            Self::NotJson(_) => Meaning(400, Code::FormatError, "body-malformed"),
            Self::Members(_) => Meaning(400, Code::FormatError, "member-invalid"),
            Self::Token(TokenFault::NotOurs) => {
                Meaning(400, Code::ScaInvalid, "sca-request-invalid")
            }
            Self::Token(TokenFault::OtherEnvironment) => {
                Meaning(400, Code::ScaInvalid, "sca-request-foreign")
            }
            Self::Token(TokenFault::Expired) => {
                Meaning(410, Code::ScaExpired, "sca-request-expired")
            }
            Self::FinishedOtherwise => Meaning(409, Code::Conflict, "sca-finished"),
            Self::OtherPsu { .. } => Meaning(409, Code::PsuCredentialsInvalid, "psu-other"),
            Self::TppBlocked { .. } => Meaning(409, Code::Forbidden, "tpp-blocked"),
            Self::TppNotRegistered { .. } => Meaning(409, Code::Forbidden, "tpp-not-registered"),
            Self::OtherContext => Meaning(409, Code::Conflict, "context-other"),
            Self::BoundElsewhere => Meaning(409, Code::Conflict, "psu-bound-elsewhere"),
            Self::PsuUnknown => Meaning(404, Code::NotFound, "psu-unknown"),
            Self::CustomerUnknown => Meaning(404, Code::NotFound, "customer-unknown"),
            Self::AgreementUnknown => Meaning(404, Code::NotFound, "agreement-unknown"),
            Self::AgreementMissing => Meaning(409, Code::Conflict, "agreement-missing"),
            Self::ConsentOutdated => Meaning(409, Code::Conflict, "consent-outdated"),
            Self::BlockUnknown => Meaning(404, Code::NotFound, "block-unknown"),
            Self::NotMoved { reason, .. } => Meaning(409, Code::Conflict, reason),
            Self::EndpointUnknown => Meaning(404, Code::NotFound, "endpoint-unknown"),
            Self::EndpointNeeded => Meaning(409, Code::Conflict, "endpoint-needed"),
            Self::Configuration(_) => Meaning(422, Code::FormatError, "configuration-invalid"),
            Self::NotFromFile => Meaning(409, Code::Conflict, "configuration-fixed"),
            Self::Unavailable => Meaning(503, Code::SystemError, "state-unavailable"),
        }
    }

    fn message(&self) -> String {
        match self {
            Self::NoSuchCall => "There is no such call; docs/sca.md and docs/operations.md list them.".into(),
            Self::OtherMethod => "This call has another method; Allow names it.".into(),
            Self::Unauthorized => {
                "This listener requires its token: Authorization: Bearer <token>.".into()
            }
            Self::OtherRole => {
                "The caller has no role for this call; control.clients, operate_token_file and events_token_file give roles.".into()
            }
            Self::ForeignHost => {
                "This listener has another host; control.hosts lists the accepted ones."
                    .into()
            }
            Self::OldConnection => {
                "This listener requires another client certificate since a reload; connect again.".into()
            }
            Self::ForeignOrigin => "Pages of another origin are not answered here.".into(),
            Self::Query => "A call has no query; its members are in the body.".into(),
            Self::OtherQuery => "/readyz takes no query but local=1, which asks about this replica alone.".into(),
            Self::EventsQuery(text) => (*text).into(),
            Self::CursorUnknown => "The cursor in after is none of this gateway's stream of events; send next of an earlier answer, or leave after out to begin with the oldest event.".into(),
            Self::CursorTooOld { .. } => "Events after this cursor are no longer kept, so some are lost to this consumer. Compare the bank's records with POST /psu/list, and go on with after set to oldest.".into(),
            Self::StreamRestored { .. } => "The state was restored to a moment before this cursor, and numbers of events are given again. Forget the numbers of earlier events, compare the bank's records with POST /psu/list, and go on with after set to oldest.".into(),
            Self::TooManyWait => "As many calls as may wait for events do; call again after Retry-After, or with wait=0.".into(),
            Self::TooManyConnections => "The control listener has as many connections as it may; nothing was done: connect again after Retry-After.".into(),
            Self::OtherMediaType => "The body must be application/json.".into(),
            Self::LongBody => format!("The body must be whole, and of at most {MAX_BODY} bytes."),
            Self::SlowBody => "The body did not arrive in time.".into(),
            Self::NotJson(text) => (*text).into(),
            Self::Members(_) => "A member of the body is faulty.".into(),
            Self::Token(fault) => format!("The token is unusable: {fault}."),
            Self::FinishedOtherwise => {
                "This SCA ended before with another result; nothing changed.".into()
            }
            Self::OtherPsu { .. } => {
                "The SCA was started for another PSU of this TPP; it has failed. Send the browser to redirect_uri.".into()
            }
            Self::TppBlocked { .. } => {
                "The bank blocks the TPP; the SCA has failed. Send the browser to redirect_uri.".into()
            }
            Self::TppNotRegistered { .. } => {
                "The registers do not have the TPP's role; the SCA has failed. Send the browser to redirect_uri.".into()
            }
            Self::OtherContext => {
                "The TPP chose another context or agreement; nothing changed, and the SCA can still be completed in that one.".into()
            }
            Self::BoundElsewhere => {
                "This PSU-ID belongs to another TPP; nothing changed. A PSU has a PSU-ID of its own for each TPP.".into()
            }
            Self::PsuUnknown => "This TPP has no such PSU.".into(),
            Self::CustomerUnknown => "No PSU-ID has the key of this customer, or none at this TPP; nothing changed.".into(),
            Self::AgreementUnknown => "This PSU has no such agreement at this TPP; nothing was withdrawn. POST /psu/read counts the consents; what: consents, or customer without an agreement, withdraws them all.".into(),
            Self::AgreementMissing => {
                "This PSU has consents of agreements only; nothing was withdrawn. Name one in psu_corporate_id, or withdraw all with what: consents.".into()
            }
            Self::ConsentOutdated => {
                "A newer consent for other accounts is stored; nothing changed. To narrow or replace it, repeat the call with consent_at as POST /psu/read shows it, or with a later one.".into()
            }
            Self::BlockUnknown => "This TPP has no such block; nothing changed.".into(),
            Self::NotMoved { text, .. } => (*text).into(),
            Self::EndpointUnknown => "There is no such endpoint; /readyz lists them. Nothing changed.".into(),
            Self::EndpointNeeded => "No other endpoint of the group is healthy and gets requests; nothing changed. Drain this one when another does.".into(),
            Self::Configuration(_) => "The configuration cannot be taken into use; the one before stays in use.".into(),
            Self::NotFromFile => "The configuration was not read from a file.".into(),
            Self::Unavailable => "The store is unavailable. Repeat the call: a completed change is not made twice.".into(),
        }
    }
}

impl From<Unavailable> for ApiFault {
    /// The cause is logged for the operator, and not part of the answer.
    fn from(unavailable: Unavailable) -> Self {
        tracing::error!(%unavailable, "the store did not answer a call of the control listener");
        Self::Unavailable
    }
}

impl From<DrainFault> for ApiFault {
    fn from(fault: DrainFault) -> Self {
        match fault {
            DrainFault::Unknown => Self::EndpointUnknown,
            DrainFault::Needed => Self::EndpointNeeded,
        }
    }
}

impl From<TokenFault> for ApiFault {
    fn from(fault: TokenFault) -> Self {
        Self::Token(fault)
    }
}

/// Builds an answer in JSON.
pub(super) fn json(status: u16, body: &Value) -> Response {
    let mut answer = Response::new(Body::from(body.to_string()));
    *answer.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    answer
}

#[cfg(test)]
mod tests {
    use super::{super::moves, *};

    #[test]
    fn the_manual_lists_every_reason() {
        let manual = include_str!("../../docs/sca.md");
        for fault in every_fault() {
            let Meaning(status, _, reason) = fault.meaning();
            let row = format!("| {status} | `{reason}` | ");
            assert_eq!(manual.matches(&row).count(), 1, "{row}");
            assert!(fault.message().ends_with('.'));
        }
        let rows = manual.split("\n| ").filter(|row| {
            let status = row.split(' ').next();
            status.is_some_and(|status| status.parse::<u16>().is_ok())
        });
        assert_eq!(rows.count(), every_fault().len());
    }

    fn every_fault() -> Vec<ApiFault> {
        vec![
            ApiFault::NoSuchCall,
            ApiFault::OtherMethod,
            ApiFault::ForeignHost,
            ApiFault::OldConnection,
            ApiFault::ForeignOrigin,
            ApiFault::Unauthorized,
            ApiFault::OtherRole,
            ApiFault::EndpointUnknown,
            ApiFault::EndpointNeeded,
            ApiFault::Query,
            ApiFault::EventsQuery("It is no query."),
            ApiFault::CursorUnknown,
            ApiFault::CursorTooOld {
                oldest: String::new(),
            },
            ApiFault::StreamRestored {
                oldest: String::new(),
            },
            ApiFault::TooManyWait,
            ApiFault::TooManyConnections,
            ApiFault::OtherMediaType,
            ApiFault::LongBody,
            ApiFault::SlowBody,
            ApiFault::NotJson("It is no JSON."),
            ApiFault::Members(Vec::new()),
            ApiFault::Token(TokenFault::NotOurs),
            ApiFault::Token(TokenFault::OtherEnvironment),
            ApiFault::Token(TokenFault::Expired),
            ApiFault::FinishedOtherwise,
            ApiFault::OtherPsu {
                redirect_uri: String::new(),
            },
            ApiFault::TppBlocked {
                redirect_uri: String::new(),
            },
            ApiFault::TppNotRegistered {
                redirect_uri: String::new(),
            },
            ApiFault::OtherContext,
            ApiFault::BoundElsewhere,
            ApiFault::PsuUnknown,
            ApiFault::CustomerUnknown,
            ApiFault::AgreementUnknown,
            ApiFault::AgreementMissing,
            ApiFault::ConsentOutdated,
            ApiFault::BlockUnknown,
            ApiFault::Unavailable,
        ]
        .into_iter()
        .chain(moves::FAULTS)
        .collect()
    }
}
