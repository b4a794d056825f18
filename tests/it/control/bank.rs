//! The real listener with a configuration file and its own store.

use crate::harness::{self, Answer, Wire, eventually, world, write_private};
use portvakt::{
    audit::Audit,
    clock::{Clock, Timestamp},
    config::{AuditSettings, ControlAddress, Settings},
    control::{Bound, ControlContext, Listener, Observations},
    in_use::{Current, InUse},
    interface::{
        TppId,
        headers::{CorporateId, PsuId, RedirectUri, SessionId},
        operations::Environment,
    },
    sca::{Links, Pending, TokenKeys},
    state::{Claimed, Known, StateSettings, StateStore},
    telemetry::Telemetry,
    upstreams::{Upkeep, Upstreams},
};
use serde_json::Value;
use std::{
    fs,
    io::{Read, Write},
    net::SocketAddr,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{runtime::Runtime, sync::watch, task::JoinHandle};

/// 2027-01-15T08:00:00Z.
pub(super) const NOW: Timestamp = Timestamp::from_unix(1_800_000_000);

/// The TPP of the SCA, and another one.
pub(super) const TPP: &str = "PSDNO-FSA-123456";
pub(super) const OTHER_TPP: &str = "PSDSE-FINA-44059";

pub(super) const PSU: &str = "0192f0c1-5a5b-7def-8000-1234567890ab";
pub(super) const OTHER_PSU: &str = "0192f0c1-5a5b-7def-8000-1234567890ac";
pub(super) const AGREEMENT: &str = "00000000-0000-4000-8000-000000000001";

/// A running listener; dropping it stops the listener.
pub(super) struct Bank {
    pub(super) address: ControlAddress,
    pub(super) links: Arc<Links>,
    pub(super) clock: Clock,
    stop: watch::Sender<bool>,
    listening: JoinHandle<()>,
    runtime: Runtime,
}

/// The folder of a bank's files.
pub(super) struct Site(pub(super) TempDir);

impl Site {
    pub(super) fn new() -> Self {
        let site = Self(TempDir::new().unwrap());
        fs::create_dir(site.path().join("anchors")).unwrap();
        site.write("anchors/root.pem", world().root.pem());
        site.write("server.pem", &world().server.pem);
        site.write("server.key", &world().server.key_pem);
        site
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        write_private(&self.path().join(name), content);
    }

    /// The store of this site.
    pub(super) fn open(&self) -> StateStore {
        let folder = self.path().join("state");
        StateStore::open(&StateSettings::new(
            folder.join("portvakt.db"),
            folder.join("hash.key"),
        ))
        .unwrap()
    }

    /// The folder of the audit.
    pub(super) fn audit(&self) -> PathBuf {
        self.path().join("audit")
    }

    /// A listener with these keys of the section `control`, with a store.
    pub(super) fn start(&self, control: &str) -> Bank {
        Self::start_with(self.settings(control), self.open(), Audit::default())
    }

    /// The same, with the bank's key of customers in events.
    pub(super) fn start_with_events(&self, control: &str) -> Bank {
        let more = "state: {file: state/portvakt.db, hash_key: state/hash.key, events: {customer_key: events.key}}\n";
        let text = Self::yaml(control) + more;
        let settings = Settings::parse("gateway.yaml", &text, self.path());
        let settings = settings.unwrap_or_else(|faults| panic!("{faults}"));
        let store = StateStore::open(&settings.fixed.state).unwrap();
        Self::start_with(settings, store, Audit::default())
    }

    /// The same with an audit.
    pub(super) fn start_audited(&self, control: &str) -> Bank {
        let audit = Audit::open(&AuditSettings::new(self.audit()), &Clock::System);
        Self::start_with(self.settings(control), self.open(), audit.unwrap())
    }

    fn start_with(settings: Settings, store: StateStore, audit: Audit) -> Bank {
        let Settings { fixed, reloadable } = settings;
        let clock = Clock::standing(NOW);
        let links = reloadable.sca.links(Environment::Sandbox, NOW).unwrap();
        let telemetry = Arc::new(Telemetry::new(None).with_audit(audit));
        let upkeep = Upkeep::start(&telemetry).unwrap();
        let upstreams = Upstreams::start(reloadable.upstreams.clone(), None, &upkeep);
        let in_use = InUse::new(&fixed, reloadable, links, None, upstreams, &telemetry, NOW);
        let links = Arc::clone(&in_use.links);
        let store = Arc::new(store);
        eventually("the first write", || store.has_written());
        let observations = Observations::new(clock.clone(), Arc::clone(&telemetry));
        let context = ControlContext {
            system: fixed.system,
            store,
            clock: clock.clone(),
            observations: Arc::new(observations),
            telemetry,
            current: Arc::new(Current::from_pointee(in_use)),
            reload: None,
            watch: None,
            accepting: Arc::new(true.into()),
        };
        let address = fixed.control;
        let bound = Bound::bind(&address).unwrap();
        let listener = Listener::new(bound, Arc::new(context), None);
        let runtime = Runtime::new().unwrap();
        let (stop, stopped) = watch::channel(false);
        let listening = runtime.spawn(listener.run(stopped.clone(), stopped));
        Bank {
            address,
            links,
            clock,
            stop,
            listening,
            runtime,
        }
    }

    pub(super) fn settings(&self, control: &str) -> Settings {
        Settings::parse("gateway.yaml", &Self::yaml(control), self.path())
            .unwrap_or_else(|faults| panic!("{faults}"))
    }

    /// A configuration with these keys of the section `control`.
    pub(super) fn yaml(control: &str) -> String {
        format!(
            "environment: sandbox\n\
             listener: {{address: '127.0.0.1:8443', certificate: server.pem, key: server.key}}\n\
             control: {{{control}}}\n\
             upstream: {{address: '127.0.0.1:8080'}}\n\
             trust: {{anchors: anchors}}\n\
             sca: {{page: 'https://bank.example/sca', token_keys: sca-token.keys}}\n"
        )
    }
}

/// `address: …` with a free port.
pub(super) fn free_address() -> (SocketAddr, String) {
    let address = harness::free_address();
    (address, format!("address: '{address}'"))
}

/// A listener on a free port, with a store.
pub(super) fn bank() -> (Site, Bank) {
    let site = Site::new();
    let bank = site.start(&free_address().1);
    (site, bank)
}

impl Bank {
    /// Stops the listener as a gateway does, and waits for its end.
    pub(super) fn stop(self) {
        self.stop.send_replace(true);
        self.runtime.block_on(self.listening).unwrap();
    }

    /// Posts a call.
    pub(super) fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(&post(path, body.to_string().as_bytes(), ""))
    }

    /// Sends bytes and reads one answer.
    pub(super) fn send(&self, request: &[u8]) -> Answer {
        match &self.address {
            ControlAddress::Tcp(address) => {
                exchange(harness::connect_plainly(*address).unwrap(), request)
            }
            ControlAddress::Unix(path) => exchange(UnixStream::connect(path).unwrap(), request),
        }
    }

    /// The token of a link for this SCA.
    pub(super) fn token(&self, pending: &Pending) -> String {
        let link = self.links.link(pending, self.clock.now()).unwrap();
        link.split_once("?request=").unwrap().1.to_owned()
    }

    /// Advances the clock.
    pub(super) fn after(&self, time: Duration) {
        self.clock
            .set(Timestamp::from_unix(NOW.unix() + time.as_secs()));
    }
}

/// A POST request as bytes.
pub(super) fn post(path: &str, body: &[u8], headers: &str) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub(super) fn get(path: &str, headers: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n")
        .into_bytes()
}

pub(super) fn exchange<S: Read + Write>(mut stream: S, request: &[u8]) -> Answer {
    stream.write_all(request).unwrap();
    let answer = Wire::new(stream).answer("POST").unwrap();
    // ERR-7: every answer has these headers.
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    answer
}

/// An error answer has the shape of ERR-1.
pub(super) fn fails(answer: &Answer, status: u16, code: &str, reason: &str) {
    let body = answer.json();
    assert_eq!(
        (
            answer.status,
            body["code"].as_str(),
            body["reason"].as_str()
        ),
        (status, Some(code), Some(reason)),
        "{body}"
    );
    assert_eq!(body["status"], status);
    assert_eq!(body["system"], "portvakt");
    assert!(
        body["id"].as_str().unwrap().len() == 36 && !body["message"].as_str().unwrap().is_empty()
    );
    assert_eq!(
        answer.header("content-type"),
        Some("application/json; charset=utf-8")
    );
}

/// An SCA that a request for accounts started.
pub(super) fn pending() -> Pending {
    Pending {
        environment: Environment::Sandbox,
        tpp: TppId::parse(TPP).unwrap(),
        tpp_name: "Tredjepart AS".into(),
        session: SessionId::from_text("session-1").unwrap(),
        redirect_uri: RedirectUri::from_text("https://tpp.example/back?a=b", Environment::Sandbox)
            .unwrap(),
        preferred: true,
        operation: "account-list".into(),
        resource: None,
        asks_consent: true,
        context: None,
        corporate: None,
        psu: None,
    }
}

/// An SCA that a payment started.
pub(super) fn payment() -> Pending {
    Pending {
        operation: "payment-create".into(),
        resource: Some("/v1/payments/p/1".into()),
        asks_consent: false,
        ..pending()
    }
}

pub(super) fn psu_id(text: &str) -> Known<PsuId> {
    Known::by_bank(PsuId::parse(text.as_bytes()).unwrap())
}

pub(super) fn corporate_id(text: &str) -> Claimed<CorporateId> {
    Claimed::by_tpp(CorporateId::parse(text.as_bytes()).unwrap())
}

/// Links of another gateway, with a key of its own.
pub(super) fn foreign_token(pending: &Pending) -> String {
    let keys = "00000001 BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
    let keys = TokenKeys::parse(keys).unwrap();
    let links = Links::new(
        "https://b.example",
        Duration::from_secs(900),
        pending.environment,
        keys,
    );
    links
        .link(pending, NOW)
        .unwrap()
        .split_once('=')
        .unwrap()
        .1
        .to_owned()
}
