//! A gateway as a process, with everything around it that can fail: a core, an OCSP responder, a register, a disk, callers.

use crate::{
    disk::with_small_disk,
    harness::{
        Call, Connection, Connector, Crl, Gate, Program, Said, Source, Tls, Tpp,
        bundle::Bundle,
        ocsp_answer,
        pki::{Issued, LeafSpec},
        world,
    },
};
use portvakt::clock::{Clock, Timestamp};
use serde_json::{Value, json};
use std::{
    fs,
    fs::File,
    net::Ipv4Addr,
    ops::Range,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
};

/// The TPPs that call all the time.
const TPPS: u8 = 5;

/// The size of the state's disk, in MiB: the write-ahead log of the whole test has place.
const DISK: u32 = 128;

/// The serial numbers that the OCSP responder knows: 0x45 and one byte.
const SERIALS: Range<u8> = 0..120;

/// The sections of the configuration that the test adds.
const SECTIONS: &str = "\
registers: {check: on, eba: eba.json, max_age: 168h}
revocation: {check: on, unreachable: closed, private_addresses: [127.0.0.1], crls: crls}
audit: {write: on, folder: audit}
rates: {chains_per_address: off, chains: off}
observe: {tpps: {PSDNO-FSA-700005: [payload]}}
certificate_policy: tolerant";

/// The gateway and its surroundings.
pub(super) struct Stage {
    pub(super) gate: Gate,
    pub(super) program: Mutex<Program>,
    pub(super) responder: Source,
    _lists: Source,
    pub(super) tpps: Vec<Arc<Tpp>>,
    connector: Connector,
    next: AtomicU8,
    /// The fault of every request of the traffic.
    pub(super) wrong: Mutex<Wrong>,
}

/// What is wrong with all requests.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wrong {
    Nothing,
    Dates,
    Signatures,
}

impl Stage {
    pub(super) fn start() -> Self {
        let responder = Source::saying(|request| Said::ok(good(request)));
        let list = Crl::at(Clock::System.now()).sign(&world().issuing, &world().issuing_key);
        let lists = Source::serving(list);
        let gate = Gate::builder()
            .threads(2)
            .upstream("read_timeout: 1s")
            .upstream("max_in_flight: 32")
            .listener("max_connections_per_address: 48")
            .trust("bundle: lists/current")
            .line(SECTIONS)
            .for_program();
        // The issuing CA is the anchor: only TPPs' certificates are asked about.
        fs::write(
            gate.folder().join("anchors/root.pem"),
            world().issuing.pem(),
        )
        .unwrap();
        Bundle::of(&[world().issuing.pem()], &[]).put(&gate.folder().join("lists"), "one");
        fs::create_dir(gate.folder().join("state")).unwrap();
        // Of a CA that issues no TPP's certificate.
        fs::create_dir(gate.folder().join("crls")).unwrap();
        let list = Crl::at(Clock::System.now()).sign(&world().root, &world().root_key);
        fs::write(gate.folder().join("crls/root.crl"), list).unwrap();
        let mut tpps: Vec<_> = (0..TPPS)
            .map(|number| tpp(&responder, number, number))
            .collect();
        // One whose certificate names a CRL, and has a fault that the tolerant policy lets pass; its payloads are only observed.
        tpps.push(world().issue(&LeafSpec {
            crl_urls: vec![lists.url()],
            nca_id: "Norway".into(),
            ..leaf(&responder, TPPS, TPPS)
        }));
        let log = File::create(gate.folder().join("access.log")).unwrap();
        let events = File::create(gate.folder().join("events.log")).unwrap();
        write_register(&gate, 0);
        let mut program = with_small_disk(DISK, &gate.folder().join("state"), &gate.program());
        let program = gate.run(program.stdout(log).stderr(events));
        Self {
            connector: Tls::default().connector(gate.world()),
            gate,
            program: Mutex::new(program),
            _lists: lists,
            responder,
            tpps,
            next: AtomicU8::new(SERIALS.end / 4),
            wrong: Mutex::new(Wrong::Nothing),
        }
    }

    /// A TPP whose certificate the gateway has not seen.
    pub(super) fn stranger(&self) -> Arc<Tpp> {
        let serial = self.next.fetch_add(1, Ordering::Relaxed);
        tpp(&self.responder, 0, serial)
    }

    /// A TPP that the register lacks.
    pub(super) fn unregistered(&self) -> Arc<Tpp> {
        let serial = self.next.fetch_add(1, Ordering::Relaxed);
        tpp(&self.responder, TPPS + 1, serial)
    }

    /// Gives all requests of the traffic a fault while it is watched.
    pub(super) fn with_all(&self, wrong: Wrong, watch: &mut dyn FnMut()) {
        *self.wrong.lock().unwrap() = wrong;
        watch();
        *self.wrong.lock().unwrap() = Wrong::Nothing;
    }

    /// The process.
    pub(super) fn id(&self) -> u32 {
        self.program.lock().unwrap().0.id()
    }

    pub(super) fn connect_from(&self, address: [u8; 4]) -> Result<Connection, String> {
        Connection::from(
            Ipv4Addr::from(address),
            self.gate.address(),
            &self.connector,
        )
    }

    pub(super) fn connect(&self) -> Result<Connection, String> {
        Connection::over(self.gate.address(), &self.connector)
    }

    /// Sends a call on a new connection; the answer's status, if there was one.
    pub(super) fn send(&self, call: &Call) -> Option<u16> {
        let sealed = self.gate.seal(call);
        let answer = self.connect().ok()?.exchange(&sealed).ok()?;
        Some(answer.status)
    }

    /// The state's folder in the gateway's mount namespace.
    pub(super) fn disk(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.id()));
        let state = self.gate.folder().join("state");
        root.join(state.strip_prefix("/").unwrap())
    }

    /// Puts a file of the configuration in place and reloads; the status of the reload.
    pub(super) fn reload_with(&self, name: &str, content: &str) -> u16 {
        fs::write(self.gate.folder().join(name), content).unwrap();
        self.gate.tell("/reload", &json!({})).status
    }

    /// Puts a register in place whose newest entry is so many days old.
    pub(super) fn register_of(&self, days: u64) {
        write_register(&self.gate, days);
        assert_eq!(self.gate.tell("/reload", &json!({})).status, 200);
    }
}

fn identity(number: u8) -> String {
    format!("7000{number:02}")
}

/// A TPP whose certificate names the responder.
fn tpp(responder: &Source, number: u8, serial: u8) -> Arc<Tpp> {
    world().issue(&leaf(responder, number, serial))
}

fn leaf(responder: &Source, number: u8, serial: u8) -> LeafSpec {
    LeafSpec {
        organization_identifier: Some(format!("PSDNO-FSA-{}", identity(number))),
        serial: Some(vec![0x45, serial]),
        ocsp_urls: vec![responder.url()],
        ..world().leaf()
    }
}

/// OCSP's answer "good" about every certificate of the test.
pub(super) fn good(request: &[u8]) -> Vec<u8> {
    let serials: Vec<_> = SERIALS.map(|serial| [0x45, serial]).collect();
    let serials: Vec<_> = serials.iter().map(|serial| &serial[..]).collect();
    let signer = Issued {
        der: world().issuing.der().to_vec(),
        pem: world().issuing.pem(),
        key_pem: world().issuing_key.clone(),
    };
    ocsp_answer(request, &world().issuing.pem(), &signer, &serials, &[])
}

fn write_register(gate: &Gate, days: u64) {
    let changed = Timestamp::from_unix(gate.now().unix() - days * 86_400).to_string();
    let digits: String = changed.chars().filter(char::is_ascii_digit).collect();
    let entity = |number| {
        json!({
            "CA_OwnerID": "NO_FSA",
            "EntityCode": format!("NO_FSA!7{}", identity(number)),
            "EntityType": "PSD_PI",
            "Properties": [{"ENT_NAT_REF_COD": identity(number)}, {"ENT_AUT": ["2019-01-01"]}],
            "Services": [{"NO": ["PS_070", "PS_080"]}],
            "__EBA_EntityVersion": format!("{digits}000"),
        })
    };
    let entities: Vec<Value> = (0..=TPPS).map(entity).collect();
    let register = json!([[{"__EBA_Disclaimer": ["no legal significance"]}], entities]);
    fs::write(gate.folder().join("eba.json"), register.to_string()).unwrap();
}

/// Sets a flag when it is dropped: threads that read it end, also where the test fails.
pub(super) struct Until<'a>(pub(super) &'a AtomicBool);

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
