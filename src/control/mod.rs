//! The control listener, for the bank's own services: the end of an SCA, PSUs, blocks of TPPs, readiness, metrics.
//!
//! It runs beside the gateway in the same process. Invariants: a caller from another machine has presented a bearer token or a
//! client certificate (config requires one); no path, query, log line or error contains a PSU-ID; a change is durable before
//! its answer is sent, and is recorded also if its caller disconnects. docs/sca.md is the manual. Deliberately not here: the
//! rights that a completed SCA gives, which admission decides, and the bank's SCA page itself.

// The parts of the gateway that calls use.
mod context;

// Reading a JSON object, all faults at once; answering with a fault.
mod fault;
mod members;

// Records of calls in the audit.
mod audited;

// Calls: the end of an SCA, PSUs, the permissions of one customer, events, the status of the gateway.
mod accesses;
mod endpoint;
mod events;
mod live_sca;
mod moves;
mod operate;
mod permissions;
mod psu;
mod sca;
mod tpp;
mod watch;

// What ends or fills, once a day. Triggers of a reload, and of opening the logs again.
mod daily;
mod logs;
mod reload;

// What this gateway observes, for the stream of events.
mod observations;

// Listening, access control, and calls that run without their callers.
mod bound;
mod guard;
mod listen;
mod running;
mod slots;

// Import of PSUs from a file: the same records as /psu/bind.
pub mod import;

pub use bound::{Bound, SharedSocket, try_bind};
pub use context::{ControlContext, Reload};
pub use listen::StopSignal;
pub use observations::Observations;
pub use watch::Readiness;

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
use events::Polling;
use fault::ApiFault;
use members::Members;
use running::RunningCalls;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::signal::unix::Signal;

/// The time-out of reading a body.
const BODY_WITHIN: Duration = Duration::from_secs(5);

/// The time-out of an answer: longer than the 5 s of the store and the 5 s of the audit, so that it never drops a call between its change
/// and the record of it.
const ANSWER_WITHIN: Duration = Duration::from_secs(12);

/// A bound listener that does not serve yet.
#[derive(Debug)]
pub struct Listener {
    bound: Bound,
    context: Arc<ControlContext>,
    signals: Option<ControlSignals>,
}

/// The signals of operators to a running gateway.
#[derive(Debug)]
pub struct ControlSignals {
    /// SIGHUP: reload the configuration.
    pub hangup: Signal,
    /// SIGUSR1: open the files of the logs again.
    pub reopen: Signal,
}

impl Listener {
    /// Creates a listener on `bound`, which acts on `signals` too.
    pub const fn new(
        bound: Bound,
        context: Arc<ControlContext>,
        signals: Option<ControlSignals>,
    ) -> Self {
        Self {
            bound,
            context,
            signals,
        }
    }

    /// What `/readyz` answers from.
    pub fn readiness(&self, stopping: &StopSignal) -> Readiness {
        Readiness::new(stopping.clone(), Arc::clone(&self.context))
    }

    /// Serves until `closing`. From `stopping` on, `/readyz` answers 503, but other calls are served: while requests finish,
    /// the bank's SCA service may still report the end of an SCA.
    pub async fn run(self, stopping: StopSignal, closing: StopSignal) {
        let context = self.context;
        let signals = self.signals.map(|signals| (signals.hangup, signals.reopen));
        let (hangup, reopen) = signals.unzip();
        let running = RunningCalls::default();
        let polling = Polling::new(closing.clone(), Arc::clone(&context));
        let routes = routes(Arc::clone(&context), stopping, polling, running.clone());
        tokio::select! {
            served = listen::serve(self.bound, &context, routes, running, closing) => {
                if let Err(error) = served {
                    tracing::error!(%error, "the control listener failed");
                }
            }
            () = reload::at_hangup(&context, hangup) => {}
            () = reload::when_changed(&context) => {}
            () = logs::reopen_at_signal(&context, reopen) => {}
            () = daily::log_each_day(&context) => {}
            () = events::watch_consumers(&context) => {}
            () = context.observations.write_all(&context.store) => {}
        }
    }
}

/// All routes, behind the guard.
fn routes(
    context: Arc<ControlContext>,
    stopping: StopSignal,
    polling: Polling,
    running: RunningCalls,
) -> Router {
    let stream = Router::new()
        .route("/events", get(events::poll))
        .with_state(polling);
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
        .route("/psu/list", post(psu_list))
        .route("/psu/bind", post(psu_bind))
        .route("/psu/withdraw", post(psu_withdraw))
        .route("/psu/unbind", post(psu_unbind))
        .route("/psu/forget", post(psu_forget))
        .route("/tpp/block", post(tpp_block))
        .route("/tpp/unblock", post(tpp_unblock))
        .route("/tpp/blocks", get(tpp_blocks))
        .route("/tpp/move", post(tpp_move))
        .route("/tpp/moves", get(tpp_moves))
        .route("/config", get(configuration))
        .route("/connections", get(connections))
        .route("/top", get(top))
        .route("/endpoint/drain", post(endpoint_drain))
        .route("/endpoint/restore", post(endpoint_restore))
        .route("/log", post(log_level))
        .route("/reload", post(reload_asked))
        .with_state(Arc::clone(&context));
    watched
        .merge(calls)
        .merge(stream)
        .fallback(|State(context): State<Arc<ControlContext>>| async move {
            ApiFault::NoSuchCall.answer(&context)
        })
        .method_not_allowed_fallback(|State(context): State<Arc<ControlContext>>| async move {
            ApiFault::OtherMethod.answer(&context)
        })
        .with_state(Arc::clone(&context))
        .layer(middleware::from_fn_with_state(
            (context, running),
            guard::admit,
        ))
}

/// Reads the members of a call and answers within the time-out, also after a fault.
macro_rules! calls {
    ($($call:ident = $answer:path),+ $(,)?) => {
        $(async fn $call(
            State(context): State<Arc<ControlContext>>,
            Extension(in_use): Extension<Arc<InUse>>,
            request: Request,
        ) -> Response {
            let call = Call { context: &context, in_use: &in_use };
            let answering = async {
                if context.telemetry.audit().refuses() {
                    return Err(ApiFault::Unavailable);
                }
                let mut members = read_members(request).await?;
                context.store.note_time(context.clock.now());
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
    psu_list = accesses::list,
    psu_bind = psu::bind,
    psu_withdraw = psu::withdraw,
    psu_unbind = psu::unbind,
    psu_forget = accesses::forget,
    tpp_block = tpp::block,
    tpp_unblock = tpp::unblock,
    tpp_move = moves::change,
    endpoint_drain = endpoint::drain,
    endpoint_restore = endpoint::restore,
    log_level = operate::log,
}

/// Calls without members, which change nothing.
macro_rules! reads {
    ($($call:ident = $answer:path),+ $(,)?) => {
        $(async fn $call(
            State(context): State<Arc<ControlContext>>,
            Extension(in_use): Extension<Arc<InUse>>,
            request: Request,
        ) -> Response {
            let call = Call { context: &context, in_use: &in_use };
            let answered = match refuse_query(&request) {
                Ok(()) => $answer(call).await,
                Err(fault) => Err(fault),
            };
            answer(&context, answered)
        })+
    };
}

reads! {
    tpp_blocks = tpp::list,
    tpp_moves = moves::list,
    configuration = operate::configuration,
    connections = operate::connections,
    top = operate::top,
}

/// A call without members; any body is ignored.
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

/// Reads the body of a call, bounded in size and time.
async fn read_members(request: Request<Body>) -> Result<Members, ApiFault> {
    refuse_query(&request)?;
    let kind = guard::only(request.headers(), &header::CONTENT_TYPE).unwrap_or_default();
    // A browser sends JSON to another origin only after a preflight request, so an open page cannot call this listener.
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(ApiFault::OtherMediaType);
    }
    let reading = axum::body::to_bytes(request.into_body(), MAX_BODY);
    let body = tokio::time::timeout(BODY_WITHIN, reading).await;
    let body = body.map_err(|_| ApiFault::SlowBody)?;
    Members::parse(&body.map_err(|_| ApiFault::LongBody)?)
}

/// All members are in the body. A query could contradict them, and proxies log it.
fn refuse_query(request: &Request<Body>) -> Result<(), ApiFault> {
    match request.uri().query() {
        None => Ok(()),
        Some(_) => Err(ApiFault::Query),
    }
}
