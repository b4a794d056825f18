//! The signature of an answer, the gateway's or the core's (SIG-12).

use crate::signing::AnswerSigner;
use http::{HeaderMap, header};
use pingora::{Error, ErrorType, Result, protocols::http::date::get_cached_date};

/// Adds Date and the signature to the head of an answer with this body.
///
/// pingora writes its own Date over that of every answer, so the signature covers pingora's Date. If a second ends meanwhile, the
/// answer is signed again.
///
/// # Errors
/// The answer cannot be signed: a fault of the machine.
pub(super) fn sign(signer: &AnswerSigner, headers: &mut HeaderMap, body: &[u8]) -> Result<()> {
    loop {
        let date = get_cached_date();
        headers.insert(header::DATE, date.clone());
        let signed = signer.sign(headers, body).ok_or_else(|| {
            Error::explain(ErrorType::InternalError, "the answer cannot be signed")
        })?;
        if get_cached_date() == date {
            for (name, value) in signed {
                headers.insert(name, value);
            }
            return Ok(());
        }
    }
}
