//! Random sequences of requests, answers of a core that is learned from, calls of the bank and stops, at two gateways on one state.
//!
//! No fact on PSU, agreement, consent or SCA in an assertion or in the state rests on a header alone, and no forwarded request contradicts the
//! bank's last word by more than the bound (SCA-13, SCA-17, SCA-19, SCA-22, SCA-23, CTL-2). `LAST_WORD_STEPS` is the number of steps, `LAST_WORD_SEED`
//! repeats a run.

/// The facts that were stated.
mod model;

use super::{Data, PostgresSchema, env};
use crate::harness::{Answer, Call, Dice, Gate, GateBuilder, Protocol, Reply, Seen, postgres};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use model::{Agreement, Blocked, Fact, Model, Place, Statement};
use portvakt::clock::{Clock, Stopwatch, Timestamp};
use serde_json::{Value, json};
use std::fs;

/// 2026-09-21.
const THEN: u64 = 1_790_000_000;

fn psu_id(psu: usize) -> String {
    format!("3f2504e0-4f89-41d3-9a0c-0305e82c330{psu}")
}

fn agreement_id(agreement: usize) -> String {
    format!("3f2504e0-4f89-41d3-9a0c-0305e82c33f{agreement}")
}

/// A request, and the core's answer if the request is forwarded.
#[derive(Clone, Copy, Debug)]
struct Asked {
    psu: usize,
    tpp: usize,
    of: Agreement,
    is_payment: bool,
    status: u16,
    psu_word: Option<&'static str>,
    agreement_word: Option<&'static str>,
    with_consent: bool,
}

/// How often something happened: a run in which nothing happens shows nothing.
#[derive(Debug, Default)]
struct Counts {
    forwarded: usize,
    vouched: usize,
    claimed: usize,
    learned: usize,
    refused: usize,
    blocked: usize,
    completed: usize,
    withdrawn: usize,
}

struct Pair {
    gates: [Gate; 2],
    clock: Clock,
    watch: Stopwatch,
    model: Model,
    dice: Dice,
    counts: Counts,
    /// The seed and the step, for messages.
    what: String,
}

impl Pair {
    /// Runs the steps on two gateways, which `start` makes.
    fn run(start: impl FnOnce(&dyn Fn() -> GateBuilder) -> [Gate; 2]) {
        let clock = Clock::standing(Timestamp::from_unix(THEN));
        let builder = || {
            Gate::builder()
                .strangers()
                .clock(&clock)
                .line("assertion: {key: state/assertion.key}")
                .sca("unknown_psu: learn")
                .sca("learn_since: 2026-09-01")
                .sca("learn_until: 2026-10-01")
        };
        let (steps, seed) = (env("LAST_WORD_STEPS", 600), env("LAST_WORD_SEED", 1));
        let mut pair = Self {
            gates: start(&builder),
            clock: clock.clone(),
            watch: Stopwatch::start(),
            model: Model::default(),
            dice: Dice(seed),
            counts: Counts::default(),
            what: String::new(),
        };
        for step in 0..steps {
            pair.clock.set(Timestamp::from_unix(THEN + step));
            pair.what = format!("seed {seed}, step {step}");
            pair.step();
        }
        println!("{:?}", pair.counts);
        if steps >= 600 {
            pair.saw_enough();
        }
    }

    fn saw_enough(&self) {
        let Counts {
            forwarded,
            vouched,
            claimed,
            learned,
            refused,
            blocked,
            completed,
            withdrawn,
        } = self.counts;
        let all = [
            forwarded, vouched, claimed, learned, refused, blocked, completed, withdrawn,
        ];
        assert!(all.iter().all(|count| *count > 0), "{:?}", self.counts);
    }

    fn step(&mut self) {
        match self.dice.below(200) {
            0..110 => self.request(),
            110..120 => self.bind(),
            120..132 => self.withdraw(),
            132..142 => self.unbind(),
            142..148 => self.block(),
            148..154 => self.unblock(),
            154..199 => self.read(),
            _ => {
                let gateway = self.below(2);
                self.gates[gateway].restart();
            }
        }
    }

    fn below(&mut self, limit: u64) -> usize {
        usize::try_from(self.dice.below(limit)).unwrap()
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64)]
    }

    fn agreement(&mut self) -> Agreement {
        self.one_of(&[None, Some(0), Some(1)])
    }

    fn tpp_id(&self, tpp: usize) -> Value {
        let world = self.gates[0].world();
        [&world.both, &world.aisp][tpp].id().unwrap().into()
    }

    /// A PSU of a TPP for a call of the bank.
    fn named(&self, psu: usize, tpp: usize) -> Value {
        json!({ "tpp": self.tpp_id(tpp), "psu_id": psu_id(psu) })
    }

    /// A call of the bank at any gateway, and where it was answered.
    fn tell(&mut self, path: &str, said: &Value) -> (Answer, Place) {
        let gateway = self.below(2);
        let answer = self.gates[gateway].tell(path, said);
        assert!(answer.status < 500, "{}: {path} {said}", self.what);
        let at = self.watch.elapsed();
        (answer, Place { gateway, at })
    }

    fn request(&mut self) {
        let words = [Some("yes"), Some("yes"), Some("no"), Some("YES"), None];
        let tpp = self.below(2);
        let asked = Asked {
            psu: self.below(3),
            tpp,
            of: self.agreement(),
            is_payment: tpp == 0 && self.dice.one_in(3),
            status: self.one_of(&[200, 200, 200, 403]),
            psu_word: self.one_of(&words),
            agreement_word: self.one_of(&words),
            with_consent: self.dice.one_in(2),
        };
        let gateway = self.below(2);
        let gate = &self.gates[gateway];
        gate.upstream().reply(asked.reply());
        gate.upstream().take();
        let began = Place {
            gateway,
            at: self.watch.elapsed(),
        };
        let answer = gate.send(&asked.call(gate), Protocol::Http1);
        let seen = gate.upstream().take();
        let ended = Place {
            gateway,
            at: self.watch.elapsed(),
        };
        let Some(seen) = seen.first() else {
            self.counts.refused += 1;
            self.counts.blocked += usize::from(answer.status == 403);
            assert_ne!(answer.status, 200, "{}: {asked:?}", self.what);
            if answer.status == 401 && self.dice.one_in(3) {
                self.complete(asked, &answer);
            }
            return;
        };
        self.counts.forwarded += 1;
        self.check(asked, seen, began);
        let is_claimed = |name| seen.header(name) == Some("no");
        if is_claimed("gateway-psu-bound") || is_claimed("gateway-psu-corporate-bound") {
            self.counts.claimed += 1;
            self.learn(asked, ended);
        }
    }

    /// A forwarded request names no fact that nobody stated, and nothing forbids it.
    fn check(&mut self, asked: Asked, seen: &Seen, began: Place) {
        let Asked { psu, tpp, of, .. } = asked;
        let got = &seen.headers;
        let what = format!("{}: {asked:?} at {began:?} {got:?}", self.what);
        let claims = claims(seen);
        let (model, may_hold) = (&self.model, |fact| self.model.may_be(fact, true, began));
        let mut scopes = vec![Blocked::All, Blocked::Psu(psu)];
        scopes.extend(asked.is_payment.then_some(Blocked::Payments));
        for blocked in scopes {
            let fact = Fact::Blocked { tpp, what: blocked };
            assert!(model.may_be(fact, false, began), "{blocked:?} {what}");
        }
        let other = 1 - tpp;
        let elsewhere = Fact::Bound { psu, tpp: other };
        assert!(model.may_be(elsewhere, false, began), "elsewhere {what}");
        let names_agreement = claims.get("psu_corporate_id").is_some();
        if names_agreement {
            let id = of.map(agreement_id);
            assert_eq!(claims["psu_corporate_id"].as_str(), id.as_deref(), "{what}");
            assert!(may_hold(Fact::Context { psu, tpp, of }), "agreement {what}");
        }
        let is_known = claims.get("psu_id").is_some();
        if !is_known {
            let claimed = Some("no");
            assert_eq!(seen.header("gateway-psu-bound"), claimed, "{what}");
            let facts = ["psu_corporate_id", "gateway-sca-at"];
            assert!(facts.iter().all(|it| claims.get(it).is_none()), "{what}");
            return;
        }
        assert_eq!(claims["psu_id"], psu_id(psu), "{what}");
        assert!(may_hold(Fact::Bound { psu, tpp }), "PSU {what}");
        if !asked.is_payment && (of.is_none() || names_agreement) {
            assert!(may_hold(Fact::Consent { psu, tpp, of }), "consent {what}");
        }
        self.counts.vouched += 1;
    }

    /// What the core's answer states: only exactly `yes`, and only with a 2xx.
    fn learn(&mut self, asked: Asked, place: Place) {
        let says = |word: Option<&str>| word == Some("yes");
        if asked.status != 200 || !says(asked.psu_word) {
            return;
        }
        let is_confirmed = asked.of.is_none() || says(asked.agreement_word);
        let said = Statement {
            psu: asked.psu,
            tpp: asked.tpp,
            context: is_confirmed.then_some(asked.of),
            with_consent: asked.with_consent,
        };
        self.counts.learned += 1;
        self.model.core_says(said, place);
    }

    /// The PSU completes the SCA of a link, in the context that the TPP chose.
    fn complete(&mut self, asked: Asked, answer: &Answer) {
        let json = answer.json();
        let Some(link) = json["_links"]["scaRedirect"]["href"].as_str() else {
            return;
        };
        let token = link.split_once("request=").unwrap().1;
        let mut said =
            json!({ "request": token, "psu_id": psu_id(asked.psu), "context": "PRIVATE" });
        if let Some(agreement) = asked.of {
            said["context"] = "CORPORATE".into();
            said["psu_corporate_id"] = agreement_id(agreement).into();
        }
        let (answer, place) = self.tell("/sca/complete", &said);
        if answer.status != 200 {
            assert_eq!(answer.status, 409, "{}: {}", self.what, answer.json());
            return;
        }
        self.counts.completed += 1;
        let Asked { psu, tpp, of, .. } = asked;
        let said = Statement {
            psu,
            tpp,
            context: Some(of),
            with_consent: !asked.is_payment,
        };
        assert!(self.model.bank_says(said, place), "{}", self.what);
        for blocked in [Blocked::All, Blocked::Psu(psu)] {
            let fact = Fact::Blocked { tpp, what: blocked };
            assert!(
                self.model.may_be(fact, false, place),
                "{}: {asked:?}",
                self.what
            );
        }
    }

    fn bind(&mut self) {
        let said = Statement {
            psu: self.below(3),
            tpp: self.below(2),
            context: Some(self.agreement()),
            with_consent: self.dice.one_in(2),
        };
        let now = self.clock.now().to_string();
        let mut call = self.named(said.psu, said.tpp);
        call["last_sca"] = now.clone().into();
        if let Some(Some(agreement)) = said.context {
            call["psu_corporate_id"] = agreement_id(agreement).into();
        }
        if said.with_consent {
            call["consent_at"] = now.into();
        }
        let (answer, place) = self.tell("/psu/bind", &call);
        let is_bound = self.model.bank_says(said, place);
        assert_eq!(answer.status == 200, is_bound, "{}: {call}", self.what);
    }

    fn withdraw(&mut self) {
        let (psu, tpp, of) = (self.below(3), self.below(2), self.agreement());
        let mut call = self.named(psu, tpp);
        let all = self.dice.one_in(2);
        call["what"] = if all { "consents" } else { "consent" }.into();
        if let (false, Some(agreement)) = (all, of) {
            call["psu_corporate_id"] = agreement_id(agreement).into();
        }
        let (answer, place) = self.tell("/psu/withdraw", &call);
        if answer.status == 200 {
            self.counts.withdrawn += 1;
            let agreements = [None, Some(0), Some(1)].into_iter();
            for of in agreements.filter(|it| all || *it == of) {
                self.model.set(Fact::Consent { psu, tpp, of }, false, place);
            }
        }
    }

    fn unbind(&mut self) {
        let (psu, tpp) = (self.below(3), self.below(2));
        let owner = self.model.owner(psu).map(|(owner, _)| owner);
        let (answer, place) = self.tell("/psu/unbind", &self.named(psu, tpp));
        assert_eq!(answer.status == 200, owner == Some(tpp), "{}", self.what);
        if answer.status == 200 {
            self.model.unbind(psu, tpp, place);
        }
    }

    /// The TPP, and what is blocked of it.
    fn target(&mut self) -> (Fact, Value) {
        let (tpp, psu) = (self.below(2), self.below(3));
        let what = self.one_of(&[Blocked::All, Blocked::Payments, Blocked::Psu(psu)]);
        let mut call = json!({ "tpp": self.tpp_id(tpp) });
        match what {
            Blocked::All => {}
            Blocked::Payments => call["what"] = "payments".into(),
            Blocked::Psu(psu) => call["psu_id"] = psu_id(psu).into(),
        }
        (Fact::Blocked { tpp, what }, call)
    }

    fn block(&mut self) {
        let (fact, mut call) = self.target();
        call["reason"] = "fraud".into();
        let (answer, place) = self.tell("/tpp/block", &call);
        assert_eq!(answer.status, 200, "{}: {call}", self.what);
        self.model.set(fact, true, place);
    }

    fn unblock(&mut self) {
        let (fact, call) = self.target();
        let (answer, place) = self.tell("/tpp/unblock", &call);
        let was = self.model.holds(fact);
        assert_eq!(answer.status == 200, was, "{}: {call}", self.what);
        self.model.set(fact, false, place);
    }

    /// The state has what the bank and the core said, and nothing else.
    fn read(&mut self) {
        let (psu, tpp) = (self.below(3), self.below(2));
        let (answer, _) = self.tell("/psu/read", &self.named(psu, tpp));
        let owner = self.model.owner(psu).filter(|(owner, _)| *owner == tpp);
        let Some((_, learned)) = owner else {
            assert_eq!(answer.status, 404, "{}: {}", self.what, answer.json());
            return;
        };
        let found = answer.json();
        let what = format!("{}: PSU {psu} of TPP {tpp}: {found}", self.what);
        assert_eq!(answer.status, 200, "{what}");
        let (contexts, consents) = self.model.contexts(psu, tpp);
        let kinds = contexts.iter().map(|of| match of {
            None => "PRIVATE",
            Some(_) => "CORPORATE",
        });
        let stored = found["contexts"].as_array().unwrap();
        let stored_kinds = stored
            .iter()
            .map(|context| context["context"].as_str().unwrap());
        assert!(stored_kinds.eq(kinds), "{contexts:?} {what}");
        let given = stored
            .iter()
            .filter(|context| context["consent"].is_object());
        assert_eq!(given.count(), consents, "{what}");
        assert_eq!(found["learned"] == true, learned, "{what}");
    }
}

impl Asked {
    fn call(&self, gate: &Gate) -> Call {
        let call = if self.is_payment {
            Call::payment()
        } else {
            Call::accounts()
        };
        let call = if self.tpp == 1 {
            call.by(&gate.world().aisp)
        } else {
            call
        };
        let call = call
            .present()
            .with("PSU-ID", &psu_id(self.psu))
            .only(Protocol::Http1);
        match self.of {
            None => call.with("PSU-Context", "PRIVATE"),
            Some(agreement) => call.with("PSU-Corporate-ID", &agreement_id(agreement)),
        }
    }

    fn reply(&self) -> Reply {
        let reply = Reply::json(self.status, "{}").with("Gateway-Sca-At", "2026-08-01T10:00:00Z");
        let words = [
            ("Gateway-Psu-Bound", self.psu_word),
            ("Gateway-Psu-Corporate-Bound", self.agreement_word),
            (
                "Gateway-Consent-At",
                self.with_consent.then_some("2026-08-01T10:00:00Z"),
            ),
        ];
        words
            .into_iter()
            .fold(reply, |reply, (name, word)| match word {
                Some(word) => reply.with(name, word),
                None => reply,
            })
    }
}

/// The claims of the assertion that the core got.
fn claims(seen: &Seen) -> Value {
    let assertion = seen.header("gateway-assertion").unwrap();
    let claims = assertion.split('.').nth(1).unwrap();
    let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap();
    serde_json::from_slice(&claims).unwrap()
}

//= SCA-13 refused
//= SCA-17 refused
//= SCA-19 refused
//= SCA-22 accepted
//= SCA-22 refused
//= CTL-2 refused
#[test]
fn gateways_on_a_file_go_by_the_last_word_of_the_bank() {
    Pair::run(|builder| {
        let here = builder().start();
        let there = builder().shares(&here).start();
        [here, there]
    });
}

//= SCA-13 refused
//= SCA-17 refused
//= SCA-19 refused
//= SCA-22 accepted
//= SCA-22 refused
//= CTL-2 refused
#[test]
fn gateways_on_a_database_go_by_the_last_word_of_the_bank() {
    let Some(server) = postgres() else { return };
    let data = PostgresSchema::new();
    let (user, host) = (data.user(), server.folder().display());
    let state = format!("postgres: {{url: 'postgres://{user}@/postgres?host={host}'}}");
    Pair::run(|builder| {
        let here = builder().state(&state).start();
        let key = |name| fs::read(here.folder().join(name)).unwrap();
        let there = builder()
            .state(&state)
            .private_file("state/hash.key", key("state/hash.key"))
            .private_file("sca.keys", key("sca.keys"))
            .start();
        [here, there]
    });
}
