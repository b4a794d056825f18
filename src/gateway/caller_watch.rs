//! Watches whether the caller is still connected while the core works (FWD-4).

use pingora::{Error, ErrorType, Result, protocols::http::ServerSession as Session};
use std::{future::ready, pin::pin, time::Duration};
use tokio::time::timeout;

/// The delay before the gateway watches whether the caller is still connected: watching costs more than most answers take.
const PATIENCE: Duration = Duration::from_millis(100);

/// Works for a caller. With `watched`, the work ends when the caller disconnects. `within` is the time-out of the work.
///
/// # Errors
/// The work failed or took too long, or the caller disconnected: the source of the error tells which.
pub(super) async fn work_for<T>(
    caller: &mut Session,
    watched: bool,
    within: Duration,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let mut work = pin!(work);
    let patience = PATIENCE.min(within);
    if let Ok(done) = timeout(patience, &mut work).await {
        return done.map_err(Error::into_up);
    }
    let rest = within.saturating_sub(patience);
    let mut waiting = pin!(timeout(rest, work));
    let mut watched = watched;
    loop {
        tokio::select! {
            done = &mut waiting => return match done {
                Ok(done) => done.map_err(Error::into_up),
                Err(_) => unanswered(),
            },
            idle = caller.read_body_or_idle(true), if watched => match idle {
                // Bytes of a further request, or an empty line, mean that the caller is still connected (RFC 9112, sections
                // 2.2 and 9.3.2). They are lost, so the caller's connection ends with this answer.
                Err(error) if *error.etype() == ErrorType::ConnectError => {
                    watched = false;
                    caller.set_keepalive(None);
                }
                Err(error) => return Err(error.into_down()),
                Ok(_) => return left(),
            },
        }
    }
}

/// The failure of work that took too long.
pub(super) fn unanswered<T>() -> Result<T> {
    Error::e_explain(ErrorType::ReadTimedout, "no answer").map_err(Error::into_up)
}

/// Whether the caller of a request that was read whole is still connected, as far as is known now.
///
/// # Errors
/// The caller has disconnected.
pub(super) async fn is_connected(caller: &mut Session) -> Result<()> {
    let idle = tokio::select! {
        biased;
        idle = caller.read_body_or_idle(true) => idle,
        () = ready(()) => return Ok(()),
    };
    match idle {
        // As above.
        Err(error) if *error.etype() == ErrorType::ConnectError => {
            caller.set_keepalive(None);
            Ok(())
        }
        Err(error) => Err(error.into_down()),
        Ok(_) => left(),
    }
}

fn left<T>() -> Result<T> {
    Error::e_explain(ErrorType::ConnectionClosed, "the caller went away").map_err(Error::into_down)
}
