//! The session of a request against the one session of (TPP, PSU) (SCA-4 to SCA-6, SCA-16).
//!
//! The state keeps the last session of a PSU alone. A TPP-Session-ID that is another one was therefore replaced or never completed, and
//! nobody knows which; the fault names what is known.

use crate::{
    clock::Timestamp,
    state::{Psu, SessionHash},
};

/// SCA-5: the lifetime of a session from its completion, one hour, in seconds. Use does not extend it.
pub(crate) const SESSION_LASTS: u64 = 3_600;

/// The tolerance for a session with a completion time in the future, in seconds, because clocks differ.
const AHEAD: u64 = 60;

/// The reason why a request has no valid session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoSession {
    /// The request names none, and the bank asks for one (SCA-16).
    NotSent,
    /// The PSU has none: no SCA was completed under a TPP-Session-ID, or the bank has ended the session.
    Nothing,
    /// The last SCA was completed under another TPP-Session-ID, less than an hour ago.
    Another,
    /// The last SCA was completed under another TPP-Session-ID, an hour ago or more.
    AnotherOver,
    /// An hour has passed since its SCA.
    Over,
    /// Its SCA is dated in the future. It is not valid, because it would last longer than an hour.
    Ahead,
}

impl NoSession {
    /// The sentence for the caller.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::NotSent => {
                "missing: with PSU-IP-Address this bank asks for the TPP-Session-ID of a valid session"
            }
            Self::Nothing => "this PSU has no session now; an SCA by the link gives one",
            Self::Another => {
                "the last SCA of this PSU was completed under another TPP-Session-ID, and only that session is valid: use the link, after which this session is valid and the other is not"
            }
            Self::AnotherOver => {
                "the last SCA of this PSU was completed under another TPP-Session-ID, more than an hour ago: use the link"
            }
            Self::Over => {
                "its SCA was completed an hour ago or more, and a session lasts one hour: use the link"
            }
            Self::Ahead => "its SCA is dated in the future by the bank's clock: use the link",
        }
    }
}

/// SCA-4, SCA-5: the time at which the SCA of the request's session was completed, if it is the session of (TPP, PSU) and less than an hour
/// old.
pub(super) fn valid(
    sent: Option<SessionHash>,
    psu: &Psu,
    at: Timestamp,
) -> Result<Timestamp, NoSession> {
    let sent = sent.ok_or(NoSession::NotSent)?;
    let session = psu.session.as_ref().ok_or(NoSession::Nothing)?;
    let completed = session.completed.unix();
    let is_over = at.unix() >= completed.saturating_add(SESSION_LASTS);
    match (session.id == sent, is_over) {
        (false, false) => Err(NoSession::Another),
        (false, true) => Err(NoSession::AnotherOver),
        (true, true) => Err(NoSession::Over),
        (true, false) if completed > at.unix().saturating_add(AHEAD) => Err(NoSession::Ahead),
        (true, false) => Ok(session.completed.min(at)),
    }
}
