//! Refused requests of unauthenticated callers: the work that such a caller can cause.
//!
//! Each is the GET with one change after signing, on a connection without a valid signature. Where the gateway could cache a
//! result, each request is a different one. Each comes from another address: of one, the gateway reads four certificates in a second only
//! to name who was refused, so that a slow machine would count more of them.

use super::{Warm, headers, raw};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderMap;
use portvakt::{
    admission::{self, Framing, Head, Outcome, Record, Trial},
    interface::{
        Reason,
        headers::{Fields, RequestId},
    },
    telemetry::{Finished, HttpFacts},
    tools::tpp::SignedRequest,
    trust::CertificateSlot,
};
use std::{
    cell::Cell,
    hint::black_box,
    net::{Ipv4Addr, SocketAddr},
};

const CERTIFICATE: &str = "TPP-Signature-Certificate";

/// A caller whose requests are always refused for the same reason.
pub(crate) struct Stranger<'a> {
    warm: &'a Warm,
    reason: Reason,
    slot: CertificateSlot,
    requests: Vec<Sent>,
    turn: Cell<usize>,
}

struct Sent {
    peer: SocketAddr,
    target: String,
    headers: HeaderMap,
    request_id: Option<RequestId>,
    raw: Vec<u8>,
}

impl<'a> Stranger<'a> {
    /// A caller of a kind, with this number of requests. `None` for an unknown kind.
    pub(crate) fn of(warm: &'a Warm, kind: &str, count: usize) -> Option<Self> {
        let (reason, change): (_, fn(&mut SignedRequest, usize)) = match kind {
            "unsigned" => (Reason::SignatureMissing, unsigned),
            "unknown-path" => (Reason::OperationUnknown, unknown_path),
            "bad-signature" | "bad-signature-rsa4096" => {
                (Reason::SignatureMismatch, |request, _| forge(request))
            }
            "new-spelling" => (Reason::SignatureMismatch, respell),
            "unknown-certificate" => (Reason::CertificateUntrusted, alter_certificate),
            _ => return None,
        };
        let requests = (0..count).map(|number| {
            let mut request = warm.request.clone();
            change(&mut request, number);
            let headers = headers(&request);
            Sent {
                peer: address(number),
                request_id: super::request_id(&headers),
                headers,
                raw: raw(&request),
                target: request.target,
            }
        });
        Some(Self {
            requests: requests.collect(),
            warm,
            reason,
            slot: CertificateSlot::default(),
            turn: Cell::new(0),
        })
    }

    /// Judges, refuses and counts the next request. The proxy, which is not part of this, would write the answer.
    pub(crate) fn call(&self) {
        let (warm, turn) = (self.warm, self.turn.get());
        self.turn.set(turn + 1);
        let sent = self.requests.iter().cycle().nth(turn % self.requests.len());
        let sent = sent.unwrap();
        let head = Head {
            method: &warm.method,
            target: sent.target.as_bytes(),
            fields: Fields::of(&sent.headers),
            authority: None,
            framing: Framing::Lines {
                raw: &sent.raw,
                target_rewritten: false,
            },
            peer: Some(sent.peer),
            slot: Some(&self.slot),
            client: None,
            trace: None,
        };
        let mut record = Record::open();
        let trial = Trial::open(&warm.snapshot, &warm.clock, &mut record);
        let mut body = warm.body.clone();
        let judged = admission::prove(&head, &mut body, trial);
        let refusal = black_box(warm.runtime.block_on(judged)).unwrap_err();
        assert_eq!(refusal.reason(), self.reason);
        warm.telemetry.take(
            &warm.handles,
            Finished {
                record: &record,
                outcome: Outcome::Refused(refusal.reason()),
                status: Some(refusal.reason().status()),
                id: None,
                request_id: sent.request_id.as_ref(),
                trace: None,
                http: HttpFacts::default(),
                operator: None,
                core: None,
                endpoint: None,
                is_audited: false,
                at: warm.clock.log_time(),
            },
        );
    }
}

/// The address of a number, of the private ones.
fn address(number: usize) -> SocketAddr {
    let [.., high, low] = number.to_be_bytes();
    SocketAddr::from((Ipv4Addr::new(10, 0, high, low), 443))
}

fn unsigned(request: &mut SignedRequest, _: usize) {
    let headers = &mut request.headers;
    headers.retain(|(name, _)| !name.eq_ignore_ascii_case("signature"));
}

fn unknown_path(request: &mut SignedRequest, _: usize) {
    request.target = "/v1/nothing".into();
}

/// A value as long as a signature, and a number in the range of an RSA key.
fn forge(request: &mut SignedRequest) {
    let signature = request.header("signature").unwrap();
    let (before, after) = signature.split_once("signature=\"").unwrap();
    let (_, after) = after.split_at(8);
    let forged = format!("{before}signature=\"AAAAAAAA{after}");
    request.set_header("Signature", &forged);
}

/// PEM on one line, with a different text before the armour each time.
fn respell(request: &mut SignedRequest, number: usize) {
    forge(request);
    let der = request.header(CERTIFICATE).unwrap();
    let text = format!("{number:0500} -----BEGIN CERTIFICATE-----{der}-----END CERTIFICATE-----");
    request.set_header(CERTIFICATE, &text);
}

/// A different signature of the certificate each time.
fn alter_certificate(request: &mut SignedRequest, number: usize) {
    forge(request);
    let mut der = STANDARD
        .decode(request.header(CERTIFICATE).unwrap())
        .unwrap();
    let number = number.to_be_bytes();
    let last = der.iter_mut().rev().skip(1).zip(number.iter().rev());
    last.for_each(|(byte, other)| *byte ^= other);
    // Never the certificate's own signature.
    if let Some(byte) = der.last_mut() {
        *byte ^= 1;
    }
    let text = STANDARD.encode(der);
    request.set_header(CERTIFICATE, &text);
}
