//! A control listener instead of a whole gateway: it keeps consents as the gateway does.

use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// The time of every SCA: an hour before the bank's noon.
const COMPLETED: &str = "2026-03-02T10:00:00Z";

/// The calls that a test may see.
const TOLD: [&str; 3] = ["complete", "fail", "withdraw"];

/// The listener.
#[derive(Clone)]
pub(super) struct Gateway {
    /// The answer to `/sca/read`, for every request except "old".
    pending: Arc<Mutex<Value>>,
    /// The calls that it got.
    pub(super) told: Arc<Mutex<Vec<(&'static str, Value)>>>,
    /// The call that it refuses, and the answer.
    pub(super) fault: Arc<Mutex<Value>>,
    /// What it knows of each PSU, by PSU-ID; in a context also the agreement, which no answer has.
    pub(super) known: Arc<Mutex<Value>>,
}

impl Gateway {
    pub(super) fn new(pending: Arc<Mutex<Value>>) -> Self {
        Self {
            pending,
            told: Arc::default(),
            fault: Arc::default(),
            known: Arc::new(Mutex::new(json!({}))),
        }
    }

    pub(super) fn router(&self) -> Router {
        let call = |name: &'static str| {
            let gateway = self.clone();
            post(move |Json(asked): Json<Value>| async move { gateway.answer(name, &asked) })
        };
        Router::new()
            .route("/sca/read", call("read"))
            .route("/sca/complete", call("complete"))
            .route("/sca/fail", call("fail"))
            .route("/psu/read", call("psu-read"))
            .route("/psu/withdraw", call("withdraw"))
    }

    fn answer(&self, name: &'static str, asked: &Value) -> (StatusCode, Json<Value>) {
        if TOLD.contains(&name) {
            self.told.lock().unwrap().push((name, asked.clone()));
        }
        let fault = self.fault.lock().unwrap().clone();
        if fault["call"] == name {
            return refusal(fault);
        }
        let unknown = || json!({"status": 404, "reason": "psu-unknown"});
        let done = match name {
            "read" if asked["request"] == "old" => {
                return refusal(json!({"status": 410, "reason": "sca-request-expired"}));
            }
            "read" => self.pending.lock().unwrap().clone(),
            "psu-read" => match self.psu(asked) {
                Some(psu) => psu,
                None => return refusal(unknown()),
            },
            "withdraw" => match self.withdraw(asked) {
                Some(withdrawn) => json!({"withdrawn": withdrawn, "consents_left": 0}),
                None => return refusal(unknown()),
            },
            "complete" => {
                self.complete(asked);
                json!({"redirect_uri": "https://tpp.example/back"})
            }
            _ => json!({"redirect_uri": "https://tpp.example/back"}),
        };
        (StatusCode::OK, Json(done))
    }

    fn psu(&self, asked: &Value) -> Option<Value> {
        let known = self.known.lock().unwrap();
        let mut psu = known.get(asked["psu_id"].as_str()?)?.clone();
        for context in psu["contexts"].as_array_mut()? {
            context.as_object_mut()?.remove("agreement");
        }
        Some(psu)
    }

    fn complete(&self, asked: &Value) {
        let mut known = self.known.lock().unwrap();
        let psus = known.as_object_mut().unwrap();
        let psu = psus.entry(asked["psu_id"].as_str().unwrap());
        let psu = psu.or_insert_with(|| json!({"contexts": []}));
        psu["last_sca"] = COMPLETED.into();
        if asked["consent"] != true {
            return;
        }
        let agreement = &asked["psu_corporate_id"];
        let contexts = psu["contexts"].as_array_mut().unwrap();
        contexts.retain(|context| context["agreement"] != *agreement);
        let accounts = asked["accounts"].as_array().unwrap().len();
        contexts.push(
            json!({"context": asked["context"], "agreement": agreement, "last_sca": COMPLETED,
            "consent": {"given": COMPLETED, "accounts": accounts}}),
        );
    }

    /// The number of consents that ended; `None` if it does not know the PSU.
    fn withdraw(&self, asked: &Value) -> Option<usize> {
        let mut known = self.known.lock().unwrap();
        let psu = known.get_mut(asked["psu_id"].as_str()?)?;
        let mut ended = 0;
        for context in psu["contexts"].as_array_mut()? {
            if context["agreement"] == asked["psu_corporate_id"] && !context["consent"].is_null() {
                context["consent"] = Value::Null;
                ended += 1;
            }
        }
        Some(ended)
    }
}

fn refusal(fault: Value) -> (StatusCode, Json<Value>) {
    let status = u16::try_from(fault["status"].as_u64().unwrap()).unwrap();
    (status.try_into().unwrap(), Json(fault))
}
