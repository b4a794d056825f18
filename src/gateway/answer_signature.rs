//! The signature of an answer, the gateway's or the core's (SIG-12).
//!
//! An RSA signature costs more than all that a refusal costs besides. So only answers to a caller whose own signature verified are signed:
//! [`AnswerSignatures::of`] is the only way to a [`SignedAnswer`]. Signing runs beside pingora's threads, on at most half as many as the
//! machine has cores, or as many as a key in an HSM has sessions; an answer waits for its turn, and is never sent unsigned because others
//! wait.

use super::failure;
use crate::{
    admission::{Record, Stage},
    signing::AnswerSigning,
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use pingora::{ErrorType, OrErr, Result, protocols::http::date::get_cached_date};
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Signs answers, as the configuration of a request says.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerSignatures<'a>(&'a AnswerSigning);

/// An answer that is signed once its body is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignedAnswer<'a>(&'a AnswerSigning);

impl<'a> AnswerSignatures<'a> {
    /// The signatures of a configuration.
    pub(super) const fn new(signing: &'a AnswerSigning) -> Self {
        Self(signing)
    }

    /// An answer with this status to the request of this record; `None` if it is not signed (SIG-12).
    pub(super) fn of(self, record: &Record, status: StatusCode) -> Option<SignedAnswer<'a>> {
        let never = matches!(
            status,
            StatusCode::REQUEST_TIMEOUT
                | StatusCode::TOO_MANY_REQUESTS
                | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
                | StatusCode::SERVICE_UNAVAILABLE
        );
        (!never && record.holds(Stage::Signature)).then_some(SignedAnswer(self.0))
    }
}

impl SignedAnswer<'_> {
    /// The longest body that is signed, in bytes.
    pub(super) const fn body_limit(self) -> usize {
        self.0.body_limit
    }

    /// Adds Date and the signature to the head of an answer with this body.
    ///
    /// pingora writes its own Date over that of every answer, so the signature covers pingora's Date. If a second ends meanwhile, the
    /// answer is signed again.
    ///
    /// # Errors
    /// The answer cannot be signed: a fault of the machine, or of the HSM. Nothing of it was written.
    pub(super) async fn sign(self, headers: &mut HeaderMap, body: &Bytes) -> Result<()> {
        let place = Arc::clone(&self.0.places).acquire_owned().await;
        let mut place = place.or_err(ErrorType::InternalError, "no place to sign")?;
        loop {
            let date = get_cached_date();
            headers.insert(header::DATE, date.clone());
            let (signer, given, body) = (Arc::clone(&self.0.signer), headers.clone(), body.clone());
            // The place moves along, so that it is taken until the thread has signed, also if the caller leaves meanwhile.
            let signing = spawn_blocking(move || (signer.sign(&given, &body), place));
            let (signed, kept) = signing
                .await
                .or_err(ErrorType::InternalError, "the thread that signs")?;
            place = kept;
            let signed = signed.ok_or_else(failure::unsigned)?;
            if get_cached_date() == date {
                headers.extend(signed);
                return Ok(());
            }
        }
    }
}
