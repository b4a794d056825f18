//! The bank's SCA page (SBX-3): shows the TPP and its request, asks for a mocked national identity number, then for approval of
//! accounts or payments.
//!
//! The page needs no script and keeps no state: each step posts all fields again, and the number is only in bodies. The gateway's
//! control listener ends the SCA and returns the redirect URI. Invariants: an SCA is completed only for the PSU of the entered
//! number, and a payment only by its payer; the request's token is never logged. Deliberately not here: authentication. The
//! number is trusted.

// Approvals and their effects.
mod approval;
// The pages for the PSU.
mod views;

use super::bank::{Bank, BankFault};
use super::control::{ControlFault, Failure, Pending};
use super::customer::is_identity;
use super::{Core, html};
use approval::{Subject, contexts};
use axum::Form;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{Response, StatusCode};
use std::sync::Arc;
use views::View;

/// The PSU refused a payment.
const PAYMENT_REFUSED: Failure = Failure {
    status: 400,
    code: "PAYMENT_FAILED",
    message: "The PSU did not sign the payment.",
};

/// The PSU refused.
const REFUSED: Failure = Failure {
    status: 403,
    code: "FORBIDDEN",
    message: "The PSU refused.",
};

/// The payment belongs to another PSU.
const NOT_THE_PAYER: Failure = Failure {
    status: 401,
    code: "PSU_CREDENTIALS_INVALID",
    message: "Somebody else than the payer authenticated.",
};

/// The fields of a form, in order. Names may repeat.
#[derive(Debug, serde::Deserialize)]
#[serde(transparent)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(known, _)| known == name);
        named.map(|(_, value)| value.as_str())
    }

    fn get<'a>(&'a self, name: &'a str) -> &'a str {
        self.all(name).next().unwrap_or_default()
    }
}

/// `GET /sca?request=TOKEN`: the target of the SCA link.
pub(super) async fn show(
    State(core): State<Arc<Core>>,
    Query(query): Query<Fields>,
) -> Response<Body> {
    let request = query.get("request");
    let shown = async {
        let pending = core.control.read(request).await?;
        let subject = Subject::of(&core.bank(), &pending)?;
        Ok::<_, Stopped>(View::new(request, &pending, &subject).identify(false))
    };
    shown.await.unwrap_or_else(stopped)
}

/// `POST /sca`: the next step.
pub(super) async fn submit(
    State(core): State<Arc<Core>>,
    Form(fields): Form<Fields>,
) -> Response<Body> {
    step(&core, &fields).await.unwrap_or_else(stopped)
}

async fn step(core: &Core, fields: &Fields) -> Result<Response<Body>, Stopped> {
    let request = fields.get("request");
    let pending = core.control.read(request).await?;
    let subject = Subject::of(&core.bank(), &pending)?;
    let view = View::new(request, &pending, &subject);
    let identity = fields.get("identity").trim();
    match fields.get("step") {
        "refuse" => {
            let failure = match subject {
                Subject::Payments { .. } => PAYMENT_REFUSED,
                _ => REFUSED,
            };
            end(core.control.fail(request, failure).await)
        }
        _ if !is_identity(identity) => Ok(view.identify(true)),
        _ if !subject.may_be_ended_by(identity) => {
            end(core.control.fail(request, NOT_THE_PAYER).await)
        }
        "approve" => approve(core, &pending, &subject, fields).await,
        _ => {
            let contexts = in_ledger(core, |bank| contexts(bank, &pending, &subject, identity))?;
            Ok(view.choose(identity, &contexts))
        }
    }
}

/// Reports to the gateway first, which may refuse, and then updates the bank.
async fn approve(
    core: &Core,
    pending: &Pending,
    subject: &Subject,
    fields: &Fields,
) -> Result<Response<Body>, Stopped> {
    let (request, identity) = (fields.get("request"), fields.get("identity").trim());
    let contexts = in_ledger(core, |bank| contexts(bank, pending, subject, identity))?;
    let chosen = contexts
        .iter()
        .find(|context| context.value() == fields.get("context"));
    let Some(context) = chosen else {
        let view = View::new(request, pending, subject);
        return Ok(view.choose(identity, &contexts));
    };
    let ticked = fields.all("account");
    let approval = context.approve(pending, ticked);
    let uri = core.control.complete(&approval.completion(request)).await;
    let is_withdrawn = uri.is_ok() && in_ledger(core, |bank| approval.carry_out(bank, subject))?;
    if is_withdrawn {
        let (psu, agreement) = approval.whose();
        core.control.withdraw(&pending.tpp, psu, agreement).await?;
    }
    end(uri)
}

/// Ends the SCA, completed or failed.
fn end(uri: Result<String, ControlFault>) -> Result<Response<Body>, Stopped> {
    let uri = match uri {
        Err(ControlFault::Refused {
            redirect_uri: Some(uri),
            ..
        }) => uri,
        other => other?,
    };
    let away = || ControlFault::Away("its redirect_uri is no header value".into());
    Ok(html::redirect(&uri).ok_or_else(away)?)
}

/// One transaction of the bank.
fn in_ledger<T>(
    core: &Core,
    work: impl FnOnce(&Bank) -> Result<T, BankFault>,
) -> Result<T, BankFault> {
    core.bank().atomically(work)
}

/// The reason why an SCA cannot continue.
#[derive(Debug)]
enum Stopped {
    /// The gateway is unavailable, or refuses.
    Control(ControlFault),
    /// The ledger failed.
    Bank(BankFault),
}

impl From<ControlFault> for Stopped {
    fn from(fault: ControlFault) -> Self {
        Self::Control(fault)
    }
}

impl From<BankFault> for Stopped {
    fn from(fault: BankFault) -> Self {
        Self::Bank(fault)
    }
}

/// A page with the reason. There is no redirect, so the PSU returns to the TPP by themselves.
fn stopped(fault: Stopped) -> Response<Body> {
    match fault {
        Stopped::Control(ControlFault::Refused {
            status, message, ..
        }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            views::notice(status, &message)
        }
        Stopped::Bank(fault) => {
            eprintln!("portvakt-sandbox: {fault}");
            let text = "The bank cannot answer. Try again in a moment.";
            views::notice(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
        Stopped::Control(ControlFault::Away(why)) => {
            eprintln!("portvakt-sandbox: the gateway's control listener: {why}");
            let text = "The gateway does not answer. Try again in a moment.";
            views::notice(StatusCode::BAD_GATEWAY, text)
        }
    }
}

#[cfg(test)]
mod tests;
