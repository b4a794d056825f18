// The gateway's control listener.
mod gateway;
// The page of accesses, and frames.
mod accesses;
mod frames;

use super::super::bank::tests::{NOON, bank};
use super::super::control::Control;
use super::super::ending;
use super::super::form_token::FormTokens;
use super::super::frames::Frames;
use super::super::journal::Journal;
use super::super::payment::order::Ordered;
use super::super::router;
use super::super::seed::WITH_AGREEMENT;
use super::super::state::{Core, Trust};
use crate::demo::form::Form;
use axum::Router;
use gateway::Gateway;
use portvakt::tools::tpp::{CallOptions, SignedRequest, TppAnswer, call};
use portvakt_base::clock::{Clock, Timestamp};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

const TPP: &str = "PSDNO-FSA-1";
const PRODUCT: &str = "norwegian-domestic-credit-transfers";
const KARI: &str = "01010112345";

/// A core with its page, and a control listener instead of a whole gateway.
struct Stage {
    page: String,
    core: Arc<Core>,
    /// The calls to the control listener.
    told: Arc<Mutex<Vec<(&'static str, Value)>>>,
    /// The call that the gateway refuses, and its answer.
    fault: Arc<Mutex<Value>>,
    /// What the gateway knows of each PSU, by PSU-ID.
    known: Arc<Mutex<Value>>,
    /// The number of links that were followed.
    links: AtomicUsize,
    clock: Clock,
}

async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

impl Stage {
    /// `pending` is the gateway's answer for every request except "old".
    async fn new(pending: Value) -> Self {
        Self::asking(Arc::new(Mutex::new(pending))).await
    }

    /// As [`Self::new`], with an answer that a test may change.
    async fn asking(pending: Arc<Mutex<Value>>) -> Self {
        Self::framed(pending, Frames::default()).await
    }

    /// As [`Self::asking`], with pages that may be framed.
    async fn framed(pending: Arc<Mutex<Value>>, frames: Frames) -> Self {
        let gateway = Gateway::new(pending);
        let control = gateway.router();
        let control = Control::new(&serve(control).await);
        let (bank, clock) = bank();
        let core = Arc::new(Core {
            journal: Journal::default(),
            bank: Mutex::new(bank),
            control,
            endings: tokio::sync::Mutex::default(),
            forms: FormTokens::default(),
            accesses: FormTokens::default(),
            frames,
            console: FormTokens::default(),
            trust: Trust::Anyone,
        });
        Self {
            page: serve(router(Arc::clone(&core))).await,
            core,
            told: gateway.told,
            fault: gateway.fault,
            known: gateway.known,
            links: AtomicUsize::new(0),
            clock,
        }
    }

    /// The token of the link that was followed last.
    fn request(&self) -> String {
        format!("t+{}", self.links.load(Ordering::Relaxed))
    }

    async fn ask(&self, method: &str, target: &str, body: Option<String>) -> TppAnswer {
        self.ask_in("en", method, target, body).await
    }

    async fn ask_in(
        &self,
        language: &str,
        method: &str,
        target: &str,
        body: Option<String>,
    ) -> TppAnswer {
        let kind = "application/x-www-form-urlencoded".to_owned();
        let request = SignedRequest {
            method: method.into(),
            target: target.into(),
            headers: vec![
                ("Content-Type".into(), kind),
                ("Accept-Language".into(), language.into()),
            ],
            body: body.map(String::into_bytes),
            signing_string: String::new(),
        };
        let answer = call(&request, &self.page, &CallOptions::default()).await;
        answer.unwrap()
    }

    /// Follows a new link.
    async fn open(&self) -> Form {
        self.links.fetch_add(1, Ordering::Relaxed);
        let target = format!("/sca?request={}", self.request().replace('+', "%2B"));
        form(&self.ask("GET", &target, None).await)
    }

    async fn press(&self, form: &Form, step: &str) -> TppAnswer {
        let body = form.press(("step", step));
        self.ask("POST", "/sca", Some(body)).await
    }

    /// Submits the number; returns the page for approval.
    async fn identify(&self, identity: &str) -> TppAnswer {
        let mut form = self.open().await;
        assert!(form.fill("identity", identity));
        self.press(&form, "next").await
    }

    /// Kari orders a payment; returns its path.
    fn payment(&self) -> String {
        let bank = self.core.bank();
        let kari = bank.customer(KARI).unwrap();
        let account = bank.accounts_of(&kari.id).unwrap().remove(0);
        let body = json!({"instructedAmount": {"amount": "10.00", "currency": "NOK"}, "creditorName": "<b>Ola</b>",
            "creditorAccount": {"bban": "86011117947"}, "debtorAccount": {"bban": account.bban}});
        let body = body.to_string();
        let ordered = Ordered {
            tpp: TPP,
            customer: &kari.id,
            agreement: None,
            product: PRODUCT,
            body: body.as_bytes(),
        };
        let payment = bank.order(&ordered).unwrap().unwrap();
        bank.keep(&payment).unwrap();
        payment.path()
    }

    /// The PSU-ID by which the TPP knows Kari.
    fn psu(&self) -> String {
        let bank = self.core.bank();
        let kari = bank.customer(KARI).unwrap();
        bank.psu_id(TPP, &kari).unwrap().to_string()
    }

    /// The status of a payment.
    fn status(&self, path: &str) -> &'static str {
        let payment = self.core.bank().payment_at(TPP, path).unwrap().unwrap();
        payment.status().word()
    }

    /// The gateway refuses completions from now on.
    fn refuse(&self, status: u16, reason: &str) {
        self.refuse_call("complete", status, reason);
    }

    /// The gateway refuses a call from now on.
    fn refuse_call(&self, call: &str, status: u16, reason: &str) {
        *self.fault.lock().unwrap() = json!({"call": call, "status": status, "reason": reason});
    }

    /// Kari approves a payment; gives its path, and the answer.
    async fn approve_payment(&self, pending: &Mutex<Value>) -> (String, TppAnswer) {
        let path = self.payment();
        pending.lock().unwrap()["resource"] = path.as_str().into();
        let form = form_of(self, KARI).await;
        let answer = self.press(&form, "next").await;
        (path, answer)
    }

    fn told(&self) -> Vec<(&'static str, Value)> {
        std::mem::take(&mut *self.told.lock().unwrap())
    }
}

fn text(answer: &TppAnswer) -> String {
    String::from_utf8(answer.body.clone()).unwrap()
}

fn form(answer: &TppAnswer) -> Form {
    assert_eq!(answer.status, 200, "{}", text(answer));
    Form::read(&text(answer)).unwrap()
}

fn pending(asks_consent: bool, resource: Option<&str>) -> Value {
    json!({"tpp": TPP, "tpp_name": "Tredjepart <AS>", "operation": "o", "resource": resource, "asks_consent": asks_consent, "context": null,
        "psu_corporate_id": null, "psu_known": false, "redirect_preferred": true, "expires": "2026-03-01T00:00:00Z"})
}

fn assert_redirected(answer: &TppAnswer) {
    assert_eq!(answer.status, 303, "{}", text(answer));
    assert_eq!(answer.header("location"), Some("https://tpp.example/back"));
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
}

//= SBX-3 accepted
#[tokio::test]
async fn a_new_psu_consents_to_accounts_and_takes_it_back() {
    let stage = Stage::new(pending(true, None)).await;
    let mut form = form_of(&stage, KARI).await;
    assert_eq!(form.ticked(), [""; 0]);
    assert_eq!(form.tick("account", true), 3);
    let accounts = form.values("account").into_iter().map(str::to_owned);
    let mut accounts: Vec<_> = accounts.collect();
    accounts.sort();
    assert_redirected(&stage.press(&form, "next").await);
    let psu = stage.psu();
    let said = json!({"request": stage.request(), "psu_id": psu, "context": "PRIVATE", "consent": true, "accounts": accounts});
    assert_eq!(stage.told(), [("complete", said)]);

    // The accounts are ticked the next time, and unticking them withdraws the consent.
    let mut form = form_of(&stage, KARI).await;
    assert_eq!(form.ticked().len(), 3);
    form.tick("account", false);
    assert_redirected(&stage.press(&form, "next").await);
    let said =
        json!({"request": stage.request(), "psu_id": psu, "context": "PRIVATE", "consent": false});
    let withdrawn = json!({"tpp": TPP, "psu_id": psu, "what": "consent"});
    assert_eq!(stage.told(), [("complete", said), ("withdraw", withdrawn)]);
    assert_eq!(form_of(&stage, KARI).await.ticked().len(), 0);
}

async fn form_of(stage: &Stage, identity: &str) -> Form {
    form(&stage.identify(identity).await)
}

//= SBX-3 accepted
#[tokio::test]
async fn whoever_acts_for_a_corporation_chooses() {
    let stage = Stage::new(pending(true, None)).await;
    let mut chosen = form_of(&stage, WITH_AGREEMENT).await;
    assert_eq!(chosen.ticked(), ["PRIVATE"]);
    assert_eq!(chosen.values("account"), [""; 0]);
    let agreement = chosen.values("context")[1].to_owned();
    chosen.choose(&agreement);
    let mut form = form(&stage.press(&chosen, "next").await);
    assert_eq!(form.tick("account", true), 2);
    assert_redirected(&stage.press(&form, "next").await);
    let (_, said) = stage.told().remove(0);
    assert_eq!(said["context"], "CORPORATE");
    assert_eq!(said["psu_corporate_id"], agreement.as_str());
    assert_eq!(said["accounts"].as_array().unwrap().len(), 2);
}

//= SBX-3 refused
#[tokio::test]
async fn accounts_of_another_context_are_not_opened() {
    let stage = Stage::new(pending(true, None)).await;
    let own = form_of(&stage, WITH_AGREEMENT).await;
    let own = form(&stage.press(&own, "next").await);
    let mut chosen = form_of(&stage, WITH_AGREEMENT).await;
    let agreement = chosen.values("context")[1].to_owned();
    chosen.choose(&agreement);
    let form = form(&stage.press(&chosen, "next").await);
    // The private accounts, with the one-time token of the page with the corporation's.
    let body = form.press(("step", "next"));
    let others = own.values("account").into_iter();
    let others: String = others.map(|id| format!("&account={id}")).collect();
    assert_redirected(&stage.ask("POST", "/sca", Some(body + &others)).await);
    let (_, said) = stage.told().remove(0);
    assert_eq!(
        (&said["context"], &said["consent"]),
        (&json!("CORPORATE"), &json!(false))
    );
}

#[tokio::test]
async fn what_the_tpp_chose_is_not_asked_again() {
    let mut asked = pending(true, None);
    asked["context"] = "CORPORATE".into();
    let stage = Stage::new(asked).await;
    let form = form_of(&stage, WITH_AGREEMENT).await;
    assert_eq!(form.values("context"), [""; 0]);
    assert_eq!(form.values("account").len(), 2);
    // A private customer can then choose nothing.
    let answer = stage.identify(KARI).await;
    assert!(text(&answer).contains("You have no access on behalf"));
    assert_eq!(stage.told(), []);
}

#[tokio::test]
async fn what_is_no_number_is_asked_for_again() {
    let stage = Stage::new(pending(true, None)).await;
    for other in ["", "1", "0101011234x", "<script>"] {
        let answer = stage.identify(other).await;
        let html = text(&answer);
        assert!(
            html.contains("role=\"alert\"") && !html.contains("<script"),
            "{html}"
        );
        assert!(form(&answer).fill("identity", "1"));
    }
    assert_eq!(stage.told(), []);
}

//= SBX-3 accepted
#[tokio::test]
async fn a_payment_is_signed_by_its_payer() {
    let pending = Arc::new(Mutex::new(pending(false, None)));
    let stage = Stage::asking(Arc::clone(&pending)).await;
    let path = stage.payment();
    pending.lock().unwrap()["resource"] = path.as_str().into();
    // For another person, the SCA fails.
    assert_redirected(&stage.identify("01010112346").await);
    let (call, said) = stage.told().remove(0);
    assert_eq!(
        (call, &said["code"]),
        ("fail", &json!("PSU_CREDENTIALS_INVALID"))
    );
    assert_eq!(stage.status(&path), "RCVD");

    let answer = stage.identify(KARI).await;
    let html = text(&answer);
    assert!(
        html.contains("NOK\u{a0}10.00") && html.contains("&lt;b&gt;Ola"),
        "{html}"
    );
    assert_redirected(&stage.press(&form(&answer), "next").await);
    let psu = stage.psu();
    let said = json!({"request": stage.request(), "psu_id": psu, "context": "PRIVATE"});
    assert_eq!(stage.told(), [("complete", said)]);
    assert_eq!(stage.status(&path), "ACTC");
}

//= SBX-7 accepted
#[tokio::test]
async fn a_basket_is_signed_payment_by_payment() {
    let pending = Arc::new(Mutex::new(pending(false, None)));
    let stage = Stage::asking(Arc::clone(&pending)).await;
    let paths = [stage.payment(), stage.payment()];
    let id = {
        let bank = stage.core.bank();
        let payments = paths
            .iter()
            .map(|path| bank.payment_at(TPP, path).unwrap().unwrap());
        let payments: Vec<_> = payments.collect();
        let kari = bank.customer(KARI).unwrap();
        // A payment cancelled in the bank's own channel does not block the other one.
        bank.cancel(&payments[1]).unwrap();
        bank.new_basket(TPP, &kari, None, &payments).unwrap()
    };
    pending.lock().unwrap()["resource"] = format!("/v1/signing-baskets/{id}").into();
    let answer = stage.identify(KARI).await;
    assert_eq!(text(&answer).matches("NOK\u{a0}10.00").count(), 2);
    assert_redirected(&stage.press(&form(&answer), "next").await);
    assert_eq!(paths.map(|path| stage.status(&path)), ["ACTC", "CANC"]);
    let basket = stage.core.bank().basket(TPP, &id).unwrap().unwrap();
    assert_eq!(basket.status(), "RJCT");
}

#[tokio::test]
async fn refusing_is_possible_at_either_step() {
    let stage = Stage::new(pending(true, None)).await;
    let first = stage.open().await;
    let second = form_of(&stage, KARI).await;
    for form in [first, second] {
        assert_redirected(&stage.press(&form, "refuse").await);
        let (call, said) = stage.told().remove(0);
        assert_eq!(
            (call, &said["code"], &said["status"]),
            ("fail", &json!("FORBIDDEN"), &json!(403))
        );
    }
}

//= SBX-3 refused
#[tokio::test]
async fn a_payment_that_was_cancelled_is_not_signed() {
    let (stage, pending) = payment_stage().await;
    let cancel = |path: &str| {
        let bank = stage.core.bank();
        let payment = bank.payment_at(TPP, path).unwrap().unwrap();
        assert!(bank.cancel(&payment).unwrap());
    };
    // Before the page, and between the page and its button.
    for is_early in [true, false] {
        let path = stage.payment();
        pending.lock().unwrap()["resource"] = path.as_str().into();
        if is_early {
            cancel(&path);
            assert_redirected(&stage.identify(KARI).await);
        } else {
            let form = form_of(&stage, KARI).await;
            cancel(&path);
            assert_redirected(&stage.press(&form, "next").await);
        }
        let told = stage.told();
        let [(call, said)] = &told[..] else {
            panic!("{told:?}")
        };
        assert_eq!(
            (*call, &said["code"], &said["status"]),
            ("fail", &json!("CONFLICT"), &json!(409))
        );
        assert_eq!(stage.status(&path), "CANC");
        // Nothing is left that would be completed later.
        ending::recover(&stage.core).await.unwrap();
        assert_eq!((stage.status(&path), stage.told().len()), ("CANC", 0));
    }
}

//= SBX-3 refused
#[tokio::test]
async fn a_payment_that_goes_between_page_and_button_is_not_signed() {
    let (stage, pending) = payment_stage().await;
    pending.lock().unwrap()["resource"] = stage.payment().into();
    let form = form_of(&stage, KARI).await;
    pending.lock().unwrap()["resource"] = format!("/v1/payments/{PRODUCT}/x-1").into();
    assert_redirected(&stage.press(&form, "next").await);
    let (call, said) = stage.told().remove(0);
    assert_eq!((call, &said["code"]), ("fail", &json!("RESOURCE_UNKNOWN")));
}

//= SBX-3 refused
#[tokio::test]
async fn a_payment_that_is_gone_is_not_signed() {
    let path = format!("/v1/payments/{PRODUCT}/x-1");
    let stage = Stage::new(pending(false, Some(&path))).await;
    assert_redirected(&stage.identify(KARI).await);
    let (call, said) = stage.told().remove(0);
    assert_eq!((call, &said["code"]), ("fail", &json!("RESOURCE_UNKNOWN")));
}

#[tokio::test]
async fn a_request_that_is_over_leads_nowhere() {
    let stage = Stage::new(pending(true, None)).await;
    let answer = stage.ask("GET", "/sca?request=old", None).await;
    assert_eq!(answer.status, 410);
    assert!(text(&answer).contains("Time is up"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn a_form_is_accepted_once_and_only_the_banks_own() {
    let stage = Stage::new(pending(true, None)).await;
    let mut first = stage.open().await;
    first.fill("identity", KARI);
    let mut second = form(&stage.press(&first, "next").await);
    second.tick("account", true);
    // A used form, another site's form, and one of another request: nothing is approved, nothing is refused.
    let again = stage.press(&first, "next").await;
    let made_up = format!("request={}&step=refuse&form=made-up", stage.request());
    let made_up = stage.ask("POST", "/sca", Some(made_up)).await;
    let body = second.press(("step", "next"));
    let other = body.replace(&stage.request().replace('+', "%2B"), "t%2B99");
    assert_ne!(body, other);
    let other = stage.ask("POST", "/sca", Some(other)).await;
    for answer in [again, made_up, other] {
        assert!(text(&answer).contains("out of date"), "{}", text(&answer));
        assert!(form(&answer).fill("identity", "1"));
    }
    assert_eq!(stage.told(), []);
    // No page but the first knows the number, and no page repeats it.
    assert!(!body.contains(KARI));
}

#[tokio::test]
async fn a_second_press_of_the_button_leads_to_the_tpp_and_approves_nothing_twice() {
    let stage = Stage::new(pending(true, None)).await;
    let mut form = form_of(&stage, KARI).await;
    form.tick("account", true);
    for _ in 0..2 {
        assert_redirected(&stage.press(&form, "next").await);
    }
    let target = format!("/sca?request={}", stage.request().replace('+', "%2B"));
    assert_redirected(&stage.ask("GET", &target, None).await);
    assert_eq!(stage.told().len(), 1);
}

#[tokio::test]
async fn the_bank_waits_for_its_app_where_the_tpp_prefers_no_redirect() {
    let mut asked = pending(true, None);
    asked["redirect_preferred"] = false.into();
    let stage = Stage::new(asked).await;
    let answer = stage.identify(KARI).await;
    assert!(text(&answer).contains("Confirm in the bank"));
    let early = stage.press(&form(&answer), "next").await;
    assert!(text(&early).contains("has not confirmed yet"));
    stage.clock.set(Timestamp::from_unix(NOON.unix() + 2));
    let mut last = form(&stage.press(&form(&early), "next").await);
    assert_eq!(last.tick("account", true), 3);
    assert_redirected(&stage.press(&last, "next").await);
}

#[tokio::test]
async fn the_page_speaks_norwegian_to_those_who_do() {
    let stage = Stage::new(pending(true, None)).await;
    let answer = stage.ask_in("nb-NO", "GET", "/sca?request=t", None).await;
    let html = text(&answer);
    assert!(html.contains("lang=\"nb\"") && html.contains("Gi tilgang til kontoene dine"));
    assert_eq!(answer.header("content-language"), Some("nb"));
    assert_eq!(answer.header("vary"), Some("Accept-Language"));
}

#[tokio::test]
async fn what_a_browser_sends_wrongly_gets_a_page() {
    let stage = Stage::new(pending(true, None)).await;
    let long = format!("request={}", "a".repeat(70_000));
    let answer = stage.ask("POST", "/sca", Some(long)).await;
    assert_eq!(answer.status, 400);
    assert!(answer.header("content-security-policy").is_some());
    let evil = "/sca?request=%3Cscript%3E%22onload&%FF=%FF";
    let answer = stage.ask("GET", evil, None).await;
    assert!(text(&answer).contains("value=\"&lt;script&gt;&quot;onload\""));
}

/// A stage for a payment, with the request that its gateway shows.
async fn payment_stage() -> (Stage, Arc<Mutex<Value>>) {
    let pending = Arc::new(Mutex::new(pending(false, None)));
    (Stage::asking(Arc::clone(&pending)).await, pending)
}

//= SBX-15 accepted
#[tokio::test]
async fn an_approval_waits_for_a_gateway_that_is_unavailable() {
    let (stage, pending) = payment_stage().await;
    stage.refuse(503, "state-unavailable");
    let (path, answer) = stage.approve_payment(&pending).await;
    assert_eq!(answer.status, 502);
    assert!(text(&answer).contains("approved is approved once"));
    assert_eq!(stage.status(&path), "RCVD");
    ending::recover(&stage.core).await.unwrap();
    assert_eq!(stage.status(&path), "RCVD");
    // When the gateway is back, the bank ends the SCA without the PSU, in both systems.
    *stage.fault.lock().unwrap() = Value::Null;
    ending::recover(&stage.core).await.unwrap();
    assert_eq!(stage.status(&path), "ACTC");
    let calls = stage.told().len();
    ending::recover(&stage.core).await.unwrap();
    assert_eq!((calls, stage.told().len()), (3, 0));
}

//= SBX-15 refused
#[tokio::test]
async fn an_approval_that_the_gateway_refuses_is_dropped() {
    for (status, reason) in [(409, "sca-finished"), (410, "sca-request-expired")] {
        let (stage, pending) = payment_stage().await;
        stage.refuse(status, reason);
        let (path, answer) = stage.approve_payment(&pending).await;
        assert_eq!(answer.status, status, "{}", text(&answer));
        *stage.fault.lock().unwrap() = Value::Null;
        stage.told();
        ending::recover(&stage.core).await.unwrap();
        assert_eq!((stage.status(&path), stage.told().len()), ("RCVD", 0));
    }
}

//= SBX-15 accepted
#[tokio::test]
async fn a_completion_whose_answer_was_lost_for_long_is_recognised() {
    let (stage, pending) = payment_stage().await;
    stage.refuse(410, "sca-request-expired");
    let context = json!({"context": "PRIVATE", "last_sca": "2026-03-02T11:00:00Z"});
    let psu = stage.psu();
    stage.known.lock().unwrap()[psu.as_str()] = json!({"contexts": [context]});
    let (path, answer) = stage.approve_payment(&pending).await;
    assert_eq!(stage.status(&path), "ACTC");
    assert!(
        text(&answer).contains("This is finished"),
        "{}",
        text(&answer)
    );
}
