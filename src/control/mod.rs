//! The internal listener, for the bank's own services: the end of an SCA, PSUs, readiness, metrics.
//!
//! It runs beside the gateway in the same process. Invariants: whoever can reach it from another machine has shown a
//! bearer token or a client certificate (config sees to that); no PSU-ID stands in a path, a query, a log line or an
//! error; what is answered as done is durable. docs/sca.md is its manual. Deliberately not here: what a completed SCA
//! permits, which is admission's, and the bank's SCA page itself.

// The parts of the gateway that answers come from.
mod context;

// Reading a JSON object member by member, every fault at once; answering with one.
mod fault;
mod members;

// What is asked: the end of an SCA, PSUs, how the gateway is.
mod psu;
mod sca;
mod watch;

// What asks for the configuration to be read anew.
mod reload;

// How it is asked: listening, and who may ask.
mod doors;
mod guard;
mod places;

// PSUs of before, from a file: the same records as /psu/bind.
pub mod import;

pub use context::{ControlContext, Reload};
pub use doors::{Bound, StopSignal};

use crate::in_use::InUse;
use axum::{
    Extension, Router,
    body::{Body, HttpBody},
    extract::{Request, State},
    http::header,
    middleware,
    response::Response,
    routing::{get, post},
};
use context::{Call, MAX_BODY};
use fault::ApiFault;
use members::Members;
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// How long a body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(5);

/// How long an answer may take. The store answers in milliseconds, or is unavailable.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The listener, before it listens.
#[derive(Debug)]
pub struct Listener {
    bound: Bound,
    context: Arc<ControlContext>,
}

impl Listener {
    /// A listener where `bound` is, which answers from `context`.
    pub const fn new(bound: Bound, context: Arc<ControlContext>) -> Self {
        Self { bound, context }
    }

    /// Answers until `closing`. From `stopping` on `/readyz` answers 503: while requests finish, the bank's SCA service may still
    /// have to report the end of an SCA.
    pub async fn run(self, stopping: StopSignal, closing: StopSignal) {
        let context = self.context;
        let routes = routes(Arc::clone(&context), stopping);
        tokio::select! {
            served = doors::serve(self.bound, &context.current, routes, closing) => {
                if let Err(error) = served {
                    tracing::error!(%error, "the control listener failed");
                }
            }
            () = reload::at_hangup(&context) => {}
            () = reload::when_changed(&context) => {}
        }
    }
}

/// Everything that is answered. The guard stands in front of all of it.
fn routes(context: Arc<ControlContext>, stopping: StopSignal) -> Router {
    let watched = Router::new()
        .route("/livez", get(watch::live))
        .route("/readyz", get(watch::ready))
        .route("/metrics", get(watch::metrics))
        .route("/openapi.json", get(watch::openapi))
        .route("/.well-known/jwks.json", get(watch::keys))
        .with_state((stopping, Arc::clone(&context)));
    let calls = Router::new()
        .route("/sca/read", post(sca_read))
        .route("/sca/complete", post(sca_complete))
        .route("/sca/fail", post(sca_fail))
        .route("/psu/read", post(psu_read))
        .route("/psu/bind", post(psu_bind))
        .route("/psu/withdraw", post(psu_withdraw))
        .route("/psu/unbind", post(psu_unbind))
        .route("/reload", post(reload_asked))
        .with_state(Arc::clone(&context));
    watched
        .merge(calls)
        .fallback(|State(context): State<Arc<ControlContext>>| async move {
            ApiFault::NoSuchCall.answer(&context)
        })
        .method_not_allowed_fallback(|State(context): State<Arc<ControlContext>>| async move {
            ApiFault::OtherMethod.answer(&context)
        })
        .with_state(Arc::clone(&context))
        .layer(middleware::from_fn_with_state(context, guard::admit))
}

/// One call: its members are read, it is answered in time, and so is what went wrong with it.
macro_rules! calls {
    ($($call:ident = $answer:path),+ $(,)?) => {
        $(async fn $call(
            State(context): State<Arc<ControlContext>>,
            Extension(in_use): Extension<Arc<InUse>>,
            request: Request,
        ) -> Response {
            let call = Call { context: &context, in_use: &in_use };
            let answering = async {
                let mut members = read_members(request).await?;
                let answered = tokio::time::timeout(ANSWER_WITHIN, $answer(call, &mut members));
                answered.await.unwrap_or(Err(ApiFault::Unavailable))
            };
            answer(&context, answering.await)
        })+
    };
}

calls! {
    sca_read = sca::read,
    sca_complete = sca::complete,
    sca_fail = sca::fail,
    psu_read = psu::read,
    psu_bind = psu::bind,
    psu_withdraw = psu::withdraw,
    psu_unbind = psu::unbind,
}

/// It takes no members, and needs no body.
async fn reload_asked(State(context): State<Arc<ControlContext>>, request: Request) -> Response {
    let answering = async {
        if request.body().is_end_stream() {
            refuse_query(&request)?;
        } else {
            read_members(request).await?.finish()?;
        }
        reload::asked(&context).await
    };
    answer(&context, answering.await)
}

fn answer(context: &ControlContext, answered: Result<Value, ApiFault>) -> Response {
    match answered {
        Ok(value) => fault::json(200, &value),
        Err(fault) => fault.answer(context),
    }
}

/// The body of a call, within bounds of size and time.
async fn read_members(request: Request<Body>) -> Result<Members, ApiFault> {
    refuse_query(&request)?;
    let kind = guard::only(request.headers(), &header::CONTENT_TYPE).unwrap_or_default();
    // A browser sends no JSON to a foreign listener without asking first: a page that someone has open cannot call here.
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(ApiFault::OtherMediaType);
    }
    let reading = axum::body::to_bytes(request.into_body(), MAX_BODY);
    let body = tokio::time::timeout(BODY_WITHIN, reading).await;
    let body = body.map_err(|_| ApiFault::SlowBody)?;
    Members::parse(&body.map_err(|_| ApiFault::LongBody)?)
}

/// Everything is said in the body. A member that stands in a query too would be said twice, and be logged on its way.
fn refuse_query(request: &Request<Body>) -> Result<(), ApiFault> {
    match request.uri().query() {
        None => Ok(()),
        Some(_) => Err(ApiFault::Query),
    }
}
