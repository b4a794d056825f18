//! The bank's SCA page (SBX-3): shows the TPP and its request, asks for a mocked national identity number, then for approval of
//! accounts or payments.
//!
//! The page needs no script and no cookie. Each form contains a one-time token, and the bank keeps what was entered on earlier
//! pages ([`Stage`]). Invariants: an SCA is completed only for the PSU of the entered number, and a payment only by its payer;
//! neither the request's token nor the number is ever logged or in an address of the bank's own. Deliberately not here:
//! authentication. The number is trusted.

// What a browser sends.
mod fields;
// The subject of the SCA.
mod subject;
// Contexts and approvals.
mod approval;
// The pages for the PSU, and their texts.
mod views;
mod words;
// The page of accesses.
pub(super) mod accesses;

use super::bank::{Bank, BankFault};
use super::control::{ControlFault, EXPIRED, Failure, Pending};
use super::customer::is_identity;
use super::ending::{self, Stopped};
use super::form_token::Owner;
use super::grants::Grants;
use super::html;
use super::language::Language;
use super::request_key::RequestKey;
use super::stage::Stage;
use super::state::Core;
use approval::{Context, contexts};
use axum::Form;
use axum::body::Body;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, Response, StatusCode};
use fields::{Fields, language};
use portvakt_base::terminal::complain;
use std::sync::Arc;
use subject::Subject;
use views::{View, WITHOUT_APP, notice};
use words::Words;

/// The time that the simulated app takes to confirm, in seconds.
const APP_CONFIRMS_AFTER: u64 = 2;

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

/// The payment or the basket is gone, by an initialisation.
const GONE: Failure = Failure {
    status: 404,
    code: "RESOURCE_UNKNOWN",
    message: "The bank has no such payment or basket.",
};

/// No payment waits to be signed: each was signed, cancelled in the bank's own channel, or refused.
const NOT_SIGNABLE: Failure = Failure {
    status: 409,
    code: "CONFLICT",
    message: "The payment was signed, cancelled or refused before.",
};

/// The payment belongs to another PSU.
const NOT_THE_PAYER: Failure = Failure {
    status: 401,
    code: "PSU_CREDENTIALS_INVALID",
    message: "Somebody else than the payer authenticated.",
};

/// `GET /sca?request=TOKEN`: the target of the SCA link.
pub(super) async fn show(
    State(core): State<Arc<Core>>,
    headers: HeaderMap,
    query: Result<Query<Fields>, QueryRejection>,
) -> Response<Body> {
    let language = language(&headers);
    let Ok(Query(query)) = query else {
        let answer = invalid(language, StatusCode::BAD_REQUEST);
        return core.frames.open(answer);
    };
    let shown = Visit::open(&core, language, query.get("request")).await;
    let shown = match shown {
        Ok(Opened::Ended(away)) => Ok(away),
        Ok(Opened::Visit(visit)) => visit.identify(None),
        Err(stopped) => Err(stopped),
    };
    let answer = shown.unwrap_or_else(|stopped| explain(language, stopped));
    core.frames.open(answer)
}

/// `POST /sca`: the next step.
pub(super) async fn submit(
    State(core): State<Arc<Core>>,
    headers: HeaderMap,
    form: Result<Form<Fields>, FormRejection>,
) -> Response<Body> {
    let language = language(&headers);
    let Ok(Form(fields)) = form else {
        let answer = invalid(language, StatusCode::BAD_REQUEST);
        return core.frames.open(answer);
    };
    let answer = match Visit::open(&core, language, fields.get("request")).await {
        Ok(Opened::Ended(away)) => Ok(away),
        Ok(Opened::Visit(visit)) => visit.step(&fields).await,
        Err(stopped) => Err(stopped),
    };
    let answer = answer.unwrap_or_else(|stopped| explain(language, stopped));
    core.frames.open(answer)
}

/// A request as a browser finds it.
enum Opened<'a> {
    /// Already approved: the browser goes to the TPP.
    Ended(Response<Body>),
    /// Still pending.
    Visit(Box<Visit<'a>>),
}

/// One step of a PSU.
struct Visit<'a> {
    core: &'a Core,
    language: Language,
    request: &'a str,
    key: RequestKey,
    pending: Pending,
    subject: Subject,
}

impl<'a> Visit<'a> {
    async fn open(
        core: &'a Core,
        language: Language,
        request: &'a str,
    ) -> Result<Opened<'a>, Stopped> {
        let key = RequestKey::of(request);
        // A button that was pressed twice, or a browser that comes back after a crash: the approval is finished, not made again.
        if let Some(uri) = ending::finish(core, &key).await? {
            return Ok(Opened::Ended(to_tpp(language, &uri)));
        }
        let pending = core.control.read(request).await?;
        let subject = Subject::of(&core.bank(), &pending)?;
        Ok(Opened::Visit(Box::new(Self {
            core,
            language,
            request,
            key,
            pending,
            subject,
        })))
    }

    async fn step(&self, fields: &Fields) -> Result<Response<Body>, Stopped> {
        let now = self.core.seconds();
        let words = Words::of(self.language);
        let form = self.core.forms.take(fields.get("form"), now);
        let Some((_, stage)) = form.filter(|(key, _)| *key == self.key) else {
            return self.identify(Some(words.outdated));
        };
        if fields.get("step") == "refuse" {
            let failure = match self.subject {
                Subject::Payments { .. } => PAYMENT_REFUSED,
                _ => REFUSED,
            };
            return self.fail(failure).await;
        }
        match stage {
            Stage::Identify => {
                let identity = fields.get("identity").trim();
                if !is_identity(identity) {
                    return self.identify(Some(words.number_wrong));
                }
                if self.subject == Subject::Unknown {
                    return self.fail(GONE).await;
                }
                if !self.subject.may_be_ended_by(identity) {
                    return self.fail(NOT_THE_PAYER).await;
                }
                if self.subject.is_settled() {
                    return self.fail(NOT_SIGNABLE).await;
                }
                if self.pending.redirect_preferred {
                    return self.choose(identity).await;
                }
                self.app(identity, now, None)
            }
            // §Optimised biometric flow: without the app, the flow is the default one.
            Stage::App { identity, .. } if fields.get("step") == WITHOUT_APP => {
                self.choose(&identity).await
            }
            Stage::App { identity, since } if now < since.saturating_add(APP_CONFIRMS_AFTER) => {
                self.app(&identity, since, Some(words.app_waits))
            }
            Stage::App { identity, .. } => self.choose(&identity).await,
            Stage::Context { identity } => self.confirm(&identity, fields.get("context")).await,
            Stage::Approve { identity, context } => self.approve(&identity, &context, fields).await,
        }
    }

    fn identify(&self, alert: Option<&str>) -> Result<Response<Body>, Stopped> {
        let form = self.form(Stage::Identify);
        Ok(self.view().identify(&form, alert))
    }

    fn app(
        &self,
        identity: &str,
        since: u64,
        alert: Option<&str>,
    ) -> Result<Response<Body>, Stopped> {
        let identity = identity.to_owned();
        let form = self.form(Stage::App { identity, since });
        Ok(self.view().app(&form, alert))
    }

    /// Asks for the context where there is a choice.
    async fn choose(&self, identity: &str) -> Result<Response<Body>, Stopped> {
        let grants = self.grants(identity).await?;
        let contexts = self.contexts(identity, &grants)?;
        match contexts.as_slice() {
            [] => self.identify(Some(Words::of(self.language).context_none)),
            [only] => Ok(self.ask(identity, only)),
            many => Ok(self.ask_context(identity, many, None)),
        }
    }

    /// Asks for approval in the chosen context.
    async fn confirm(&self, identity: &str, chosen: &str) -> Result<Response<Body>, Stopped> {
        let grants = self.grants(identity).await?;
        let contexts = self.contexts(identity, &grants)?;
        let words = Words::of(self.language);
        Ok(match contexts.iter().find(|one| one.value() == chosen) {
            Some(context) => self.ask(identity, context),
            None => self.ask_context(identity, &contexts, Some(words.context_wrong)),
        })
    }

    fn ask_context(
        &self,
        identity: &str,
        contexts: &[Context],
        alert: Option<&str>,
    ) -> Response<Body> {
        let identity = identity.to_owned();
        let form = self.form(Stage::Context { identity });
        self.view().context(&form, alert, contexts)
    }

    fn ask(&self, identity: &str, context: &Context) -> Response<Body> {
        let form = self.form(Stage::Approve {
            identity: identity.to_owned(),
            context: context.value(),
        });
        let today = self.core.bank().today();
        self.view().approve(&form, context, today)
    }

    async fn approve(
        &self,
        identity: &str,
        context: &str,
        fields: &Fields,
    ) -> Result<Response<Body>, Stopped> {
        if self.subject == Subject::Unknown {
            return self.fail(GONE).await;
        }
        if self.subject.is_settled() {
            return self.fail(NOT_SIGNABLE).await;
        }
        // An approval does not depend on what was open, and waits for a gateway that is unavailable.
        let contexts = self.contexts(identity, &Grants::default())?;
        let Some(context) = contexts.iter().find(|one| one.value() == context) else {
            return self.identify(Some(Words::of(self.language).outdated));
        };
        if let Some(name) = &self.pending.tpp_name {
            self.core.bank().name_tpp(&self.pending.tpp, name)?;
        }
        let ticked = fields.all("account");
        let approval = context.approve(self.request, &self.pending, &self.subject, ticked);
        match ending::approve(self.core, &self.key, &approval).await {
            Ok(None) => self.fail(NOT_SIGNABLE).await,
            Ok(Some(uri)) => self.end(Ok(uri)),
            Err(stopped) => self.end(Err(stopped)),
        }
    }

    async fn fail(&self, failure: Failure) -> Result<Response<Body>, Stopped> {
        let failed = self.core.control.fail(self.request, failure).await;
        self.end(failed.map_err(Stopped::from))
    }

    /// Sends the browser to the TPP.
    fn end(&self, ended: Result<String, Stopped>) -> Result<Response<Body>, Stopped> {
        Ok(to_tpp(self.language, &ended?))
    }

    /// What the TPP may read today, by the gateway's word: nothing where the page does not show it.
    async fn grants(&self, identity: &str) -> Result<Grants, Stopped> {
        if !self.pending.asks_consent {
            return Ok(Grants::default());
        }
        let tpp = &self.pending.tpp;
        let psu = self.core.bank().atomically(|bank| {
            let customer = bank.customer(identity)?;
            bank.psu_id(tpp, &customer)
        })?;
        Ok(self.core.control.grants(tpp, psu).await?)
    }

    fn contexts(&self, identity: &str, grants: &Grants) -> Result<Vec<Context>, BankFault> {
        let read = |bank: &Bank| contexts(bank, &self.pending, &self.subject, identity, grants);
        self.core.bank().atomically(read)
    }

    fn form(&self, stage: Stage) -> String {
        let now = self.core.seconds();
        let owner = Owner {
            link: self.key.text().to_owned(),
            person: stage.identity().map(str::to_owned),
        };
        self.core.forms.issue(owner, (self.key.clone(), stage), now)
    }

    fn view(&self) -> View<'_> {
        View {
            language: self.language,
            zone: self.core.bank().now().time_zone().clone(),
            request: self.request,
            pending: &self.pending,
            subject: &self.subject,
        }
    }
}

/// To the TPP; or a page that says that the SCA has ended, where nobody knows its redirect URI any more.
fn to_tpp(language: Language, uri: &str) -> Response<Body> {
    let words = Words::of(language);
    let away = Some(uri).filter(|uri| !uri.is_empty());
    away.and_then(html::redirect)
        .unwrap_or_else(|| notice(language, StatusCode::OK, words.ended_title, words.ended))
}

fn invalid(language: Language, status: StatusCode) -> Response<Body> {
    let words = Words::of(language);
    notice(language, status, words.invalid_title, words.invalid)
}

/// To the TPP, where the gateway ended the SCA as failed and says so to the TPP. Otherwise a page with the reason, from which the PSU
/// returns to the TPP by themselves.
fn explain(language: Language, stopped: Stopped) -> Response<Body> {
    let words = Words::of(language);
    match stopped {
        Stopped::Control(ControlFault::Refused {
            redirect_uri: Some(uri),
            ..
        }) => to_tpp(language, &uri),
        Stopped::Control(ControlFault::Refused { status, reason, .. }) if status < 500 => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
            match reason.as_str() {
                EXPIRED => notice(language, status, words.expired_title, words.expired),
                "sca-finished" => notice(language, status, words.ended_title, words.ended),
                _ => invalid(language, status),
            }
        }
        Stopped::Control(fault) => {
            complain("portvakt-sandbox", fault);
            let status = StatusCode::BAD_GATEWAY;
            notice(language, status, words.gateway_title, words.gateway)
        }
        Stopped::Bank(fault) => {
            complain("portvakt-sandbox", fault);
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            notice(language, status, words.gateway_title, words.broken)
        }
    }
}

#[cfg(test)]
mod tests;
