//! The loads: entries that are measured together. Deliberately not here: the budgets of their figures (budgets.rs).

use crate::{
    load::{Client, Expected},
    peer::{Core, Peer, Setup},
    pool::{Call, Fault, Signer, payment_body},
    stage::{PSU, Stage},
};

/// Entries that are measured together and compared.
pub struct Load {
    /// The name on the command line.
    pub name: &'static str,
    /// The description in the table.
    pub title: &'static str,
    /// The configuration of the peers.
    pub setup: Setup,
    /// The entries.
    pub entries: Vec<Entry>,
}

/// One line of a table.
pub struct Entry {
    /// The name in the table.
    pub name: String,
    /// The peer.
    pub peer: Peer,
    /// Its way to the upstream.
    pub core: Core,
    /// The request.
    pub call: Call,
    /// The signer.
    pub who: Who,
    /// The load generator.
    pub client: Client,
    /// Entries with the same number send the same requests to different peers.
    pub pool: usize,
    /// Whether the other entries are compared with this one.
    pub is_base: bool,
    /// Whether Portvakt refuses the valid request.
    is_refused: bool,
}

/// The signer of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A TPP with both roles.
    Tpp,
    /// A TPP of an unknown CA.
    Stranger,
    /// A TPP with only the role for payments.
    Initiator,
}

impl Who {
    /// Its key and certificate.
    pub const fn of(self, stage: &Stage) -> &Signer {
        match self {
            Self::Tpp => &stage.signer,
            Self::Stranger => &stage.stranger,
            Self::Initiator => &stage.initiator,
        }
    }
}

/// The maximum number of requests per second that are signed in advance: more than any verifying peer answers on one core.
pub const FASTEST: usize = 45_000;

impl Entry {
    /// The number of requests that are signed in advance for this number of seconds and threads, if the fastest peer so far
    /// answered `fastest` per second.
    pub fn count(&self, seconds: u64, threads: usize, fastest: Option<usize>) -> usize {
        let seconds = usize::try_from(seconds).unwrap_or(1);
        // Two threads have two cores, which they share with the load generator.
        let fastest = fastest.map_or(FASTEST, |fastest| FASTEST.min(2 * fastest));
        let most = fastest * (threads + 1) / 2 * seconds;
        match (self.call.fault, self.client) {
            (_, Client::Handshakes) => 1,
            (_, Client::Kept(1)) => most * 2 / 3,
            // A request that is refused in any case can be repeated.
            (Fault::None, _) if self.who == Who::Tpp => most,
            _ => 1,
        }
    }

    /// The expected answers.
    pub fn expected(&self) -> Expected {
        if self.client == Client::Handshakes {
            return Expected::Anything;
        }
        Expected::of(self.peer, &self.call, self.is_refused)
    }
}

fn headers(psu_present: bool) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        ("Accept", "application/json".to_owned()),
        (
            "TPP-Redirect-URI",
            "https://tpp.example/callback".to_owned(),
        ),
        ("PSU-ID", PSU.to_owned()),
        ("User-Agent", "tpp-client/4.2".to_owned()),
    ];
    if psu_present {
        headers.push(("PSU-IP-Address", "192.0.2.10".to_owned()));
    }
    headers
}

fn get() -> Call {
    Call {
        method: "GET",
        path: "/v1/accounts".into(),
        headers: headers(true),
        body: None,
        fault: Fault::None,
    }
}

fn get_without_psu() -> Call {
    Call {
        path: "/v1/accounts/{r}-{n}/balances".into(),
        headers: headers(false),
        ..get()
    }
}

fn post() -> Call {
    let mut headers = headers(true);
    headers.push(("Content-Type", "application/json".to_owned()));
    headers.push(("x-accept-fix", "amount-as-string".to_owned()));
    headers.push((
        "TPP-Session-ID",
        "5f0c3f8e-8d1b-4b6e-9a39-2f3d7f0f1a11".to_owned(),
    ));
    let body = payment_body();
    let path = "/v1/payments/norwegian-cross-border-credit-transfers";
    Call {
        method: "POST",
        path: path.into(),
        headers,
        body: Some(body),
        fault: Fault::None,
    }
}

fn entry(name: &str, peer: Peer, call: Call, client: Client, pool: usize) -> Entry {
    let (who, is_base, is_refused) = (Who::Tpp, false, false);
    Entry {
        name: name.to_owned(),
        peer,
        core: Core::One,
        call,
        who,
        client,
        pool,
        is_base,
        is_refused,
    }
}

/// The same requests to several peers.
fn compared(call: &Call, client: Client, peers: &[Peer], base: Peer) -> Vec<Entry> {
    let of = |peer: &Peer| Entry {
        is_base: *peer == base,
        ..entry(peer.name(), *peer, call.clone(), client, 0)
    };
    peers.iter().map(of).collect()
}

const ONE: Setup = Setup {
    logs: false,
    rsa: false,
    threads: 1,
    core: Core::One,
    edge: None,
};

/// Every load, in the order of the tables.
pub fn all() -> Vec<Load> {
    let client = Client::Kept(32);
    let base = Peer::LuaSignature;
    let checking = [
        Peer::Bare,
        Peer::LuaSignature,
        Peer::LuaChecks,
        Peer::Portvakt,
    ];
    let terminating = [Peer::Nginx, Peer::Haproxy, Peer::Plain, Peer::Portvakt];
    vec![
        Load {
            name: "get",
            title: "signed GET with the PSU present, 32 kept connections, no access logs",
            setup: ONE,
            entries: compared(&get(), client, &Peer::ALL, base),
        },
        Load {
            name: "logged",
            title: "the same with access logs",
            setup: Setup { logs: true, ..ONE },
            entries: compared(&get(), client, &Peer::ALL, base),
        },
        Load {
            name: "post",
            title: "signed POST of a payment, 32 kept connections; Portvakt keeps its request id on disk",
            setup: ONE,
            entries: compared(&post(), client, &checking, base),
        },
        Load {
            name: "http2",
            title: "signed GET over HTTP/2, 8 connections with 8 requests each",
            setup: ONE,
            entries: compared(&get(), Client::Http2(8, 8), &checking, base),
        },
        Load {
            name: "connections",
            title: "signed GET on 1, 32 and 1 000 kept connections",
            setup: ONE,
            entries: connections(),
        },
        Load {
            name: "paced",
            title: "signed GET, 32 kept connections. At once: the next request follows the answer; resting: after a while, so \
                    that each peer gets the same third of what the fastest can do",
            setup: ONE,
            entries: paced(),
        },
        Load {
            name: "durable",
            title: "signed GET with and without the PSU, 64 kept connections: without, each call is counted on disk. At once: \
                    the next request follows the answer; resting: after a while, a third of what could be sent",
            setup: ONE,
            entries: durable(),
        },
        Load {
            name: "refused",
            title: "refused requests beside an accepted one, 32 kept connections",
            setup: ONE,
            entries: refused(),
        },
        Load {
            name: "handshakes",
            title: "full TLS 1.3 handshakes, ECDSA P-256, each with one unsigned request (which Portvakt refuses)",
            setup: ONE,
            entries: compared(&get(), Client::Handshakes, &terminating, Peer::Nginx),
        },
        Load {
            name: "handshakes-rsa",
            title: "the same with RSA-2048",
            setup: Setup { rsa: true, ..ONE },
            entries: compared(&get(), Client::Handshakes, &terminating, Peer::Nginx),
        },
        Load {
            name: "upstreams",
            title: "signed GET, 32 kept connections, to one endpoint, to two, and to one with TLS",
            setup: ONE,
            entries: upstreams(),
        },
        Load {
            name: "cores",
            title: "signed GET, 32 kept connections, two threads on two cores that they share with the load",
            setup: Setup { threads: 2, ..ONE },
            entries: compared(&get(), client, &checking, base),
        },
    ]
}

fn connections() -> Vec<Entry> {
    let of = |(pool, count): (usize, usize)| {
        [Peer::LuaSignature, Peer::Portvakt].map(|peer| Entry {
            is_base: count == 32 && peer == Peer::LuaSignature,
            ..entry(
                &format!("{}, {count}", peer.name()),
                peer,
                get(),
                Client::Kept(count),
                pool,
            )
        })
    };
    [1, 32, 1_000]
        .into_iter()
        .enumerate()
        .flat_map(of)
        .collect()
}

fn upstreams() -> Vec<Entry> {
    let of = |(way, core): (&str, Core)| {
        [Peer::Nginx, Peer::LuaSignature, Peer::Portvakt].map(|peer| Entry {
            core,
            is_base: core == Core::One && peer == Peer::LuaSignature,
            ..entry(
                &format!("{}, {way}", peer.name()),
                peer,
                get(),
                Client::Kept(32),
                0,
            )
        })
    };
    Core::ALL.into_iter().flat_map(of).collect()
}

fn paced() -> Vec<Entry> {
    let of = |(pool, (client, suffix)): (usize, (Client, &str))| {
        [
            Peer::Bare,
            Peer::LuaSignature,
            Peer::LuaChecks,
            Peer::Portvakt,
        ]
        .map(|peer| Entry {
            is_base: pool == 0 && peer == Peer::LuaSignature,
            ..entry(
                &format!("{}, {suffix}", peer.name()),
                peer,
                get(),
                client,
                pool,
            )
        })
    };
    let clients = [
        (Client::Kept(32), "at once"),
        (Client::Resting(32), "resting"),
    ];
    clients.into_iter().enumerate().flat_map(of).collect()
}

fn durable() -> Vec<Entry> {
    let of = |name: &str, call: Call, client: Client, pool: usize| Entry {
        is_base: pool == 0,
        ..entry(name, Peer::Portvakt, call, client, pool)
    };
    let (at_once, resting) = (Client::Kept(64), Client::Resting(64));
    vec![
        of(WITH, get(), at_once, 0),
        of(WITHOUT, get_without_psu(), at_once, 1),
        of(WITH_RESTING, get(), resting, 2),
        of(WITHOUT_RESTING, get_without_psu(), resting, 3),
    ]
}

/// The names of the entries of the load "durable".
pub const WITH: &str = "with the PSU";
pub const WITHOUT: &str = "without the PSU";
pub const WITH_RESTING: &str = "with the PSU, resting";
pub const WITHOUT_RESTING: &str = "without the PSU, resting";

fn refused() -> Vec<Entry> {
    let client = Client::Kept(32);
    let faulty = |name: &str, pool: usize, call: Call, fault: Fault| {
        entry(name, Peer::Portvakt, Call { fault, ..call }, client, pool)
    };
    let payment = post();
    let wrong = payment
        .body
        .as_ref()
        .map(|body| body.replace("\"NOK\"", "\"XXX\""));
    let bad_payment = Call {
        body: wrong,
        ..payment.clone()
    };
    vec![
        Entry {
            is_base: true,
            ..faulty("accepted", 0, get(), Fault::None)
        },
        faulty("unsigned", 1, get(), Fault::Unsigned),
        faulty("Date an hour old", 2, get(), Fault::Late),
        Entry {
            who: Who::Stranger,
            is_refused: true,
            ..faulty("unknown certificate", 3, get(), Fault::None)
        },
        Entry {
            who: Who::Initiator,
            is_refused: true,
            ..faulty("role missing", 4, get(), Fault::None)
        },
        faulty("bad signature", 5, get(), Fault::Signature),
        faulty("another body", 6, payment, Fault::Digest),
        Entry {
            is_refused: true,
            ..faulty("faulty payment", 7, bad_payment, Fault::Once)
        },
        faulty("replayed", 8, get(), Fault::Replayed),
    ]
}
