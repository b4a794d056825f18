use super::super::bank::tests::bank;
use super::super::control::Control;
use super::super::journal::Journal;
use super::super::payment::order::Ordered;
use super::super::seed::WITH_AGREEMENT;
use super::super::{Core, Trust, router};
use crate::demo::form::Form;
use axum::routing::post;
use axum::{Json, Router};
use portvakt::tools::tpp::{CallOptions, SignedRequest, TppAnswer, call};
use serde_json::{Value, json};
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
        let told = Arc::new(Mutex::new(Vec::new()));
        let read = move |Json(asked): Json<Value>| async move {
            if asked["request"] == "old" {
                let body = json!({"status": 410, "message": "It has <expired>."});
                return (axum::http::StatusCode::GONE, Json(body));
            }
            (
                axum::http::StatusCode::OK,
                Json(pending.lock().unwrap().clone()),
            )
        };
        let tell = |path: &'static str| {
            let told = Arc::clone(&told);
            post(move |Json(body): Json<Value>| async move {
                told.lock().unwrap().push((path, body));
                Json(json!({"redirect_uri": "https://tpp.example/back"}))
            })
        };
        let control = Router::new()
            .route("/sca/read", post(read))
            .route("/sca/complete", tell("complete"))
            .route("/sca/fail", tell("fail"))
            .route("/psu/withdraw", tell("withdraw"));
        let control = Control::new(&serve(control).await);
        let core = Arc::new(Core {
            journal: Journal::default(),
            bank: Mutex::new(bank().0),
            control,
            trust: Trust::Anyone,
        });
        Self {
            page: serve(router(Arc::clone(&core))).await,
            core,
            told,
        }
    }

    async fn ask(&self, method: &str, target: &str, body: Option<String>) -> TppAnswer {
        let kind = "application/x-www-form-urlencoded".to_owned();
        let request = SignedRequest {
            method: method.into(),
            target: target.into(),
            headers: vec![("Content-Type".into(), kind)],
            body: body.map(String::into_bytes),
            signing_string: String::new(),
        };
        let answer = call(&request, &self.page, &CallOptions::default()).await;
        answer.unwrap()
    }

    async fn open(&self) -> Form {
        form(&self.ask("GET", "/sca?request=t%2Bk", None).await)
    }

    async fn press(&self, form: &Form, step: &str) -> TppAnswer {
        let body = form.press(("step", step));
        self.ask("POST", "/sca", Some(body)).await
    }

    /// Submits the number; returns the page for approval.
    async fn identify(&self, identity: &str) -> TppAnswer {
        let mut form = self.open().await;
        assert!(form.fill("identity", identity));
        self.press(&form, "identify").await
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
    json!({"tpp": TPP, "operation": "o", "resource": resource, "asks_consent": asks_consent, "context": null,
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
    assert_redirected(&stage.press(&form, "approve").await);
    let psu = stage.psu();
    let said = json!({"request": "t+k", "psu_id": psu, "context": "PRIVATE", "consent": true, "accounts": accounts});
    assert_eq!(stage.told(), [("complete", said)]);

    // The accounts are ticked the next time, and unticking them withdraws the consent.
    let mut form = form_of(&stage, KARI).await;
    assert_eq!(form.ticked().len(), 3);
    form.tick("account", false);
    assert_redirected(&stage.press(&form, "approve").await);
    let said = json!({"request": "t+k", "psu_id": psu, "context": "PRIVATE", "consent": false});
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
    let mut form = form_of(&stage, WITH_AGREEMENT).await;
    assert_eq!(form.ticked(), ["PRIVATE"]);
    let agreement = form.values("context")[1].to_owned();
    form.choose(&agreement);
    // All five are ticked; accounts of the other context are ignored.
    assert_eq!(form.tick("account", true), 5);
    assert_redirected(&stage.press(&form, "approve").await);
    let (_, said) = stage.told().remove(0);
    assert_eq!(said["context"], "CORPORATE");
    assert_eq!(said["psu_corporate_id"], agreement.as_str());
    assert_eq!(said["accounts"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn what_the_tpp_chose_is_not_asked_again() {
    let mut asked = pending(true, None);
    asked["context"] = "CORPORATE".into();
    let stage = Stage::new(asked).await;
    let form = form_of(&stage, WITH_AGREEMENT).await;
    assert_eq!(form.values("context").len(), 1);
    assert_ne!(form.values("context"), ["PRIVATE"]);
    // A private customer can then choose nothing.
    let answer = stage.identify(KARI).await;
    assert!(text(&answer).contains("You have no access"));
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
        html.contains("NOK 10.00") && html.contains("&lt;b&gt;Ola"),
        "{html}"
    );
    assert_redirected(&stage.press(&form(&answer), "approve").await);
    let psu = stage.psu();
    let said = json!({"request": "t+k", "psu_id": psu, "context": "PRIVATE"});
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
    assert_eq!(text(&answer).matches("NOK 10.00").count(), 2);
    assert_redirected(&stage.press(&form(&answer), "approve").await);
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

#[tokio::test]
async fn a_request_that_is_over_leads_nowhere() {
    let stage = Stage::new(pending(true, None)).await;
    let answer = stage.ask("GET", "/sca?request=old", None).await;
    assert_eq!(answer.status, 410);
    assert!(text(&answer).contains("It has &lt;expired&gt;."));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
}
