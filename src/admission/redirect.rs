//! The hosts to which a TPP may redirect PSUs (HDR-8, redirect_hosts).

use super::{Policy, Tpp, envelope::Envelope};
use crate::interface::{Fault, Reason, Refusal, headers};

/// The proof that the operator allows this TPP to name the host of TPP-Redirect-URI, if the request has one. The envelope checks the form.
#[must_use]
#[derive(Debug)]
pub struct Redirectable {
    _judged: (),
}

/// The caller has verified the signature, because a certificate alone does not authenticate the sender.
pub(super) fn judge(
    envelope: &Envelope,
    tpp: &Tpp,
    policy: &Policy,
) -> Result<Redirectable, Refusal> {
    let named = envelope.redirect_uri();
    let listed = named.and_then(|_| policy.redirect_hosts.get(tpp.certificate().tpp_id()));
    let (Some(hosts), Some(uri)) = (listed, named) else {
        return Ok(Redirectable { _judged: () });
    };
    if uri.is_at_one_of(hosts) {
        return Ok(Redirectable { _judged: () });
    }
    let text = format!(
        "its host is not one of those that this TPP has registered: {}",
        hosts.join(", ")
    );
    let header = headers::TPP_REDIRECT_URI.written;
    Err(Fault::header(Reason::HeaderMalformed, header, text).into())
}
