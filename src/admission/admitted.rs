//! The evidence of all checks: only an admitted request can be forwarded.

// The requirement on the PSU, judged again.
mod again;
// The way to the core.
pub(super) mod under_way;

use super::{
    Claim, Enforcement, Grant, IntactBody, Judged, Learning, Registered, Signed, Stage, Tpp,
    Unconfirmed, Unrevoked, ValidQuery,
    enforcement::{Caller, Whose},
    envelope::Envelope,
    proven::{Evidence, ProvenRequest},
    record::AdmittedFacts,
    sca,
};
use crate::interface::{
    Reason, Refusal, TppId,
    headers::{
        self, Fields, accept_encoding,
        accept_fix::{self, Fixes},
        trace::TraceContext,
    },
    operations::{Body, Environment, Operation, Takes},
};
use crate::{
    clock::{BootTime, Timestamp},
    sca::{Links, Pending, SealFault},
};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use std::{net::SocketAddr, sync::Arc};

/// A request that may be forwarded. It owns everything that is sent upstream: nothing is read from the request again.
#[must_use]
#[derive(Debug)]
pub struct Admitted {
    operation: Arc<Operation>,
    environment: Environment,
    method: Method,
    target: Box<[u8]>,
    host: Box<[u8]>,
    peer: Option<SocketAddr>,
    trace: Option<TraceContext>,
    headers: Vec<(HeaderName, HeaderValue)>,
    envelope: Envelope,
    links: Arc<Links>,
    at: Timestamp,
    body: Bytes,
    evidence: Evidence,
    grant: Judged<Grant>,
    claim: Judged<Claim>,
    observed: Vec<Reason>,
    judged: JudgedAt,
    /// The number of times that the request was judged again.
    judgement: u32,
}

/// The last judgement of what the bank may change meanwhile: the sender's standing, and what is known of the PSU.
#[derive(Debug)]
pub(super) struct JudgedAt {
    /// A moment before it.
    pub(super) moment: BootTime,
    /// The TPPs that the certificates of an unknown sender name (FWD-6).
    pub(super) claims: Box<[TppId]>,
}

impl Admitted {
    /// Only [`authorise`](super::authorise) calls this function.
    pub(super) fn new(
        proven: ProvenRequest<'_>,
        links: Arc<Links>,
        grant: Judged<Grant>,
        claim: Judged<Claim>,
        observed: Vec<Reason>,
        judged: JudgedAt,
    ) -> Self {
        let ProvenRequest {
            head,
            snapshot,
            operation,
            target: _,
            ids: _,
            envelope,
            at,
            body,
            evidence,
        } = proven;
        let fixes = accept_fix::resolve(envelope.fixes(), at);
        let bodiless = stays_here(&operation, &body, &evidence);
        Self {
            method: head.method.clone(),
            target: head.target.into(),
            host: head.host().unwrap_or_default().into(),
            peer: head.peer,
            trace: head.trace,
            headers: forwarded_headers(&head.fields, &operation, bodiless, fixes, grant.held()),
            envelope,
            body: if bodiless { Bytes::new() } else { body },
            operation,
            environment: snapshot.policy.environment,
            links,
            at,
            evidence,
            grant,
            claim,
            observed,
            judged,
            judgement: 0,
        }
    }

    /// The number of the judgement of the PSU's facts: a head that was written by an earlier one does not go to the core.
    pub(crate) const fn judgement(&self) -> u32 {
        self.judgement
    }

    /// The operation.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// The environment.
    pub const fn environment(&self) -> Environment {
        self.environment
    }

    /// The method.
    pub const fn method(&self) -> &Method {
        &self.method
    }

    /// Path and query, byte for byte as received and signed (HTTP-10).
    pub fn target(&self) -> &[u8] {
        &self.target
    }

    /// The authority of the request, well-formed (FWD-2).
    pub fn host(&self) -> &[u8] {
        &self.host
    }

    /// The address of the client.
    pub const fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The place in a trace, which the core gets as traceparent (FWD-2).
    pub const fn trace(&self) -> Option<TraceContext> {
        self.trace
    }

    /// The headers of the table that the request has, except Host and traceparent (FWD-2). x-accept-fix lists the fixes that are on for the request, even
    /// if the request has no such header (HDR-16).
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }

    /// The body, byte for byte as received and signed (PAY-15). Empty if the operation ignores the body, or takes none and the body has no
    /// Digest (DIG-2).
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// Whether the caller says that the PSU is present.
    pub const fn psu_present(&self) -> bool {
        self.envelope.is_psu_present()
    }

    /// The TPP, if its certificate and its signature are valid. A certificate alone does not authenticate the caller, and a revoked
    /// certificate authenticates nobody.
    pub const fn tpp(&self) -> Option<&Tpp> {
        if self.evidence.unrevoked.is_waived() {
            return None;
        }
        match (
            &self.evidence.tpp,
            &self.evidence.signed,
            &self.evidence.intact,
        ) {
            (Judged::Held(tpp), Judged::Held(_), Judged::Held(_)) => Some(tpp),
            _ => None,
        }
    }

    /// The TPP, if the role of its certificate suffices and the registers, if they are checked, confirm the role.
    pub const fn entitled_tpp(&self) -> Option<&Tpp> {
        if self.evidence.entitled.is_waived() || self.evidence.registered.is_waived() {
            return None;
        }
        self.tpp()
    }

    /// Whether the request has a well-formed X-Request-ID.
    pub const fn has_request_id(&self) -> bool {
        self.envelope.request_id().is_some()
    }

    /// The query.
    pub const fn query(&self) -> Option<&ValidQuery> {
        self.evidence.query.held()
    }

    /// The signature.
    pub const fn signed(&self) -> Option<&Signed> {
        self.evidence.signed.held()
    }

    /// The proof that the TPP is registered; `None` if that is not checked.
    pub const fn registered(&self) -> Option<&Registered> {
        self.evidence.registered.held()
    }

    /// The proof that no member of the certificate's chain is revoked; `None` if that is not checked.
    pub const fn unrevoked(&self) -> Option<&Unrevoked> {
        self.evidence.unrevoked.held()
    }

    /// The permission to read the PSU's data.
    pub const fn grant(&self) -> Option<&Grant> {
        self.grant.held()
    }

    /// The link that starts the SCA of this request, if the core demands one (SCA-14, SCA-21). `None` without TPP-Redirect-URI, if the
    /// sender is not authenticated, or if the TPP may not name the host of TPP-Redirect-URI.
    ///
    /// # Errors
    /// The reason why no link can be made.
    pub fn sca_redirect(&self) -> Result<Option<String>, SealFault> {
        let link = |pending| self.links.link(&pending, self.at);
        self.pending().map(link).transpose()
    }

    fn pending(&self) -> Option<Pending> {
        if self.evidence.redirectable.is_waived() {
            return None;
        }
        let path = self.target.split(|byte| *byte == b'?').next()?;
        let tpp = self.tpp()?.certificate();
        let pending = sca::pending(
            &self.envelope,
            &self.operation,
            self.environment,
            std::str::from_utf8(path).ok()?,
            tpp.tpp_id(),
            tpp.tpp_name(),
            self.grant().and_then(Grant::psu),
        )?;
        // SCA-17: an agreement that is not forwarded is not chosen either.
        let unknown = |grant: &Grant| grant.named_corporate().is_none();
        let corporate = pending
            .corporate
            .filter(|_| !self.grant().is_some_and(unknown));
        Some(Pending {
            corporate,
            ..pending
        })
    }

    /// A PSU-ID or an agreement that the core may confirm (SCA-19, SCA-22): it was forwarded as a claim, which happens only where the operation
    /// requires a PSU.
    pub fn learns(&self) -> Option<Learning<'_>> {
        Learning::of(self.tpp()?.certificate().tpp_id(), self.grant()?)
    }

    /// Decides on a request whose PSU-ID or agreement the core does not confirm. If SCA is only observed, the core's answer goes to the caller.
    ///
    /// # Errors
    /// The refusal: for a PSU-ID the same as for one of another TPP.
    pub fn not_learned(
        &self,
        unconfirmed: Unconfirmed,
        enforcement: &Enforcement,
    ) -> Result<(), Refusal> {
        let tpp = self.tpp().map(|tpp| tpp.certificate().tpp_id());
        let refusal = sca::not_learned(unconfirmed, self.sca_redirect());
        let whose = Whose::Of(Caller::proven(tpp));
        enforcement
            .rule(Stage::Sca, refusal, whose)
            .decision
            .map(drop)
    }

    /// The first use of the request id, and the call that is counted in the quota.
    pub const fn claim(&self) -> Option<&Claim> {
        self.claim.held()
    }

    /// The facts that are counted. The request named `named_fixes` (HDR-16).
    pub(super) fn facts(&self, named_fixes: Fixes) -> AdmittedFacts {
        AdmittedFacts {
            named_fixes,
            unknown_revocation: self
                .unrevoked()
                .is_some_and(|unrevoked| !unrevoked.is_known()),
            stale_register: self.registered().is_some_and(Registered::is_by_stale),
            unsigned_target: self.tpp().is_some()
                && self
                    .signed()
                    .is_some_and(|signed| !signed.covers_request_target()),
            without_session: self.grant().is_some_and(Grant::without_session),
            took_call: self.claim().is_some_and(|claim| claim.taken().is_call()),
        }
    }

    /// The reasons of the faults that are only observed, in the order of the checks (FWD-6).
    pub fn waived(&self) -> &[Reason] {
        &self.observed
    }
}

/// Whether a body is not forwarded: where the operation takes none, the core gets no unsigned body (DIG-2, HTTP-8), also if the signature is
/// only observed.
fn stays_here(operation: &Operation, body: &Bytes, evidence: &Evidence) -> bool {
    let is_signed = || {
        let intact = evidence.intact.held();
        evidence.signed.held().is_some() && intact.is_some_and(IntactBody::is_digested)
    };
    match operation.body {
        Body::Json => false,
        Body::Ignored => true,
        Body::None => !body.is_empty() && !is_signed(),
    }
}

/// The headers of a body, which are not forwarded without it (DIG-2).
static OF_BODY: [&headers::Header; 3] = [
    &headers::DIGEST,
    &headers::CONTENT_TYPE,
    &headers::CONTENT_ENCODING,
];

/// FWD-2: the table is the allow-list; a TPP's own traceparent is not believed. SCA-8: ids of a PSU that are not known to the TPP are not forwarded. HDR-3: sandbox operations take
/// fewer headers. HDR-16, ERR-6: x-accept-fix and Accept-Encoding are written anew.
fn forwarded_headers(
    fields: &Fields<'_>,
    operation: &Operation,
    bodiless: bool,
    fixes: Fixes,
    grant: Option<&Grant>,
) -> Vec<(HeaderName, HeaderValue)> {
    let mut forwarded = Vec::with_capacity(fields.map().len().saturating_add(2));
    let takes = operation.takes;
    let rewritten = [
        &headers::HOST.name,
        &headers::X_ACCEPT_FIX.name,
        &headers::ACCEPT_ENCODING.name,
        &headers::TRACEPARENT.name,
    ];
    // SCA-8: a PSU-ID that is not bound to the TPP is never forwarded, nor an agreement that no SCA gave to the TPP.
    let unknown = |header: &headers::Header| {
        grant.is_some_and(|grant| {
            grant.named_psu().is_none() && header.name == headers::PSU_ID.name
                || grant.named_corporate().is_none()
                    && header.name == headers::PSU_CORPORATE_ID.name
        })
    };
    let taken = |header: &&headers::Header| {
        !rewritten.contains(&&header.name)
            && (takes == Takes::Whole || header.on_sandbox)
            && !unknown(header)
            && !(bodiless && OF_BODY.iter().any(|of_body| header.name == of_body.name))
    };
    if let Some(fixes) = fixes.header_value().filter(|_| takes == Takes::Whole) {
        forwarded.push((headers::X_ACCEPT_FIX.name.clone(), fixes));
    }
    let codings = accept_encoding::for_core(fields.map());
    forwarded.push((headers::ACCEPT_ENCODING.name.clone(), codings));
    for header in fields.present().filter(taken) {
        let values = fields.all(header);
        forwarded.extend(values.map(|value| (header.name.clone(), value.clone())));
    }
    forwarded
}
