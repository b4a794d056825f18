//! A bank in memory, called as the gateway calls it.

mod accounts;
mod amounts;
mod baskets;
mod bodies;
mod channel;
mod contradictions;
mod details;
mod history;
mod instructions;
mod mock;
mod notices;
mod payments;
mod wrong_values;

use crate::core::answer::Answer;
use crate::core::bank::Bank;
use crate::core::bank::tests::bank;
use crate::core::caller::Caller;
use crate::core::customer::{Account, Customer};
use crate::core::operations::tests::{TPP, ask, tpp};
use crate::core::seed::WITH_AGREEMENT;
use portvakt_base::clock::{Clock, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

const KARI: &str = "01010112345";
const DOMESTIC: &str = "/v1/payments/norwegian-domestic-credit-transfers";
const CROSS_BORDER: &str = "/v1/payments/norwegian-cross-border-credit-transfers";
const INSTANT: &str = "/v1/payments/instant-norwegian-credit-transfers-straks";

/// An account at another bank.
const ELSEWHERE: &str = "86011117947";

/// A bank, and a PSU of it who has opened all accounts to the TPP.
struct Stage {
    bank: Bank,
    clock: Clock,
    psu: Customer,
    caller: Caller,
}

impl Stage {
    fn new() -> Self {
        Self::of(KARI, false)
    }

    /// Creates a stage with this PSU, in a corporate context or not.
    fn of(identity: &str, corporate: bool) -> Self {
        let (bank, clock) = bank();
        let psu = bank.customer(identity).unwrap();
        let id = bank.psu_id(TPP, &psu).unwrap();
        let agreement = corporate.then(|| bank.agreements_of(&psu.id).unwrap().remove(0).id);
        let accounts = bank.accounts_in(&psu.id, agreement).unwrap().unwrap();
        let accounts = accounts.into_iter().map(|account| account.id).collect();
        bank.consent(id, agreement, &accounts).unwrap();
        let caller = Caller {
            psu: Some(id),
            agreement,
            sca_redirect: Some("https://b.example/sca?request=t".into()),
            ..tpp()
        };
        Self {
            bank,
            clock,
            psu,
            caller,
        }
    }

    fn ask(&self, line: &str) -> Answer {
        self.send(line, &Value::Null)
    }

    fn send(&self, line: &str, body: &Value) -> Answer {
        ask(&self.bank, line, self.caller.clone(), body)
    }

    /// The body of a 200 or 201 answer.
    fn get(&self, line: &str) -> Value {
        let (status, body) = self.ask(line);
        assert!(status < 300, "{line}: {status} {body}");
        body
    }

    fn account(&self, at: usize) -> Account {
        let accounts = self.bank.accounts_in(&self.psu.id, self.caller.agreement);
        accounts.unwrap().unwrap().remove(at)
    }

    /// A payment of this amount in NOK to another bank.
    fn order(&self, amount: &str) -> Value {
        json!({
            "instructedAmount": {"amount": amount, "currency": "NOK"},
            "creditorName": "Bakeriet",
            "creditorAccount": {"bban": ELSEWHERE, "currency": "NOK"},
            "debtorAccount": {"bban": self.account(0).bban, "currency": "NOK"},
        })
    }

    /// Initiates a payment. Returns its path and the answer.
    fn initiate(&self, product: &str, body: &Value) -> (String, Value) {
        let (status, created) = self.send(&format!("POST {product}"), body);
        assert_eq!(status, 201, "{created}");
        let path = created["_links"]["self"]["href"]
            .as_str()
            .unwrap()
            .to_owned();
        (path, created)
    }

    fn refused(&self, product: &str, body: &Value) -> (u16, String, String) {
        let (status, body) = self.send(&format!("POST {product}"), body);
        assert!(status >= 400, "{body}");
        let path = body["tppMessages"][0]["path"].as_str().unwrap_or_default();
        (status, body["code"].as_str().unwrap().into(), path.into())
    }

    fn sign(&self, path: &str) {
        self.bank.sign(id(path)).unwrap();
    }

    fn status(&self, path: &str) -> String {
        let state = self.get(&format!("GET {path}/status"));
        state["transactionStatus"].as_str().unwrap().into()
    }

    fn run(&self) {
        self.get("POST /v1/sandbox/batch");
    }

    fn pass_hours(&self, hours: u64) {
        let now = self.clock.now().unix();
        self.clock.set(Timestamp::from_unix(now + hours * 3_600));
    }

    fn booked(&self, account: &Account) -> i64 {
        self.bank.booked(&account.id).unwrap()
    }
}

fn id(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

fn uuid() -> String {
    Uuid::new_v4().to_string()
}

/// `body` with some members changed; null removes one.
fn with(body: &Value, changes: Value) -> Value {
    let mut body = body.clone();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => body.as_object_mut().unwrap().remove(name),
            value => body
                .as_object_mut()
                .unwrap()
                .insert(name.clone(), value.clone()),
        };
    }
    body
}
