//! Mixed traffic: what TPPs do on a usual day, their mistakes included, and PSUs who complete an SCA or give up.

use super::stage::{Stage, Wrong};
use crate::harness::{Call, Connection, Protocol, let_pass};
use serde_json::json;
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use uuid::Uuid;

/// Concurrent callers.
pub(super) const CALLERS: usize = 3;

/// The pause of a caller between two requests.
const PAUSE: Duration = Duration::from_millis(60);

/// Every PSU is known before the traffic begins, so that no caller needs the store for that.
pub(super) fn introduce(stage: &Stage) {
    for tpp in &stage.tpps {
        stage.gate.seal(&Call::accounts().by(tpp));
    }
    // A consumer of events.
    assert_eq!(stage.gate.control("/events").status, 200);
}

/// Calls until it is told to stop. No answer is judged: faults are on and off meanwhile.
pub(super) fn drive(stage: &Stage, caller: usize, stop: &AtomicBool) {
    let mut connection: Option<Connection> = None;
    for round in 0_usize.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let_pass(PAUSE);
        if round % 16 == 15 {
            authenticate(stage, round);
            continue;
        }
        let call = call(stage, caller, round);
        if round % 16 == 7 {
            // A new connection, over HTTP/2.
            let _ = stage
                .gate
                .send_sealed(&stage.gate.seal(&call), Protocol::Http2);
            continue;
        }
        let sealed = stage.gate.seal(&call);
        if connection.is_none() {
            connection = stage.connect().ok();
        }
        let answered = connection.as_mut().map(|open| open.exchange(&sealed));
        if answered.is_none_or(|answer| answer.is_err()) {
            connection = None;
        }
    }
}

fn call(stage: &Stage, caller: usize, round: usize) -> Call {
    let tpp = &stage.tpps[(caller + round / 8) % stage.tpps.len()];
    let call = match round % 8 {
        0 | 1 => Call::accounts().present(),
        // The target is not signed.
        2 => Call::plain().signing(&["date", "x-request-id", "tpp-redirect-uri"]),
        3 => Call::payment(),
        // Four calls without the PSU for each account.
        4 => Call::accounts().at(&format!("/v1/accounts/{caller}-{}/balances", round / 128)),
        5 => Call::sandbox_transactions(),
        6 => Call::payment().with("x-accept-fix", "amount-as-string"),
        // Refused, and of one TPP only observed.
        _ if round % 64 == 7 => Call::payment().json("{"),
        _ if round % 64 == 23 => Call::accounts().at("/v1/no-such-operation"),
        _ => Call::accounts().present().off_by(-2),
    };
    at_fault(stage, call.by(tpp))
}

/// A call with the fault that all have.
fn at_fault(stage: &Stage, call: Call) -> Call {
    match *stage.wrong.lock().unwrap() {
        Wrong::Nothing => call,
        Wrong::Dates => call.off_by(75),
        Wrong::Signatures => call.altered(|request| {
            request.set_header("X-Request-ID", "2f2e7d2e-5e3c-4b9b-8a76-2e37d0c3c001");
        }),
    }
}

/// A request without a PSU gets a link; the PSU completes the SCA behind it, or gives up.
fn authenticate(stage: &Stage, round: usize) -> Option<()> {
    let call = Call::accounts()
        .by(&stage.tpps[round % stage.tpps.len()])
        .without("PSU-ID");
    let call = at_fault(stage, call);
    let sealed = stage.gate.seal(&call);
    let answer = stage.connect().ok()?.exchange(&sealed).ok()?;
    let json: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
    let link = json["_links"]["scaRedirect"]["href"].as_str()?;
    let token = link.split("request=").nth(1)?;
    let tell = |path, body| stage.gate.try_tell(path, &body).ok();
    tell("/sca/read", json!({"request": token}))?;
    if round % 64 == 15 {
        let failed = json!({"request": token, "system": "sca", "status": 400, "code": "PAYMENT_FAILED", "message": "The PSU gave up."});
        tell("/sca/fail", failed)?;
    } else {
        let psu = Uuid::new_v4().to_string();
        let body = json!({"request": token, "psu_id": psu, "context": "PRIVATE", "consent": true});
        tell("/sca/complete", body)?;
    }
    Some(())
}
