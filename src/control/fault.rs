//! What is wrong with a call, and the answer in the shape that the interface's errors have (ERR-1).
//!
//! The vocabulary is closed, and docs/sca.md explains each word of it. Invariant: no text repeats a value of the call.

use super::context::{ControlContext, MAX_BODY};
use crate::{interface::Code, sca::TokenFault, state::Unavailable};
use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use serde_json::{Value, json};

/// Why a call is not answered with what it asks for.
#[derive(Debug)]
pub(super) enum ApiFault {
    /// There is no such path.
    NoSuchCall,
    /// The path has another method.
    OtherMethod,
    /// The host is none of the listener's.
    ForeignHost,
    /// The connection was made by a configuration that asked for another client certificate, or for none.
    OldConnection,
    /// A browser asks, for a page of another origin.
    ForeignOrigin,
    /// The bearer token is missing, or another.
    Unauthorized,
    /// There is a query.
    Query,
    /// The body is not declared as JSON.
    OtherMediaType,
    /// The body is too long, or it broke off.
    LongBody,
    /// The body does not arrive.
    SlowBody,
    /// The body is no JSON object.
    NotJson(&'static str),
    /// Members that are wrong, each with its name.
    Members(Vec<MemberFault>),
    /// The token does not open.
    Token(TokenFault),
    /// The SCA ended before, in another way (SCA-12).
    FinishedOtherwise,
    /// It was completed for another PSU than the token names: it is over, and failed (SCA-12).
    OtherPsu {
        /// Where the browser goes now.
        redirect_uri: String,
    },
    /// It was completed in another context than the one that was chosen.
    OtherContext,
    /// The PSU-ID belongs to another TPP (SCA-19).
    BoundElsewhere,
    /// This TPP has no such PSU.
    PsuUnknown,
    /// The store is away (ERR-4).
    Unavailable,
    /// The configuration cannot be taken into use: every fault of it.
    Configuration(Vec<String>),
    /// The configuration was not read from a file.
    NotFromFile,
}

/// One member that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemberFault {
    /// The member's name.
    pub(super) member: String,
    /// What is wrong, and what would pass.
    pub(super) text: String,
}

/// Status, code and reason of a fault.
struct Meaning(u16, Code, &'static str);

impl ApiFault {
    /// The answer.
    pub(super) fn answer(&self, context: &ControlContext) -> Response {
        let Meaning(status, code, reason) = self.meaning();
        let mut body = json!({
            "id": uuid::Uuid::new_v4().to_string(),
            "system": context.system,
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
                Self::OtherPsu { redirect_uri } => {
                    members.insert("redirect_uri".into(), json!(redirect_uri));
                }
                _ => {}
            }
        }
        let mut answer = json(status, &body);
        let header = match self {
            Self::Unauthorized => Some((header::WWW_AUTHENTICATE, "Bearer")),
            Self::Unavailable => Some((header::RETRY_AFTER, "1")),
            // What is left of the body is not waited for.
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
            // RFC 9110, section 15.5.20: the request may be repeated over another connection.
            Self::OldConnection => Meaning(421, Code::BadRequest, "connection-outdated"),
            Self::ForeignOrigin => Meaning(403, Code::Forbidden, "origin-foreign"),
            Self::Query => Meaning(400, Code::BadRequest, "query-unexpected"),
            Self::Unauthorized => Meaning(401, Code::Forbidden, "caller-unknown"),
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
            Self::OtherContext => Meaning(409, Code::Conflict, "context-other"),
            Self::BoundElsewhere => Meaning(409, Code::Conflict, "psu-bound-elsewhere"),
            Self::PsuUnknown => Meaning(404, Code::NotFound, "psu-unknown"),
            Self::Configuration(_) => Meaning(422, Code::FormatError, "configuration-invalid"),
            Self::NotFromFile => Meaning(409, Code::Conflict, "configuration-fixed"),
            Self::Unavailable => Meaning(503, Code::SystemError, "state-unavailable"),
        }
    }

    fn message(&self) -> String {
        match self {
            Self::NoSuchCall => "There is no such call; docs/sca.md lists them.".into(),
            Self::OtherMethod => "This call has another method; Allow names it.".into(),
            Self::Unauthorized => {
                "This listener asks for its token: Authorization: Bearer <token>.".into()
            }
            Self::ForeignHost => {
                "This listener has another host; control.hosts names those that it answers to."
                    .into()
            }
            Self::OldConnection => {
                "This listener asks for another client certificate since a reload; connect again.".into()
            }
            Self::ForeignOrigin => "Pages of another origin are not answered here.".into(),
            Self::Query => "A call has no query; everything is said in its body.".into(),
            Self::OtherMediaType => "The body must be application/json.".into(),
            Self::LongBody => format!("The body must be whole, and of at most {MAX_BODY} bytes."),
            Self::SlowBody => "The body did not arrive in time.".into(),
            Self::NotJson(text) => (*text).into(),
            Self::Members(_) => "A member of the body is not as it must be.".into(),
            Self::Token(fault) => format!("The request does not open: {fault}."),
            Self::FinishedOtherwise => {
                "This SCA ended before, in another way; nothing changed.".into()
            }
            Self::OtherPsu { .. } => {
                "The SCA was started for another PSU of this TPP; it has failed. Send the browser to redirect_uri.".into()
            }
            Self::OtherContext => {
                "The TPP chose another context or agreement; nothing changed, and the SCA can still be completed in that one.".into()
            }
            Self::BoundElsewhere => {
                "This PSU-ID belongs to another TPP; nothing changed. A PSU has a PSU-ID of its own for each TPP.".into()
            }
            Self::PsuUnknown => "This TPP has no such PSU.".into(),
            Self::Configuration(_) => "The configuration cannot be taken into use; the one before stays in use.".into(),
            Self::NotFromFile => "The configuration was not read from a file.".into(),
            Self::Unavailable => "The store is away. Repeat the call: what was done already is not done twice.".into(),
        }
    }
}

impl From<Unavailable> for ApiFault {
    /// The operator reads why; the caller need not.
    fn from(unavailable: Unavailable) -> Self {
        tracing::error!(%unavailable, "the store did not answer a call of the control listener");
        Self::Unavailable
    }
}

impl From<TokenFault> for ApiFault {
    fn from(fault: TokenFault) -> Self {
        Self::Token(fault)
    }
}

/// An answer in JSON.
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
    use super::*;

    #[test]
    fn the_manual_lists_every_reason() {
        let manual = include_str!("../../docs/sca.md");
        for fault in every_fault() {
            let Meaning(status, _, reason) = fault.meaning();
            let row = format!("| {status} | `{reason}` | ");
            assert_eq!(manual.matches(&row).count(), 1, "{row}");
            assert!(fault.message().ends_with('.'));
        }
        assert_eq!(manual.matches("| `").count(), every_fault().len());
    }

    fn every_fault() -> Vec<ApiFault> {
        vec![
            ApiFault::NoSuchCall,
            ApiFault::OtherMethod,
            ApiFault::ForeignHost,
            ApiFault::OldConnection,
            ApiFault::ForeignOrigin,
            ApiFault::Unauthorized,
            ApiFault::Query,
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
            ApiFault::OtherContext,
            ApiFault::BoundElsewhere,
            ApiFault::PsuUnknown,
            ApiFault::Unavailable,
        ]
    }
}
