//! `/accesses`: a PSU sees which TPPs may read accounts, and withdraws this (SBX-16, §Bank-offered consent).
//!
//! The PSU is identified as at the SCA page, and no address names anybody. Invariants: a form names an access by its place in the list
//! that the bank keeps for the form's one-time token, so nobody withdraws another PSU's; the list is the gateway's word of the moment, and
//! without it there is none; no other page frames this one.

// The pages, and their texts.
mod views;
mod words;

use super::super::access;
use super::super::customer::is_identity;
use super::super::ending::Stopped;
use super::super::form_token::Owner;
use super::super::language::Language;
use super::super::stage::{AccessKey, AccessStage};
use super::super::state::Core;
use super::fields::{Fields, language};
use super::words::Words;
use axum::Form;
use axum::body::Body;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::{HeaderMap, Response, StatusCode};
use portvakt_base::terminal::complain;
use std::sync::Arc;
use uuid::Uuid;
use views::{List, Message, identification, unavailable};
use words::AccessWords;

/// `GET /accesses`: asks who the PSU is.
pub(in super::super) async fn show(
    State(core): State<Arc<Core>>,
    headers: HeaderMap,
) -> Response<Body> {
    identify(&core, language(&headers), None)
}

/// `POST /accesses`: the list, or a withdrawal.
pub(in super::super) async fn submit(
    State(core): State<Arc<Core>>,
    headers: HeaderMap,
    form: Result<Form<Fields>, FormRejection>,
) -> Response<Body> {
    let language = language(&headers);
    let outdated = Some(AccessWords::of(language).outdated);
    let Ok(Form(fields)) = form else {
        return identify(&core, language, outdated);
    };
    let Some(stage) = core.accesses.take(fields.get("form"), core.seconds()) else {
        return identify(&core, language, outdated);
    };
    match stage {
        AccessStage::Identify => {
            let identity = fields.get("identity").trim();
            if !is_identity(identity) {
                return identify(&core, language, Some(Words::of(language).number_wrong));
            }
            list(&core, language, identity, None).await
        }
        AccessStage::Listed { identity, accesses } => {
            let message = match chosen(&accesses, fields.get("withdraw")) {
                None => Message::Outdated,
                Some(chosen) => match access::withdraw(&core, chosen).await {
                    Ok(()) => Message::Withdrawn,
                    Err(stopped) => {
                        complain("portvakt-sandbox", stopped);
                        Message::NotWithdrawn
                    }
                },
            };
            list(&core, language, &identity, Some(message)).await
        }
    }
}

/// The accesses that a button names: one by its place, or all.
fn chosen<'a>(accesses: &'a [AccessKey], button: &str) -> Option<&'a [AccessKey]> {
    if button == "all" {
        return Some(accesses);
    }
    let place: usize = button.parse().ok()?;
    accesses.get(place..)?.get(..1)
}

fn identify(core: &Core, language: Language, alert: Option<&str>) -> Response<Body> {
    // Each visit has forms of its own: nobody makes the bank forget those of another.
    let owner = Owner {
        link: Uuid::new_v4().to_string(),
        person: None,
    };
    let now = core.seconds();
    let form = core.accesses.issue(owner, AccessStage::Identify, now);
    identification(language, &form, alert)
}

async fn list(
    core: &Core,
    language: Language,
    identity: &str,
    message: Option<Message>,
) -> Response<Body> {
    let accesses = match access::list(core, identity).await {
        Ok(accesses) => accesses,
        Err(stopped) => {
            let status = match stopped {
                Stopped::Control(_) => StatusCode::BAD_GATEWAY,
                Stopped::Bank(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            complain("portvakt-sandbox", stopped);
            return unavailable(language, status, message);
        }
    };
    let owner = Owner {
        link: identity.to_owned(),
        person: Some(identity.to_owned()),
    };
    let keys = accesses.iter().map(|access| access.key.clone());
    let stage = AccessStage::Listed {
        identity: identity.to_owned(),
        accesses: keys.collect(),
    };
    let form = core.accesses.issue(owner, stage, core.seconds());
    let now = core.bank().now();
    let list = List {
        language,
        now: &now,
        form: &form,
        accesses: &accesses,
        message,
    };
    list.answer()
}
