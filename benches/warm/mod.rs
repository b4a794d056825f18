//! A warm request, judged repeatedly: the basis of the figures per request.
//!
//! Invariant: only the keys are random, and no figure depends on a key. The clock stands still, and the GET gives its request id back,
//! because an id is used once. The GET has the PSU present and a session. The POST is authorised once, when it is made; later rounds only
//! prove it and write the head of that admission, because its request id would cost a write, which the benchmark `state` measures.
//! With a server of `.ci/postgres.sh` the state is in PostgreSQL. Not here: the cost of pingora, TLS and the upstream.

#![allow(
    dead_code,
    unused_imports,
    reason = "this file is part of three programs, and each uses another part of it"
)]

/// The server of a measurement.
#[path = "../database.rs"]
mod database;
/// What a caller can cause besides the checks of a request.
mod doors;
/// Refused requests.
mod strangers;

pub(crate) use doors::work;
pub(crate) use strangers::Stranger;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use openssl::{hash::MessageDigest, pkey::PKey, sign::Signer, x509::X509};
use portvakt::{
    admission::{
        self, Admission, Admitted, Check, Framing, Head, Outcome, Policy, RateSettings, Rates,
        Record, Snapshot, Trial,
    },
    audit::Audit,
    clock::{Clock, Timestamp},
    config::{AuditSettings, LogOutput, TraceSettings},
    gateway::upstream_head,
    interface::{
        TppId,
        headers::{Fields, PsuId, RequestId, SessionId, trace::TraceContext},
        operations::{Catalogue, Environment, builtin},
    },
    sca::{Links, TokenKeys},
    state::{
        Completion, ConsentAccounts, Finish, Hash, Known, PostgresSettings, PsuRef, StateSettings,
        StateStore,
    },
    telemetry::{
        AccessLog, CoreEndpoint, CoreTook, Finished, Handles, HttpFacts, HttpVersion, Telemetry,
        TlsVersion, Traces,
    },
    tools::tpp::{SignOptions, SignedRequest, TppIdentity, Unsigned, sign},
    trust::{Anchors, Certificate, CertificateSlot, Trust},
};
use portvakt_development_pki as pki;
use std::{hint::black_box, num::NonZeroU32, pin::pin, sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// The time of every request: 2026-01-01T00:00:00Z.
const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);

const PSU: &str = "7a3d5112-3e37-4b8f-8b8b-601a8122ea32";
const SESSION: &str = "5f0c3f8e-session";

/// A request as the pipeline sees it, with everything that the checks need.
pub(crate) struct Warm {
    snapshot: Snapshot,
    links: Arc<Links>,
    store: StateStore,
    /// The admission of the first round, if later rounds do not authorise again.
    once: Option<Box<Admitted>>,
    slot: CertificateSlot,
    clock: Clock,
    telemetry: Telemetry,
    handles: Handles,
    request: SignedRequest,
    method: Method,
    headers: HeaderMap,
    request_id: Option<RequestId>,
    trace: Option<TraceContext>,
    raw: Vec<u8>,
    core: HeaderValue,
    endpoint: Arc<CoreEndpoint>,
    body: Bytes,
    certificate: Arc<Certificate>,
    signature: Vec<u8>,
    runtime: Runtime,
    folder: TempDir,
}

/// A GET of transactions and a POST of a payment of 1 KB, by the same TPP with a key of 2048 bits. Both were served once.
pub(crate) fn requests() -> [Warm; 2] {
    requests_with(pki::Key::Rsa2048, pki::Key::Rsa2048)
}

/// The same by a TPP with this key, of a CA with that one.
pub(crate) fn requests_with(key: pki::Key, issuing: pki::Key) -> [Warm; 2] {
    let root = pki::Ca::root(&pki::CaSpec {
        key: pki::Key::EcP256,
        ..pki::CaSpec::development_root()
    });
    let issuing = root.unwrap().issue_ca(&pki::CaSpec {
        key: issuing,
        ..pki::CaSpec::default()
    });
    let issuing = issuing.unwrap();
    let tpp = issuing.issue(&pki::LeafSpec {
        serial: Some(vec![0x4b; 16]),
        key,
        ..pki::LeafSpec::default()
    });
    let tpp = tpp.unwrap();
    let get = unsigned(
        "GET",
        "/v1/accounts/4711/transactions?bookingStatus=both",
        None,
    );
    let post = unsigned(
        "POST",
        "/v1/payments/norwegian-cross-border-credit-transfers",
        Some(payment()),
    );
    [
        Warm::new(&tpp, issuing.der(), get),
        Warm::new(&tpp, issuing.der(), post).only_proven(),
    ]
}

impl Warm {
    fn new(tpp: &pki::Issued, anchor: &[u8], request: Unsigned) -> Self {
        let identity = TppIdentity::from_pem(&tpp.pem, &tpp.key_pem).unwrap();
        let request = sign(&identity, request, &SignOptions::at(NOW.system_time())).unwrap();
        let folder = TempDir::new().unwrap();
        let snapshot = snapshot(anchor);
        let telemetry = Telemetry::new(None);
        let handles = telemetry.handles(&snapshot.catalogue);
        let headers = headers(&request);
        let shown = headers.get("tpp-signature-certificate").unwrap();
        let warm = Self {
            links: Arc::new(links(&folder)),
            store: store(&folder),
            once: None,
            slot: CertificateSlot::default(),
            clock: Clock::standing(NOW),
            telemetry,
            handles,
            method: request.method.parse().unwrap(),
            certificate: {
                let identified = snapshot.trust.identify(shown.as_bytes(), None, NOW);
                Arc::clone(identified.unwrap().certificate())
            },
            raw: raw(&request),
            core: HeaderValue::from_static("10.0.0.7:8080"),
            endpoint: CoreEndpoint::new("core".into(), "10.0.0.7:8080".into()),
            body: request.body.clone().unwrap_or_default().into(),
            signature: signature(&tpp.key_pem, request.signing_string.as_bytes()),
            runtime: Builder::new_current_thread().enable_time().build().unwrap(),
            snapshot,
            request_id: request_id(&headers),
            trace: Some(TraceContext::new(None, 7, 7)),
            headers,
            request,
            folder,
        };
        // Objects that are made once for all requests are made here.
        warm.give_back(warm.serve().as_deref());
        warm
    }

    /// Keeps the admission of one round: later rounds are only proven.
    fn only_proven(mut self) -> Self {
        self.once = self.judge().1;
        self
    }

    /// The same request with an access log, whose lines nobody keeps, and an audit.
    pub(crate) fn logged(self) -> Self {
        let output = LogOutput::File("/dev/null".into());
        let access = AccessLog::open(output, NonZeroU32::MIN).unwrap();
        let audit = AuditSettings::new(self.folder.path().join("audit"));
        let audit = Audit::open(&audit, &self.clock).unwrap();
        self.with(Telemetry::new(Some(access)).with_audit(audit))
    }

    /// The same request with spans, of which no collector takes any.
    pub(crate) fn traced(self) -> Self {
        let traces = Traces::open(TraceSettings {
            endpoint: "http://127.0.0.1:9/v1/traces".parse().unwrap(),
            ratio: "1".parse().unwrap(),
        });
        self.with(Telemetry::new(None).with_traces(Some(traces.unwrap())))
    }

    fn with(self, telemetry: Telemetry) -> Self {
        Self {
            handles: telemetry.handles(&self.snapshot.catalogue),
            telemetry,
            ..self
        }
    }

    /// Waits until all lines are written, and all spans pushed.
    pub(crate) fn flush(&self) {
        assert!(self.telemetry.flush(Duration::from_secs(60)));
    }

    /// The gateway's work for one request: judge the request, write the head for the upstream, and count. There is no access log and no
    /// audit, unless the request is [`Self::logged`]; then other threads write them.
    pub(crate) fn serve(&self) -> Option<Box<Admitted>> {
        let (record, admitted) = self.judge();
        let _ = black_box(self.head(admitted.as_deref()));
        self.count(&record);
        admitted
    }

    /// From an opened record to an admitted, or proven, request.
    pub(crate) fn judge(&self) -> (Record, Option<Box<Admitted>>) {
        let head = Head {
            method: &self.method,
            target: self.request.target.as_bytes(),
            fields: Fields::of(&self.headers),
            authority: None,
            framing: Framing::Lines {
                raw: &self.raw,
                target_rewritten: false,
            },
            peer: None,
            slot: Some(&self.slot),
            client: None,
            trace: self.trace,
        };
        let mut record = Record::open();
        let trial = Trial::open(&self.snapshot, &self.clock, &mut record);
        let mut body = self.body.clone();
        if self.once.is_some() {
            let proven = admission::prove(&head, &mut body, trial);
            if let Err(refusal) = black_box(self.runtime.block_on(proven)) {
                panic!("a good request: {refusal:?}");
            }
            return (record, None);
        }
        let (links, store) = (&self.links, &self.store);
        let judged = async {
            let proven = pin!(admission::prove(&head, &mut body, trial)).await?;
            pin!(admission::authorise(proven, links, store, &self.snapshot)).await
        };
        match black_box(self.runtime.block_on(judged)) {
            Ok(Admission::Forward(admitted)) => (record, Some(admitted)),
            other => panic!("a good request: {other:?}"),
        }
    }

    /// The head for the upstream.
    pub(crate) fn head(&self, admitted: Option<&Admitted>) -> impl Sized + use<> {
        upstream_head(admitted.or(self.once.as_deref()).unwrap(), &self.core).unwrap()
    }

    /// The metrics of the requests.
    pub(crate) fn count(&self, record: &Record) {
        self.telemetry.take(
            &self.handles,
            Finished {
                record,
                outcome: Outcome::Forwarded(200),
                status: Some(200),
                id: None,
                request_id: self.request_id.as_ref(),
                trace: self.trace,
                http: HttpFacts {
                    caller: None,
                    method: Some("GET"),
                    version: Some(HttpVersion::V1_1),
                    tls: Some(TlsVersion::V1_3),
                    received: Some(0),
                    sent: Some(1_024),
                },
                operator: None,
                core: Some(CoreTook {
                    status: Some(200),
                    took: Duration::from_millis(1),
                }),
                endpoint: Some(&self.endpoint),
                is_audited: false,
                at: self.clock.log_time(),
            },
        );
    }

    /// Makes the request id usable again.
    pub(crate) fn give_back(&self, admitted: Option<&Admitted>) {
        if let Some(claim) = admitted.and_then(Admitted::claim) {
            let given = self.store.give_back(claim.taken(), false);
            self.runtime.block_on(given).unwrap();
        }
    }

    /// Judges the request and makes it usable again. Returns the time of each check.
    pub(crate) fn again(&self) -> Vec<Check> {
        let (record, admitted) = self.judge();
        self.give_back(admitted.as_deref());
        record.checks().to_vec()
    }

    /// The verification of its signature, alone.
    pub(crate) fn verify(&self) {
        let message = black_box(self.request.signing_string.as_bytes());
        let key = self.certificate.key();
        key.verify_sig(message, black_box(&self.signature)).unwrap();
    }
}

/// X-Request-ID, as the gateway has it after the head.
fn request_id(headers: &HeaderMap) -> Option<RequestId> {
    headers.get("x-request-id").and_then(RequestId::parse)
}

fn snapshot(anchor: &[u8]) -> Snapshot {
    let anchors = Anchors::of_operator(vec![X509::from_der(anchor).unwrap()], Vec::new()).unwrap();
    let snapshot = Snapshot::new(
        Policy::new(Environment::Sandbox),
        Catalogue::new(Environment::Sandbox, builtin()).unwrap(),
        Trust::new(anchors),
    );
    // More requests and new certificates than the default limits allow in a second.
    let many = NonZeroU32::new(1_000_000);
    let rates = RateSettings {
        per_address: many,
        per_tpp: many,
        unsafe_per_tpp: many,
        chains_per_address: None,
        chains: None,
    };
    Snapshot {
        rates: Arc::new(Rates::new(rates)),
        ..snapshot
    }
}

fn links(folder: &TempDir) -> Links {
    let keys = TokenKeys::read_or_make(&folder.path().join("keys"), NOW).unwrap();
    let lifetime = Duration::from_secs(900);
    Links::new(
        "https://bank.example/sca",
        lifetime,
        Environment::Sandbox,
        keys,
    )
}

/// A store that knows the PSU of [`unsigned`], with a session.
fn store(folder: &TempDir) -> StateStore {
    let file = folder.path().join("state.db");
    let mut settings = StateSettings::new(file, folder.path().join("hash.key"));
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let schema = runtime.block_on(database::schema());
    if let Some(schema) = schema {
        settings.engine = PostgresSettings::new(schema).into();
    }
    let store = StateStore::open(&settings).unwrap();
    let finish = Finish {
        token: Hash::from_bytes([1; 16]),
        expires: NOW,
        said: Hash::from_bytes([2; 16]),
        completion: Some(Completion {
            who: PsuRef {
                tpp: &TppId::parse("PSDNO-FSA-123456").unwrap(),
                psu: Known::by_bank(PsuId::parse(PSU.as_bytes()).unwrap()),
            },
            corporate: None,
            session: SessionId::from_text(SESSION).unwrap(),
            consent: Some(&ConsentAccounts::All),
            customer: None,
        }),
        now: NOW,
    };
    runtime.block_on(store.finish(finish)).unwrap();
    store
}

fn unsigned(method: &str, target: &str, body: Option<Vec<u8>>) -> Unsigned {
    let common = [
        ("Host", "bank.example"),
        ("Accept", "application/json"),
        ("TPP-Redirect-URI", "https://tpp.example/callback"),
        ("TPP-Session-ID", SESSION),
        ("PSU-ID", PSU),
        ("PSU-IP-Address", "192.0.2.10"),
    ];
    let of_a_body = [
        ("Content-Type", "application/json"),
        ("x-accept-fix", "amount-as-string"),
    ];
    let more = if body.is_some() { &of_a_body[..] } else { &[] };
    let headers = common.iter().chain(more);
    Unsigned {
        method: method.into(),
        target: target.into(),
        headers: headers
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        body,
    }
}

fn payment() -> Vec<u8> {
    format!(
        concat!(
            r#"{{"instructedAmount":{{"amount":"1.00","currency":"EUR"}},"creditorName":"Muster GmbH","#,
            r#""creditorAccount":{{"iban":"DE89370400440532013000","currency":"EUR"}},"#,
            r#""debtorAccount":{{"iban":"NO9386011117947","currency":"NOK"}},"note":"{}"}}"#,
        ),
        "x".repeat(780)
    )
    .into_bytes()
}

fn headers(signed: &SignedRequest) -> HeaderMap {
    let pairs = signed.headers.iter();
    pairs
        .map(|(name, value)| {
            (
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            )
        })
        .collect()
}

fn raw(signed: &SignedRequest) -> Vec<u8> {
    let lines: String = signed
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!(
        "{} {} HTTP/1.1\r\n{lines}\r\n",
        signed.method, signed.target
    )
    .into_bytes()
}

/// The TPP's signature alone: RSA-2048 and SHA-256.
fn signature(key_pem: &str, message: &[u8]) -> Vec<u8> {
    let key = PKey::private_key_from_pem(key_pem.as_bytes()).unwrap();
    let mut signer = Signer::new(MessageDigest::sha256(), &key).unwrap();
    signer.sign_oneshot_to_vec(message).unwrap()
}
