//! Requests as recipes. A request is signed each time it is sent, so each has a Date from its gate's clock and its own X-Request-ID.

use super::world::{Tpp, world};
use portvakt::{
    clock::Timestamp,
    tools::tpp::{SignOptions, SignedRequest, Unsigned, sign},
};
use std::sync::Arc;

/// The protocol of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Protocol {
    /// Both (TLS-2).
    pub(crate) const ALL: [Self; 2] = [Self::Http1, Self::Http2];
}

/// How a body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// With Content-Length.
    Length,
    /// Chunked; over HTTP/2 without Content-Length.
    Chunked,
}

/// A request, signed.
#[derive(Clone)]
pub(crate) struct Sealed {
    /// Everything except the position of Host and the framing.
    pub(crate) request: SignedRequest,
    /// The framing.
    pub(crate) framing: Framing,
    /// Over HTTP/2: Host headers beside `:authority`.
    pub(crate) also_host: Vec<String>,
}

type Alteration = Arc<dyn Fn(&mut SignedRequest) + Send + Sync>;

/// A request to be made.
#[derive(Clone)]
pub(crate) struct Call {
    tpp: Arc<Tpp>,
    unsigned: Unsigned,
    signed: Option<Vec<String>>,
    key_id: Option<String>,
    request_id: bool,
    seconds_off: i64,
    framing: Framing,
    protocols: Vec<Protocol>,
    also_host: Vec<String>,
    alterations: Vec<Alteration>,
}

/// The TPP-Redirect-URI of test requests.
const REDIRECT: (&str, &str) = ("TPP-Redirect-URI", "https://tpp.example/back");
/// The PSU-IP-Address of a request with the PSU present.
const PSU_IP: (&str, &str) = ("PSU-IP-Address", "192.0.2.7");
/// The PSU-ID of a TPP: each TPP has another one (SCA-3).
const PSU_ID: (&str, &str) = ("PSU-ID", "{psu}");

impl Call {
    /// A request with Host and no other header.
    pub(crate) fn bare(method: &str, target: &str) -> Self {
        let headers = vec![("Host".to_owned(), "localhost".to_owned())];
        Self {
            tpp: Arc::clone(&world().both),
            unsigned: Unsigned {
                method: method.into(),
                target: target.into(),
                headers,
                body: None,
            },
            signed: None,
            key_id: None,
            request_id: true,
            seconds_off: 0,
            framing: Framing::Length,
            protocols: Protocol::ALL.to_vec(),
            also_host: Vec::new(),
            alterations: Vec::new(),
        }
    }

    /// An operation that requires only the headers of HDR-5. If the operation is about a PSU, the TPP knows the PSU.
    pub(crate) fn new(method: &str, target: &str) -> Self {
        let call = Self::bare(method, target).with(REDIRECT.0, REDIRECT.1);
        let of_psu = ["/v1/accounts", "/v1/agreements"];
        if of_psu.iter().any(|path| target.starts_with(path)) {
            call.of_psu()
        } else {
            call
        }
    }

    /// An operation that does not concern a PSU.
    pub(crate) fn plain() -> Self {
        Self::new("GET", "/v1/tpp/contact")
    }

    /// The account list.
    pub(crate) fn accounts() -> Self {
        Self::new("GET", "/v1/accounts")
    }

    /// An account's balances without the PSU: limited to four calls in 24 hours.
    pub(crate) fn balances() -> Self {
        Self::accounts().at("/v1/accounts/42/balances")
    }

    /// An operation that a deployment adds, or one without a PSU, for a PSU that the TPP knows.
    pub(crate) fn of_psu(self) -> Self {
        self.with(PSU_ID.0, PSU_ID.1)
    }

    /// With the PSU present.
    pub(crate) fn present(self) -> Self {
        self.with(PSU_IP.0, PSU_IP.1)
    }

    /// The initiation of a domestic payment.
    pub(crate) fn payment() -> Self {
        let body = r#"{"instructedAmount":{"amount":"1.00","currency":"NOK"}}"#;
        let call = Self::new("POST", "/v1/payments/norwegian-domestic-credit-transfers");
        call.with(PSU_IP.0, PSU_IP.1)
            .with(PSU_ID.0, PSU_ID.1)
            .json(body)
    }

    /// The creation of a cross-border payment (B).
    pub(crate) fn cross_border() -> Self {
        let body = concat!(
            r#"{"instructedAmount":{"amount":"1.00","currency":"EUR"},"creditorName":"Werkzeugbau Muster GmbH","#,
            r#""creditorAccount":{"iban":"DE89370400440532013000","currency":"EUR"},"#,
            r#""debtorAccount":{"iban":"NO9386011117947","currency":"NOK"}}"#,
        );
        let call = Self::payment().at("/v1/payments/norwegian-cross-border-credit-transfers");
        call.with("x-accept-fix", "amount-as-string")
            .with("TPP-Session-ID", "session-1")
            .json(body)
    }

    /// The creation of a signing basket (A).
    pub(crate) fn basket() -> Self {
        Self::cross_border()
            .at("/v1/signing-baskets")
            .json(r#"{"paymentIds":["1"]}"#)
    }

    /// Transaction details (C), without the headers of the table, except those about the PSU.
    pub(crate) fn details() -> Self {
        let call = Self::bare("GET", "/v1/accounts/42/transactions/7").of_psu();
        Self {
            request_id: false,
            ..call
        }
    }

    /// The sandbox's account transactions (D).
    pub(crate) fn sandbox_transactions() -> Self {
        Self::bare("GET", "/v1/sandbox/accounts/42/transactions")
    }

    /// Another target.
    pub(crate) fn at(mut self, target: &str) -> Self {
        self.unsigned.target = target.into();
        self
    }

    /// Another TPP.
    pub(crate) fn by(mut self, tpp: &Arc<Tpp>) -> Self {
        self.tpp = Arc::clone(tpp);
        self
    }

    /// Replaces all headers of this name.
    pub(crate) fn with(self, name: &str, value: &str) -> Self {
        self.without(name).also(name, value)
    }

    /// Appends a header, even if the name exists already.
    pub(crate) fn also(mut self, name: &str, value: &str) -> Self {
        self.unsigned.headers.push((name.into(), value.into()));
        self
    }

    /// Removes the headers of a name. If the name is X-Request-ID, signing does not add one.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.unsigned
            .headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.request_id &= !name.eq_ignore_ascii_case("x-request-id");
        self
    }

    /// A JSON body.
    pub(crate) fn json(self, body: &str) -> Self {
        self.with("Content-Type", "application/json")
            .body(body.as_bytes())
    }

    /// A body of any kind.
    pub(crate) fn body(mut self, body: &[u8]) -> Self {
        self.unsigned.body = Some(body.into());
        self
    }

    /// A body in chunks; over HTTP/2 without its length.
    pub(crate) fn chunked(mut self) -> Self {
        self.framing = Framing::Chunked;
        self
    }

    /// The names of the signed headers, in order.
    pub(crate) fn signing(mut self, names: &[&str]) -> Self {
        self.signed = Some(names.iter().map(|name| (*name).to_owned()).collect());
        self
    }

    /// Replaces the keyId of the certificate.
    pub(crate) fn key_id(mut self, key_id: &str) -> Self {
        self.key_id = Some(key_id.into());
        self
    }

    /// Shifts Date by this number of seconds.
    pub(crate) fn off_by(mut self, seconds: i64) -> Self {
        self.seconds_off = seconds;
        self
    }

    /// Sends the request over one protocol only, because the other one cannot express it.
    pub(crate) fn only(mut self, protocol: Protocol) -> Self {
        self.protocols = vec![protocol];
        self
    }

    /// Over HTTP/2 only: a Host header beside `:authority`.
    pub(crate) fn also_host(mut self, host: &str) -> Self {
        self.also_host.push(host.into());
        self.only(Protocol::Http2)
    }

    /// Changes the request after it was signed.
    pub(crate) fn altered(
        mut self,
        alteration: impl Fn(&mut SignedRequest) + Send + Sync + 'static,
    ) -> Self {
        self.alterations.push(Arc::new(alteration));
        self
    }

    /// Changes the Signature header after signing.
    pub(crate) fn signature(
        self,
        alteration: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        self.altered(move |request| {
            let signature = alteration(request.header("signature").unwrap());
            request.set_header("Signature", &signature);
        })
    }

    /// The TPP that sends the request.
    pub(crate) fn tpp(&self) -> &Tpp {
        &self.tpp
    }

    /// The protocols that the request is sent over.
    pub(crate) fn protocols(&self) -> &[Protocol] {
        &self.protocols
    }

    /// The request, signed as of `now`.
    pub(crate) fn seal(&self, now: Timestamp) -> Sealed {
        let date =
            Timestamp::from_unix(now.unix().saturating_add_signed(self.seconds_off)).system_time();
        let options = SignOptions {
            headers: self.signed.clone(),
            add_request_id: self.request_id,
            key_id: self.key_id.clone(),
            ..SignOptions::at(date)
        };
        let mut unsigned = self.unsigned.clone();
        for (_, value) in &mut unsigned.headers {
            if value == PSU_ID.1 {
                *value = self.tpp.psu();
            }
        }
        let mut request = sign(&self.tpp.identity, unsigned, &options).unwrap();
        for alteration in &self.alterations {
            alteration(&mut request);
        }
        Sealed {
            request,
            framing: self.framing,
            also_host: self.also_host.clone(),
        }
    }
}
