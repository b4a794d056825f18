// The gateway's control listener.
mod gateway;
// The SCA page by subject.
mod consents;
mod forms;
mod payments;
// The page of accesses, and frames.
mod accesses;
mod frames;

use super::super::bank::tests::bank;
use super::super::control::Control;
use super::super::form_token::FormTokens;
use super::super::frames::Frames;
use super::super::journal::Journal;
use super::super::payment::order::Ordered;
use super::super::router;
use super::super::state::{Core, Trust};
use crate::demo::form::Form;
use axum::Router;
use gateway::Gateway;
use portvakt::tools::tpp::{CallOptions, SignedRequest, TppAnswer, call};
use portvakt_base::clock::Clock;
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

async fn form_of(stage: &Stage, identity: &str) -> Form {
    form(&stage.identify(identity).await)
}

/// A stage for a payment, with the request that its gateway shows.
async fn payment_stage() -> (Stage, Arc<Mutex<Value>>) {
    let pending = Arc::new(Mutex::new(pending(false, None)));
    (Stage::asking(Arc::clone(&pending)).await, pending)
}
