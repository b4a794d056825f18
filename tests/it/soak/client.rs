//! A client: its connection breaks with each kill, and the client continues after the restart.

use super::{
    Soak,
    ledger::{Completed, GIVEN_BACK, What},
    over_http1,
};
use crate::harness::{Answer, Call, Connection, Connector, Dice, Gate, Sealed, let_pass};
use portvakt::clock::{Clock, Stopwatch, Timestamp};
use serde_json::json;
use std::{sync::atomic::Ordering, time::Duration};
use uuid::Uuid;

/// The number of quotas in use in each round.
const QUOTAS: u64 = 3;

/// The number of rounds whose quotas are in use, so that a quota is used before and after a kill.
const ROUNDS: u64 = 4;

/// The time-out of a check after a start.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Client<'a> {
    soak: &'a Soak,
    dice: Dice,
    connector: Connector,
    connection: Option<Connection>,
}

impl<'a> Client<'a> {
    pub(super) fn new(soak: &'a Soak, seed: u64) -> Self {
        Self {
            soak,
            dice: Dice(seed),
            connector: soak.connector.clone(),
            connection: None,
        }
    }

    pub(super) fn call_until_over(mut self) {
        let soak = self.soak;
        // Also if this client fails.
        let _over = super::Over(&soak.over);
        while !soak.is_over() {
            match self.dice.below(10) {
                0..4 => self.read_balances(),
                4..6 => self.pay(),
                6..8 => self.pay_again(),
                _ => self.complete_an_sca(),
            }
        }
    }

    /// A call without the PSU, with one of a few quotas.
    fn read_balances(&mut self) {
        let kills = self.soak.kills.load(Ordering::Relaxed);
        let round = kills.saturating_sub(self.dice.below(ROUNDS));
        let account = format!("{round}-{}", self.dice.below(QUOTAS));
        let target = format!("/v1/accounts/{account}/balances");
        let given_back = self.dice.one_in(4);
        let start = if given_back { GIVEN_BACK } else { "" };
        let id = format!("{start}{}", self.uuid());
        let call = Call::balances().at(&target).with("X-Request-ID", &id);
        if let Some(answer) = self.ask(&seal(call)) {
            let status = if given_back { 404 } else { 200 };
            self.expect(What::Balances, &answer, &[status, 429]);
            if answer.status == 200 {
                self.soak.ledger.lock().unwrap().read(target);
            }
        }
    }

    /// A payment that other clients may send again at once.
    fn pay(&mut self) {
        let id = self.uuid().to_string();
        let sealed = seal(Call::payment().with("X-Request-ID", &id));
        self.soak.ledger.lock().unwrap().will_pay(&sealed);
        self.send_payment(&sealed, What::Payment);
    }

    /// Repeats the bytes of an earlier payment.
    fn pay_again(&mut self) {
        let earlier = self
            .soak
            .ledger
            .lock()
            .unwrap()
            .earlier_payment(&mut self.dice);
        if let Some(sealed) = earlier {
            self.send_payment(&sealed, What::Replay);
        }
    }

    fn send_payment(&mut self, sealed: &Sealed, what: What) {
        if let Some(answer) = self.ask(sealed) {
            self.expect(what, &answer, &[200, 409]);
            if answer.status == 200 {
                let id = sealed.request.header("x-request-id").unwrap().to_owned();
                self.soak.ledger.lock().unwrap().paid(id);
            }
        }
    }

    /// A new PSU, from the first request to the session. The bank repeats unanswered calls.
    fn complete_an_sca(&mut self) {
        let session = self.uuid().to_string();
        let Some(answer) = self.ask(&seal(accounts(&session))) else {
            return;
        };
        self.expect(What::Sca, &answer, &[401]);
        let json = answer.json();
        let link = json["_links"]["scaRedirect"]["href"].as_str().unwrap();
        let (_, token) = link.split_once("?request=").unwrap();
        let psu = self.uuid().to_string();
        let completed = Completed::new(&psu, &session, 1 + self.dice.below(3));
        let accounts: Vec<_> = (0..completed.accounts)
            .map(|number| completed.account(number))
            .collect();
        let said = json!({
            "request": token, "psu_id": psu, "context": "PRIVATE", "consent": true, "accounts": accounts,
        });
        let mut tries = 0;
        while !self.soak.is_over() {
            tries += 1;
            let Ok(answer) = self.soak.gate.try_tell("/sca/complete", &said) else {
                let_pass(Duration::from_millis(3));
                continue;
            };
            if self.waits_for_a_restart(&answer) {
                continue;
            }
            self.expect(What::Completion, &answer, &[200]);
            let mut ledger = self.soak.ledger.lock().unwrap();
            ledger.complete(completed.clone(), tries);
            drop(ledger);
            // Without delay: an answered completion is in force.
            if let Some(answer) = self.ask(&seal(under(&completed))) {
                self.expect(What::Session, &answer, &[200]);
            }
            return;
        }
    }

    /// Repeats the request until there is an answer.
    pub(super) fn must_have_session(&mut self, completed: &Completed) {
        let began = Stopwatch::start();
        while began.elapsed() < PATIENCE {
            if let Some(answer) = self.ask(&seal(under(completed))) {
                return self.expect(What::Check, &answer, &[200]);
            }
        }
        give_up(&self.soak.gate, "it does not answer")
    }

    /// The consent is for the accounts of the completion, and for no other one.
    pub(super) fn must_have_consent(&mut self, completed: &Completed) {
        for (number, status) in [(completed.accounts - 1, 200), (completed.accounts, 404)] {
            let target = format!("/v1/accounts/{}/balances", completed.account(number));
            let call = || seal(Call::balances().at(&target).with("PSU-ID", &completed.psu));
            let answer = (0..3).find_map(|_| self.ask(&call()));
            let Some(answer) = answer else {
                give_up(&self.soak.gate, "it does not answer")
            };
            self.expect(What::Consent, &answer, &[status]);
        }
    }

    /// Sends a request. None where the connection broke.
    fn ask(&mut self, sealed: &Sealed) -> Option<Answer> {
        let gate = &self.soak.gate;
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => match Connection::over(gate.address(), &self.connector) {
                Ok(connection) => self.connection.insert(connection),
                Err(_) => {
                    let_pass(Duration::from_millis(3));
                    return None;
                }
            },
        };
        let answer = connection.exchange(sealed).ok();
        let closes = |answer: &Answer| answer.header("connection") == Some("close");
        if answer.as_ref().is_none_or(closes) {
            self.connection = None;
        }
        if answer.is_none() {
            self.soak.ledger.lock().unwrap().broke_off();
        }
        answer.filter(|answer| !self.waits_for_a_restart(answer))
    }

    /// Whether the gateway has another level of the hash key than the state, and decides nothing.
    fn waits_for_a_restart(&self, answer: &Answer) -> bool {
        let waits = self.soak.rotates && answer.status == 503;
        if waits {
            self.soak.ledger.lock().unwrap().broke_off();
            let_pass(Duration::from_millis(3));
        }
        waits
    }

    fn expect(&self, what: What, answer: &Answer, statuses: &[u16]) {
        if !statuses.contains(&answer.status) {
            let body = String::from_utf8_lossy(&answer.body);
            give_up(
                &self.soak.gate,
                &format!("{what:?}: {} {body}", answer.status),
            )
        }
        self.soak.ledger.lock().unwrap().count(what, answer.status);
    }

    fn uuid(&mut self) -> Uuid {
        Uuid::from_u64_pair(self.dice.below(u64::MAX), self.dice.below(u64::MAX))
    }
}

/// Fails with the output of the program.
pub(super) fn give_up(gate: &Gate, why: &str) -> ! {
    let log = std::fs::read_to_string(gate.folder().join("errors.log")).unwrap_or_default();
    let last: Vec<_> = log.lines().rev().take(20).collect();
    panic!(
        "{why}\n{}",
        last.into_iter().rev().collect::<Vec<_>>().join("\n")
    )
}

fn seal(call: Call) -> Sealed {
    over_http1(call).seal(now())
}

fn now() -> Timestamp {
    Clock::System.now()
}

fn accounts(session: &str) -> Call {
    Call::accounts()
        .without("PSU-ID")
        .with("TPP-Session-ID", session)
        .present()
}

fn under(completed: &Completed) -> Call {
    accounts(&completed.session).with("PSU-ID", &completed.psu)
}
