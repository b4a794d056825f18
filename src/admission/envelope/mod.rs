//! Headers (HTTP-4 to HTTP-6, HDR-1 to HDR-16, SIG-1, DAT-1, DIG-2, FWD-2): one answer lists all faults of the headers, in
//! the order of the rules (HDR-6).
//!
//! Each rule is a function that adds its faults; [`check`] calls them in the order of the rules and returns the headers that
//! later stages read. Deliberately not here: rules that need the TPP (redirect hosts) or the PSU's consents (the rest of
//! HDR-14).

// The headers that are judged (HDR-3).
mod applicable;
// The announced body, and Accept (HTTP-4 to HTTP-6).
mod content;
// The form of each header (HDR-7 to HDR-12, HDR-15, HDR-16, DAT-1).
mod forms;
// The header that was meant by a missing one.
mod meant;
// Required headers (HDR-1 to HDR-5, HDR-13, HDR-14, DIG-2).
mod required;

#[cfg(test)]
mod tests;

pub(super) use content::too_large;
pub(super) use required::requires_digest;

use super::{Announced, Head, Policy};
use crate::{
    clock::Timestamp,
    interface::{
        Fault, Reason, Refusal,
        headers::{
            self, CorporateId, PsuContext, PsuId, RedirectUri, RequestId, SessionId,
            accept_fix::Fixes, authority, connection,
        },
        operations::Operation,
    },
    state::Claimed,
};
use forms::ParsedHeaders;

/// The proof that the headers have the form of the interface.
#[must_use]
#[derive(Debug)]
pub(super) struct ValidHeaders {
    _judged: (),
}

/// The headers that later stages read, each parsed once.
///
/// A header that the operation does not take counts as absent (HDR-3), and so does a malformed one, if faults of headers are only observed.
#[must_use]
#[derive(Debug)]
pub(super) struct Envelope {
    date: Option<Timestamp>,
    fixes: Fixes,
    parsed: ParsedHeaders,
}

impl Envelope {
    /// The Date header (DAT-1).
    pub(super) const fn date(&self) -> Option<Timestamp> {
        self.date
    }

    /// The fixes that the request names (HDR-16).
    pub(super) const fn fixes(&self) -> Fixes {
        self.fixes
    }

    /// X-Request-ID (HDR-7).
    pub(super) const fn request_id(&self) -> Option<&RequestId> {
        self.parsed.request_id.as_ref()
    }

    /// TPP-Session-ID (HDR-7).
    pub(super) const fn session(&self) -> Option<&SessionId> {
        self.parsed.session.as_ref()
    }

    /// TPP-Redirect-URI (HDR-8).
    pub(super) const fn redirect_uri(&self) -> Option<&RedirectUri> {
        self.parsed.redirect_uri.as_ref()
    }

    /// TPP-Redirect-Preferred (HDR-10).
    pub(super) const fn redirect_preferred(&self) -> Option<bool> {
        self.parsed.redirect_preferred
    }

    /// PSU-ID (HDR-9).
    pub(super) const fn psu(&self) -> Option<Claimed<PsuId>> {
        self.parsed.psu
    }

    /// PSU-Corporate-ID (HDR-9).
    pub(super) const fn corporate(&self) -> Option<Claimed<CorporateId>> {
        self.parsed.corporate
    }

    /// PSU-Context (HDR-10).
    pub(super) const fn context(&self) -> Option<PsuContext> {
        self.parsed.context
    }

    /// Whether the TPP says that the PSU is present: PSU-IP-Address is sent.
    pub(super) const fn is_psu_present(&self) -> bool {
        self.parsed.psu_present
    }

    /// Whether X-PSU-IDENTITY names the PSU (HDR-12).
    pub(super) const fn has_identity(&self) -> bool {
        self.parsed.identity
    }
}

/// Reads the headers and judges them.
pub(super) fn check(
    head: &Head<'_>,
    body: Announced,
    operation: &Operation,
    policy: &Policy,
) -> (Envelope, Result<ValidHeaders, Refusal>) {
    let mut faults = Vec::new();
    // The headers are parsed first, because later rules need them; their faults are reported in the order of the rules.
    let mut malformed = Vec::new();
    let parsed = forms::parse(head, operation, policy, &mut malformed);
    content::judge(head, body, operation, policy, &mut faults);
    required::missing(head, body, operation, &mut faults);
    required::blank(head, operation, parsed.context, &mut faults);
    faults.append(&mut malformed);
    required::context(head, operation, &mut faults);
    required::agreement(head, operation, parsed.context, &mut faults);
    forms::duplicates(head, operation, &mut faults);
    let fixes = forms::fixes(head, operation, &mut faults);
    unsigned(head, &mut faults);
    let date = forms::date(head, &mut faults);
    nominations(head, &mut faults);
    authority(head, policy, &mut faults);
    let envelope = Envelope {
        date,
        fixes,
        parsed,
    };
    let judged = Refusal::of(faults).map_or(Ok(ValidHeaders { _judged: () }), Err);
    (envelope, judged)
}

/// SIG-1.
fn unsigned(head: &Head<'_>, faults: &mut Vec<Fault>) {
    if headers::SIGNATURE.get_filled(&head.fields).is_none() {
        let text = "missing: sign the request with the key of the certificate in TPP-Signature-Certificate";
        faults.push(Fault::header(
            Reason::SignatureMissing,
            headers::SIGNATURE.written,
            meant::missing(head, &headers::SIGNATURE, text),
        ));
    }
}

/// FWD-2.
fn nominations(head: &Head<'_>, faults: &mut Vec<Fault>) {
    if let Some(name) = connection::refused_nomination(head.fields.map()) {
        let text = format!("it nominates {name}, which must reach the service");
        faults.push(Fault::header(Reason::MalformedRequest, "Connection", text));
    }
}

/// FWD-2: the core gets the authority of the request, and may build links from it.
fn authority(head: &Head<'_>, policy: &Policy, faults: &mut Vec<Fault>) {
    let found = head.host().and_then(authority::parse);
    let text = match found {
        None => authority::fault(head.host().unwrap_or_default()),
        Some(found) if policy.hosts.is_empty() || found.is_one_of(&policy.hosts) => return,
        Some(_) => "no service of this name is here".to_owned(),
    };
    let fault = Fault::header(Reason::MalformedRequest, headers::HOST.written, text);
    faults.push(fault);
}
