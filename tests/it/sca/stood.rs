//! What is known of a PSU is judged by a clock before the head goes to the core (SCA-6, SCA-13): after a stop of the gateway, and after
//! anything else that takes a request longer than a second.

use super::{PSU, accounts, complete, token};
use crate::{
    harness::{
        Answer, Call, Connection, Gate, GateBuilder, Program, Reply, Upstream, eventually,
        let_pass, needs_sca, postgres, received, render,
    },
    state::{Data, PostgresSchema},
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

/// The length of a stop: longer than what is known may be used. A lower bound: a longer one changes nothing.
const STOP: Duration = Duration::from_millis(1_600);

/// Two gateways on one state; the first is a program, which can be stopped.
struct Two {
    here: Gate,
    program: Program,
    there: Gate,
}

impl Two {
    fn start(state: &str) -> Self {
        let builder = || Gate::builder().strangers().state(state);
        let there = builder().start();
        let here = builder().shares(&there).for_program();
        let program = here.run_silently(&mut here.program());
        Self {
            here,
            program,
            there,
        }
    }

    /// Stops the first gateway while the bank acts at the other, and a request arrives in its socket. Its answer must ask for SCA, and the
    /// core must see nothing.
    fn acts_during_a_stop(&self, what: &str, call: &Call, act: impl Fn(&Gate) -> Answer) {
        let mut connection = Connection::open(&self.here);
        // Twice: the second is answered from memory.
        for _ in 0..2 {
            let answer = connection.exchange(&self.here.seal(call)).unwrap();
            assert_eq!(answer.status, 200, "{what}: {}", answer.json());
        }
        self.here.upstream().take();
        // One that was stopped within a transaction, such as that of the day of use, lets nobody write: it goes on, and is stopped again.
        eventually("the gateway is stopped, and the bank acts", || {
            self.program.signal("-STOP");
            let answer = act(&self.there);
            if answer.status == 503 {
                self.program.signal("-CONT");
            }
            (answer.status == 200).then_some(()).ok_or(answer.status)
        });
        let_pass(STOP);
        let sealed = self.here.seal(call);
        connection.send(&render(&sealed)).unwrap();
        self.program.signal("-CONT");
        let mut answer = connection.answer("GET").unwrap();
        // The database may not have been heard again yet.
        if answer.status == 503 {
            answer = eventually("the database is heard again", || {
                let answer = connection.exchange(&self.here.seal(call)).unwrap();
                (answer.status != 503).then_some(answer).ok_or(503)
            });
        }
        assert_eq!(answer.status, 401, "{what}: {}", answer.json());
        let seen = self.here.upstream().take();
        assert!(seen.is_empty(), "{what}: {seen:?}");
    }

    fn says(gate: &Gate, path: &str, members: Value) {
        let answer = Self::answer_to(gate, path, members);
        assert_eq!(answer.status, 200, "{path}: {}", answer.json());
    }

    fn answer_to(gate: &Gate, path: &str, members: Value) -> Answer {
        let mut said = json!({ "tpp": gate.world().both.id(), "psu_id": PSU });
        for (name, value) in members.as_object().unwrap() {
            said[name] = value.clone();
        }
        gate.tell(path, &said)
    }

    /// Consent, session and binding, each withdrawn or replaced.
    fn serves_nothing_that_ended(&self) {
        let under = |session: &str| {
            let call = accounts().with("PSU-ID", PSU);
            call.with("TPP-Session-ID", session)
        };
        let link = needs_sca(&self.there, &under("S-0"));
        complete(&self.there, &link, PSU);
        for round in 0..3 {
            let (old, new) = (format!("S-{round}"), format!("S-{}", round + 1));
            let link = needs_sca(&self.there, &under(&new));
            let request = token(&link);
            self.acts_during_a_stop("a session that was replaced", &under(&old), |there| {
                let said = json!({ "request": request, "psu_id": PSU, "context": "PRIVATE" });
                there.tell("/sca/complete", &said)
            });
            for what in ["session", "consent"] {
                self.acts_during_a_stop(what, &under(&new), |there| {
                    Self::answer_to(there, "/psu/withdraw", json!({ "what": what }))
                });
                let link = needs_sca(&self.there, &under(&new));
                complete(&self.there, &link, PSU);
            }
            self.acts_during_a_stop("a binding that was withdrawn", &under(&new), |there| {
                Self::answer_to(there, "/psu/unbind", json!({}))
            });
            let link = needs_sca(&self.there, &under(&new));
            complete(&self.there, &link, PSU);
        }
    }
}

//= SCA-6 refused
//= SCA-13 refused
#[test]
fn a_gateway_that_stood_still_serves_nothing_that_ended_meanwhile() {
    Two::start("").serves_nothing_that_ended();
}

//= SCA-6 refused
//= SCA-13 refused
#[test]
fn nor_does_one_on_a_database() {
    let Some(server) = postgres() else { return };
    let data = PostgresSchema::new();
    let (user, host) = (data.user(), server.folder().display());
    let state = format!("postgres: {{url: 'postgres://{user}@/postgres?host={host}'}}");
    Two::start(&state).serves_nothing_that_ended();
}

/// Two endpoints. The first request to either is not answered before the test says so, and then its connection ends, so that the gateway
/// sends it to the other.
struct Waiting {
    endpoints: [Upstream; 2],
    /// Tells that the first request has arrived.
    arrived: mpsc::Receiver<()>,
    /// Ends its connection.
    go_on: mpsc::Sender<()>,
}

impl Waiting {
    fn start() -> Self {
        let endpoints = [Upstream::start(), Upstream::start()];
        let (arrives, arrived) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel();
        let goes_on = Arc::new(Mutex::new(goes_on));
        let count = Arc::new(AtomicUsize::new(0));
        for endpoint in &endpoints {
            let (arrives, goes_on, count) = (arrives.clone(), goes_on.clone(), count.clone());
            endpoint.reply(Reply::play(move |_, connection| {
                if count.fetch_add(1, Ordering::Relaxed) == 0 {
                    arrives.send(()).unwrap();
                    let _ = goes_on.lock().unwrap().recv();
                    return false;
                }
                let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
                std::io::Write::write_all(connection, answer.as_bytes()).is_ok()
            }));
        }
        Self {
            endpoints,
            arrived,
            go_on,
        }
    }

    fn gate(&self) -> GateBuilder {
        let [first, second] = [0, 1].map(|index| self.endpoints[index].address());
        Gate::builder().strangers().groups(&format!(
            "{{core: {{endpoints: [{{address: '{first}'}}, {{address: '{second}'}}], \
             ejection: off, retry_percent: 100, timeout: 300s, read_timeout: 300s}}}}"
        ))
    }

    /// A request that waits at the first endpoint while the bank acts, and then goes to the other. Returns the status of its answer, and
    /// the headers of the second try, if there was one.
    fn passes(&self, gate: &Gate, act: impl FnOnce()) -> (u16, Option<Vec<(String, String)>>) {
        let sealed = gate.seal(&accounts().with("PSU-ID", PSU));
        let status = std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                let mut connection = Connection::open(gate);
                connection.exchange(&sealed).unwrap().status
            });
            received("the first request arrives", &self.arrived);
            act();
            let_pass(STOP);
            self.go_on.send(()).unwrap();
            sending.join().unwrap()
        });
        let mut seen: Vec<_> = self.endpoints.iter().flat_map(Upstream::take).collect();
        assert!(!seen.is_empty() && seen.len() < 3, "{seen:?}");
        let is_second = seen.len() == 2;
        // The endpoint that got the request first is not known, but all of its headers are the same.
        let bound = |headers: &[(String, String)]| {
            headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case("gateway-sca"))
        };
        seen.sort_by_key(|seen| bound(&seen.headers));
        (status, is_second.then(|| seen.remove(0).headers))
    }
}

/// The age is judged before each head, whatever the request waited for.
//= SCA-13 accepted
//= SCA-13 refused
#[test]
fn a_request_that_waited_is_judged_again() {
    let known = |gate: &Gate| {
        let link = needs_sca(gate, &accounts());
        complete(gate, &link, PSU);
    };
    let core = Waiting::start();
    let gate = core.gate().start();
    known(&gate);
    let (status, again) = core.passes(&gate, || {});
    assert_eq!((status, again.is_some()), (200, true));

    let core = Waiting::start();
    let gate = core.gate().start();
    known(&gate);
    let withdraw = |gate: &Gate| Two::says(gate, "/psu/withdraw", json!({ "what": "consents" }));
    let (status, again) = core.passes(&gate, || withdraw(&gate));
    assert_eq!((status, again), (401, None));
    needs_sca(&gate, &accounts().with("PSU-ID", PSU));

    // Where SCA is only observed, the core is told, and gets no fact that does not hold.
    let core = Waiting::start();
    let gate = core.gate().line("observe: {checks: [sca]}").start();
    Two::says(&gate, "/psu/bind", {
        let now = gate.now().to_string();
        json!({ "last_sca": now, "consent_at": now })
    });
    let (status, again) = core.passes(&gate, || withdraw(&gate));
    let again = again.unwrap();
    let header = |name: &str| {
        let mut found = again
            .iter()
            .filter(|(own, _)| own.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    };
    assert_eq!(status, 200);
    assert_eq!(header("gateway-observed"), Some("sca-required"));
    assert_eq!(header("gateway-sca"), None);
}
