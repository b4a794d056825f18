//! All flows of SBX-9 in a headless Chromium, through a gateway to the simulated bank: by keyboard, in two languages, each page
//! judged by axe-core at 320 and at 900 pixels.

use crate::{
    bank::{Bank, parameter, request, unknown},
    harness::{Call, Gate, Program, Protocol, Tpp, free_address, world},
    signers::{node_modules, python_with},
};
use portvakt::clock::{Clock, Timestamp};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{ChildStdin, ChildStdout, Stdio},
    sync::Arc,
};

/// The folder of this test's program.
const FOLDER: &str = "tests/it/systems/browser";

/// A private customer, and one who acts for a corporation too.
const KARI: &str = "01010112345";
const OLA: &str = "20000000002";

const DOMESTIC: &str = "/v1/payments/norwegian-domestic-credit-transfers";
const CROSS_BORDER: &str = "/v1/payments/norwegian-cross-border-credit-transfers";

/// A Chromium, a gateway and its bank.
struct Stage {
    gate: Gate,
    bank: Bank,
    _program: Program,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
    pictures: PathBuf,
}

impl Stage {
    fn start() -> Self {
        let python = python_with("playwright", "playwright", &["playwright>=1.60,<2"]);
        let mut python = python.expect("playwright comes from PyPI");
        let axe = node_modules("axe", "axe-core", "4").expect("axe-core comes from npm");
        let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bank");
        let _ = fs::remove_dir_all(&pictures);
        fs::create_dir_all(&pictures).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
        let mut program = python
            .arg(script.join("visit.py"))
            .arg(axe.join("axe-core/axe.min.js"))
            .arg(&pictures)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (gate, bank) = Bank::behind_a_gate();
        Self {
            asks: program.stdin.take().unwrap(),
            answers: BufReader::new(program.stdout.take().unwrap()),
            _program: Program(program),
            gate,
            bank,
            pictures,
        }
    }

    /// A visit to any of the bank's pages. No page may have a fault.
    fn visit(&mut self, mut asked: Value, path: &str) -> Value {
        asked["link"] = format!("http://{}{path}", self.bank.address).into();
        writeln!(self.asks, "{asked}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let visited: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(visited["faults"], json!([]), "{}", asked["name"]);
        println!("{}: {}", asked["name"], visited["pages"]);
        visited
    }

    /// A visit of the link that a call gets; gives the redirect.
    fn follow(&mut self, call: &Call, asked: Value) -> String {
        let token = request(&self.gate, call);
        let visited = self.visit(asked, &format!("/sca?request={token}"));
        let redirect = visited["redirect"].as_str();
        redirect.unwrap_or_else(|| panic!("{visited}")).to_owned()
    }

    /// A visit that ends at a page with this title, and not at the TPP.
    fn ends_at(&mut self, asked: Value, path: &str, title: &str) {
        let visited = self.visit(asked, path);
        assert_eq!(visited["redirect"], Value::Null);
        let pages = visited["pages"].as_array().unwrap();
        assert_eq!(pages.last().unwrap(), title, "{pages:?}");
    }

    fn send(&self, call: &Call, status: u16) -> Value {
        let answer = self.gate.send(call, Protocol::Http1);
        assert_eq!(answer.status, status, "{}", answer.json());
        answer.json()
    }

    /// Orders a payment; gives its path.
    fn order(&self, call: &Call) -> String {
        let ordered = self.send(call, 201);
        let path = ordered["_links"]["status"]["href"].as_str().unwrap();
        path.strip_suffix("/status").unwrap().to_owned()
    }

    fn is_status(&self, path: &str, tpp: &Arc<Tpp>, status: &str) {
        let call = unknown("GET", &format!("{path}/status")).by(tpp);
        assert_eq!(self.send(&call, 200)["transactionStatus"], status, "{path}");
    }
}

/// A payment's body, from an account.
fn body(bban: &str, changes: Value) -> String {
    let mut body = json!({
        "instructedAmount": {"amount": "1249.50", "currency": "NOK"}, "creditorName": "Bakeriet på hjørnet",
        "creditorAccount": {"bban": "86011117947", "currency": "NOK"},
        "debtorAccount": {"bban": bban, "currency": "NOK"},
        "remittanceInformationUnstructured": "Kanelboller til fredag"});
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.to_string()
}

fn authorise(path: &str) -> Call {
    unknown("POST", &format!("{path}/authorisations"))
}

/// The number of an account in a list.
fn bban(accounts: &Value, at: usize) -> String {
    accounts["accounts"][at]["bban"]
        .as_str()
        .unwrap()
        .to_owned()
}

//= SBX-9 accepted
#[test]
#[ignore = "make test-systems"]
fn every_flow_in_a_browser() {
    let mut stage = Stage::start();
    let (both, pisp) = (Arc::clone(&world().both), Arc::clone(&world().pisp));

    // Account access.
    let list = unknown("GET", "/v1/accounts");
    let asked = json!({"name": "accounts", "language": "nb-NO", "identity": KARI});
    let psu = parameter(&stage.follow(&list, asked), "psu-id");
    let accounts = stage.send(&list.clone().with("PSU-ID", &psu), 200);
    assert_eq!(accounts["accounts"].as_array().unwrap().len(), 3);
    let own = bban(&accounts, 0);

    // Bank-offered consent: what is open is ticked.
    let offered = unknown("POST", "/v1/bank-offered-consents");
    let asked = json!({"name": "offered", "identity": KARI});
    stage.follow(&offered, asked);

    // Registration with a TPP that may only pay.
    let users = unknown("GET", "/v1/users").by(&pisp);
    let asked = json!({"name": "registration", "identity": KARI});
    let payer = parameter(&stage.follow(&users, asked), "psu-id");

    // A payment with a single SCA, and a refused one.
    for (name, refuse, status) in [("single-sca", false, Some("ACTC")), ("refusal", true, None)] {
        let create = unknown("POST", DOMESTIC)
            .by(&pisp)
            .with("X-PSU-IDENTITY", KARI)
            .with("PSU-Context", "PRIVATE")
            .json(&body(&own, json!({})));
        let path = stage.order(&create);
        let asked = json!({"name": name, "language": "nb", "identity": KARI, "refuse": refuse});
        let redirect = stage.follow(&authorise(&path).by(&pisp), asked);
        match status {
            Some(status) => stage.is_status(&path, &pisp, status),
            None => assert_eq!(parameter(&redirect, "code"), "PAYMENT_FAILED"),
        }
    }
    // The link of an SCA that was refused.
    let refused = unknown("GET", "/v1/accounts");
    let token = request(&stage.gate, &refused);
    let link = format!("/sca?request={token}");
    let asked = json!({"name": "refused", "language": "nb", "identity": KARI, "refuse": true});
    let visited = stage.visit(asked, &link);
    assert_eq!(
        parameter(visited["redirect"].as_str().unwrap(), "code"),
        "FORBIDDEN"
    );
    stage.ends_at(
        json!({"name": "ended", "language": "nb"}),
        &link,
        "Dette er avsluttet",
    );

    // A single payment, abroad in euros.
    let abroad = json!({
        "instructedAmount": {"amount": "85.00", "currency": "EUR"}, "creditorName": "Werkzeugbau Muster GmbH",
        "creditorAccount": {"iban": "DE89370400440532013000", "currency": "EUR"},
        "remittanceInformationUnstructured": "Rechnung 4711"});
    let create = unknown("POST", CROSS_BORDER)
        .with("PSU-ID", &psu)
        .with("x-accept-fix", "amount-as-string")
        .json(&body(&own, abroad));
    let path = stage.order(&create);
    let asked = json!({"name": "abroad", "identity": KARI});
    stage.follow(&authorise(&path), asked);
    stage.is_status(&path, &both, "ACTC");

    // A signing basket.
    let changes = [
        json!({}),
        json!({"creditorName": "Strøm & Nett AS", "instructedAmount": {"amount": "861.00", "currency": "NOK"}}),
    ];
    let ids = changes.map(|changes| {
        let create = unknown("POST", DOMESTIC)
            .by(&pisp)
            .with("PSU-ID", &payer)
            .json(&body(&own, changes));
        let path = stage.order(&create);
        path.rsplit('/').next().unwrap().to_owned()
    });
    let create = unknown("POST", "/v1/signing-baskets")
        .by(&pisp)
        .with("PSU-ID", &payer)
        .with("x-accept-fix", "amount-as-string")
        .json(&json!({"paymentIds": ids}).to_string());
    let path = stage.order(&create);
    let asked = json!({"name": "basket", "language": "nb", "identity": KARI});
    stage.follow(&authorise(&path).by(&pisp), asked);
    stage.is_status(&path, &pisp, "ACTC");

    // The corporate context, which the representative chooses.
    let asked = json!({"name": "corporate", "identity": OLA, "context": 1});
    let redirect = stage.follow(&list, asked);
    assert_eq!(parameter(&redirect, "context"), "CORPORATE");
    let of_corporation = list
        .clone()
        .with("PSU-ID", &parameter(&redirect, "psu-id"))
        .with(
            "PSU-Corporate-ID",
            &parameter(&redirect, "psu-corporate-id"),
        )
        .with("PSU-Context", "CORPORATE");
    let accounts = stage.send(&of_corporation, 200);
    assert_eq!(accounts["accounts"].as_array().unwrap().len(), 2);

    // Authentication in the bank's app.
    let asked = json!({"name": "app", "language": "nb-NO", "identity": KARI});
    let redirect = stage.follow(&list.clone().with("TPP-Redirect-Preferred", "false"), asked);
    assert_eq!(parameter(&redirect, "psu-id"), psu);

    // Pages that lead nowhere, and the console.
    let asked = json!({"name": "invalid", "language": "nb"});
    stage.ends_at(asked, "/sca?request=AAAA", "Denne lenken virker ikke");
    let asked = json!({"name": "wrong-number", "identity": "123", "pages": 2});
    let token = request(&stage.gate, &list);
    let visited = stage.visit(asked, &format!("/sca?request={token}"));
    assert_eq!(visited["redirect"], Value::Null);
    let asked = json!({"name": "console", "pages": 2, "is_long": true});
    stage.visit(asked, "/console");

    // The page of accesses, on which the PSU withdraws the only one.
    let asked = json!({"name": "accesses", "language": "nb", "identity": KARI});
    stage.ends_at(asked, "/accesses", "Hvem kan lese kontoene dine");
    stage.send(&list.clone().with("PSU-ID", &psu), 401);

    // The time is over when the PSU opens the link; and a bank whose gateway is unavailable.
    let now = Clock::System.now();
    let clock = Clock::standing(now);
    (stage.gate, stage.bank) = Bank::behind(Gate::builder().clock(&clock));
    let link = format!("/sca?request={}", request(&stage.gate, &list));
    clock.set(Timestamp::from_unix(now.unix() + 3_600));
    for (language, title) in [("nb-NO", "Tiden er ute"), ("en-GB", "Time is up")] {
        let asked = json!({"name": format!("time-out-{language}"), "language": language});
        stage.ends_at(asked, &link, title);
    }
    let folder = tempfile::tempdir().unwrap();
    stage.bank = Bank::start(free_address(), free_address(), folder.path());
    stage.ends_at(
        json!({"name": "unavailable"}),
        &link,
        "We cannot continue right now",
    );
    println!("pictures in {}", stage.pictures.display());
}
