//! A client of the gateway's control listener, as the bank's SCA service has one.
//!
//! Invariant: no URL and no error of this module contains a token, a PSU-ID or a national identity number.

use super::answer::SYSTEM;
use jiff::Timestamp;
use portvakt::tools::tpp::{CallOptions, SignedRequest, TppAnswer, call};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// The reason of a refused token that is too old.
pub(super) const EXPIRED: &str = "sca-request-expired";

/// The address of the control listener.
#[derive(Debug)]
pub(super) struct Control {
    base_url: String,
}

/// The subject of an SCA: the answer of `/sca/read`, as far as the page needs it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Pending {
    /// The TPP.
    pub(super) tpp: String,
    /// Its name in its certificate, if it has one.
    pub(super) tpp_name: Option<String>,
    /// The path of the payment or basket to sign, if there is one.
    pub(super) resource: Option<String>,
    /// Whether the SCA includes a consent to account information.
    pub(super) asks_consent: bool,
    /// PRIVATE or CORPORATE, if the TPP chose.
    pub(super) context: Option<String>,
    /// The agreement, if the TPP chose.
    pub(super) psu_corporate_id: Option<String>,
    /// False if the TPP asks for authentication in the bank's app.
    pub(super) redirect_preferred: bool,
    /// The time limit, in the form of RFC 3339.
    expires: Option<String>,
}

impl Pending {
    /// The time limit.
    pub(super) fn expires(&self) -> Option<Timestamp> {
        self.expires.as_ref()?.parse().ok()
    }
}

/// The reason why an SCA cannot continue.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ControlFault {
    /// The gateway is unavailable, or its answer is unreadable.
    #[error("the gateway's control listener: {0}")]
    Away(String),
    /// The gateway refused.
    #[error("the gateway's control listener refuses: {status} {reason}")]
    Refused {
        /// HTTP status code.
        status: u16,
        /// The stable name of the cause.
        reason: String,
        /// The redirect URI for the browser, if the SCA has ended.
        redirect_uri: Option<String>,
    },
}

/// The failure of an SCA, for the TPP (§Redirect after failed SCA).
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    /// HTTP status code.
    pub(super) status: u16,
    /// One of the interface's codes.
    pub(super) code: &'static str,
    /// Text for the TPP.
    pub(super) message: &'static str,
}

impl ControlFault {
    /// A token that is too old.
    pub(super) fn expired() -> Self {
        Self::Refused {
            status: 410,
            reason: EXPIRED.into(),
            redirect_uri: None,
        }
    }

    /// Whether a repetition would be refused too. Other refusals are faults of a configuration, or of a moment.
    pub(super) const fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                status: 400 | 404 | 409 | 410,
                ..
            }
        )
    }
}

impl Control {
    /// A client of the listener at this URL, `http://host:port`.
    pub(super) fn new(base_url: &str) -> Self {
        Self {
            base_url: base_url.to_owned(),
        }
    }

    /// Reads the subject of a pending SCA.
    pub(super) async fn read(&self, request: &str) -> Result<Pending, ControlFault> {
        let answer = self.post("/sca/read", &json!({"request": request})).await?;
        serde_json::from_value(answer).map_err(|fault| ControlFault::Away(fault.to_string()))
    }

    /// Reports a completed SCA; returns the redirect URI.
    pub(super) async fn complete(&self, completion: &Value) -> Result<String, ControlFault> {
        redirect_uri(&self.post("/sca/complete", completion).await?)
    }

    /// Reports a failed SCA; returns the redirect URI.
    pub(super) async fn fail(
        &self,
        request: &str,
        failure: Failure,
    ) -> Result<String, ControlFault> {
        let failed = json!({
            "request": request,
            "system": SYSTEM,
            "status": failure.status,
            "code": failure.code,
            "message": failure.message,
        });
        redirect_uri(&self.post("/sca/fail", &failed).await?)
    }

    /// Reports that the PSU withdrew a consent; returns the number of consents that ended.
    pub(super) async fn withdraw(
        &self,
        tpp: &str,
        psu: Uuid,
        agreement: Option<Uuid>,
    ) -> Result<u64, ControlFault> {
        let mut withdrawal = json!({"tpp": tpp, "psu_id": psu.to_string(), "what": "consent"});
        if let (Some(withdrawal), Some(id)) = (withdrawal.as_object_mut(), agreement) {
            withdrawal.insert("psu_corporate_id".into(), id.to_string().into());
        }
        let answer = self.post("/psu/withdraw", &withdrawal).await?;
        let withdrawn = answer.get("withdrawn").and_then(Value::as_u64);
        withdrawn.ok_or_else(|| ControlFault::Away("it did not say what was withdrawn".into()))
    }

    /// When this PSU last completed an SCA for this TPP in this kind of context, as the gateway knows it.
    pub(super) async fn last_sca(
        &self,
        tpp: &str,
        psu: Uuid,
        agreement: Option<Uuid>,
    ) -> Result<Option<Timestamp>, ControlFault> {
        let asked = json!({"tpp": tpp, "psu_id": psu.to_string()});
        let known = match self.post("/psu/read", &asked).await {
            Err(ControlFault::Refused { status: 404, .. }) => return Ok(None),
            known => known?,
        };
        let context = agreement.map_or("PRIVATE", |_| "CORPORATE");
        let contexts = known.get("contexts").and_then(Value::as_array);
        let text = |one: &Value, name: &str| one.get(name)?.as_str().map(str::to_owned);
        let same = contexts
            .into_iter()
            .flatten()
            .filter(|one| text(one, "context").as_deref() == Some(context));
        Ok(same
            .filter_map(|one| text(one, "last_sca")?.parse().ok())
            .max())
    }

    /// The keys that verify assertions: a JWK set (RFC 7517).
    pub(super) async fn published_keys(&self) -> Result<Value, ControlFault> {
        self.ask("GET", "/.well-known/jwks.json", None).await
    }

    /// A call with members; returns those of its answer.
    pub(super) async fn post(&self, target: &str, body: &Value) -> Result<Value, ControlFault> {
        self.ask("POST", target, Some(body)).await
    }

    async fn ask(
        &self,
        method: &str,
        target: &str,
        body: Option<&Value>,
    ) -> Result<Value, ControlFault> {
        let json = ("Content-Type".to_owned(), "application/json".to_owned());
        let call_of = SignedRequest {
            method: method.into(),
            target: target.into(),
            headers: body.map(|_| json).into_iter().collect(),
            body: body.map(|body| body.to_string().into_bytes()),
            signing_string: String::new(),
        };
        let answer = call(&call_of, &self.base_url, &CallOptions::default()).await;
        judge(&answer.map_err(|fault| ControlFault::Away(fault.to_string()))?)
    }
}

fn judge(answer: &TppAnswer) -> Result<Value, ControlFault> {
    let body: Value = serde_json::from_slice(&answer.body)
        .map_err(|fault| ControlFault::Away(fault.to_string()))?;
    if answer.is_success() {
        return Ok(body);
    }
    let text = |name| body.get(name)?.as_str().map(str::to_owned);
    Err(ControlFault::Refused {
        status: answer.status,
        reason: text("reason").unwrap_or_default(),
        redirect_uri: text("redirect_uri"),
    })
}

fn redirect_uri(answer: &Value) -> Result<String, ControlFault> {
    let uri = answer.get("redirect_uri").and_then(Value::as_str);
    uri.map(str::to_owned)
        .ok_or_else(|| ControlFault::Away("it named no redirect_uri".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Result<Value, ControlFault> {
        judge(&TppAnswer {
            status,
            headers: Vec::new(),
            body: body.into(),
        })
    }

    #[test]
    fn a_refusal_keeps_its_words_and_where_the_browser_goes() {
        assert_eq!(answer(200, "{}"), Ok(json!({})));
        let refused = answer(
            409,
            r#"{"reason": "m", "redirect_uri": "https://t.example/"}"#,
        );
        let expected = ControlFault::Refused {
            status: 409,
            reason: "m".into(),
            redirect_uri: Some("https://t.example/".into()),
        };
        assert_eq!(refused, Err(expected));
        assert!(matches!(answer(502, "<html>"), Err(ControlFault::Away(_))));
        assert!(redirect_uri(&json!({})).is_err());
    }
}
