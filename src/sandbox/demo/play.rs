//! One scene: signed, spoilt, sent over TLS, and compared with what the core wrote down.
//!
//! Invariant: the requests at the core are the new lines of its log between sending and answer; scenes are played one after
//! another.

use super::answered::Answered;
use super::fault::DemoFault;
use super::memory::Memory;
use super::scene::{Expected, Scene};
use super::setup::DemoSetup;
use portvakt::tools::tpp::{
    CallOptions, SignOptions, SignedRequest, TppAnswer, TppFault, TppIdentity, call, sign,
};
use portvakt_base::clock::{Clock, Stopwatch};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The time that the public listener may need after the control listener reports that the gateway is ready.
const BEHIND: Duration = Duration::from_secs(10);

/// How long to wait for it between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// The environment of the scenes.
#[derive(Debug)]
pub(super) struct Stage {
    base_url: String,
    certs: PathBuf,
    journal: PathBuf,
    connecting: CallOptions,
}

impl Stage {
    pub(super) fn new(setup: &DemoSetup, certs: &Path) -> Self {
        Self {
            base_url: setup.base_url(),
            certs: certs.to_owned(),
            journal: setup.journal(),
            connecting: CallOptions {
                cacert: Some(certs.join("server-ca.pem")),
                http2: false,
            },
        }
    }

    /// The core's log so far, one value per request.
    fn seen(&self) -> Result<Vec<Value>, DemoFault> {
        let text = std::fs::read_to_string(&self.journal).map_err(DemoFault::of(&self.journal))?;
        let entry = |line| serde_json::from_str(line).unwrap_or(Value::Null);
        Ok(text.lines().map(entry).collect())
    }
}

/// A scene that was played.
#[derive(Debug)]
pub(super) struct Played {
    /// The request as it was sent.
    pub(super) sent: SignedRequest,
    /// The answer, or the reason why there is none.
    pub(super) answer: Result<Answered, String>,
    /// The requests that the core received meanwhile.
    pub(super) seen: Vec<Value>,
    expected: Expected,
    /// Whether the answer contains what the scene expects.
    says_all: bool,
}

impl Played {
    /// Whether status and reason are those of the scene, and whether the core received the request as expected: once, or not at
    /// all.
    pub(super) fn went_as_expected(&self) -> bool {
        let Ok(answer) = &self.answer else {
            return false;
        };
        self.says_all
            && match self.expected {
                Expected::Forwarded(status) => {
                    answer.status == status
                        && matches!(self.seen.as_slice(), [one] if self.is_same(one))
                }
                Expected::Answered(status) => answer.status == status && self.seen.is_empty(),
                Expected::Refused(status, reason) => {
                    answer.status == status
                        && answer.text("reason") == Some(reason)
                        && self.seen.is_empty()
                }
            }
    }

    fn is_same(&self, seen: &Value) -> bool {
        let text = |name| seen.get(name).and_then(Value::as_str);
        text("method") == Some(self.sent.method.as_str())
            && text("target") == Some(self.sent.target.as_str())
    }
}

/// Plays one scene. `before` is the request of the scene before, and what is learnt goes to `memory`.
pub(super) async fn play(
    scene: &Scene,
    stage: &Stage,
    memory: &mut Memory,
    before: Option<&SignedRequest>,
) -> Result<Played, DemoFault> {
    let now = Clock::System.now().system_time();
    let sent = match before.filter(|_| scene.again) {
        Some(before) => before.clone(),
        None => signed(scene, stage, memory, now)?,
    };
    let known = stage.seen()?.len();
    let answer = send(&sent, stage).await;
    let seen = stage.seen()?.split_off(known);
    let answer = answer.map(Answered::of).map_err(|fault| fault.to_string());
    let says_all = answer
        .as_ref()
        .is_ok_and(|answered| (scene.learn)(answered, memory));
    Ok(Played {
        sent,
        answer,
        seen,
        expected: scene.expected,
        says_all,
    })
}

/// Sends once. The request is sent again only if nothing listens yet. No connection is opened merely to find out, because the
/// gateway would log a connection without bytes.
async fn send(request: &SignedRequest, stage: &Stage) -> Result<TppAnswer, TppFault> {
    let waiting = Stopwatch::start();
    loop {
        match call(request, &stage.base_url, &stage.connecting).await {
            Err(TppFault::Client(fault)) if fault.is_connect() && waiting.elapsed() < BEHIND => {
                tokio::time::sleep(PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

fn signed(
    scene: &Scene,
    stage: &Stage,
    memory: &Memory,
    now: SystemTime,
) -> Result<SignedRequest, DemoFault> {
    let file = |extension| stage.certs.join(format!("{}.{extension}", scene.signer));
    let identity = TppIdentity::from_pem_files(&file("pem"), &file("key"))?;
    let options = SignOptions::at(now.checked_sub(scene.age).unwrap_or(now));
    let mut request = sign(&identity, (scene.request)(memory), &options)?;
    (scene.meddle)(&mut request);
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn played(expected: Expected, status: u16, body: Value, seen: Vec<Value>) -> Played {
        let sent = SignedRequest {
            method: "GET".into(),
            target: "/a".into(),
            headers: Vec::new(),
            body: None,
            signing_string: String::new(),
        };
        Played {
            sent,
            answer: Ok(Answered::new(status, body)),
            seen,
            expected,
            says_all: true,
        }
    }

    #[test]
    fn a_refusal_counts_only_with_its_reason_and_an_idle_core() {
        let expected = Expected::Refused(400, "date-skewed");
        let body = || json!({"reason": "date-skewed"});
        let seen = || json!({"method": "GET", "target": "/a"});
        assert!(played(expected, 400, body(), vec![]).went_as_expected());
        assert!(!played(expected, 403, body(), vec![]).went_as_expected());
        assert!(!played(expected, 400, json!({"reason": "internal"}), vec![]).went_as_expected());
        assert!(!played(expected, 400, Value::Null, vec![]).went_as_expected());
        assert!(!played(expected, 400, body(), vec![seen()]).went_as_expected());
    }

    #[test]
    fn a_request_counts_as_forwarded_only_where_the_core_saw_it_once() {
        let expected = Expected::Forwarded(200);
        let seen = || json!({"method": "GET", "target": "/a"});
        assert!(played(expected, 200, Value::Null, vec![seen()]).went_as_expected());
        assert!(!played(expected, 502, Value::Null, vec![seen()]).went_as_expected());
        assert!(!played(expected, 200, Value::Null, vec![]).went_as_expected());
        assert!(!played(expected, 200, Value::Null, vec![seen(), seen()]).went_as_expected());
        let other = json!({"method": "GET", "target": "/b"});
        assert!(!played(expected, 200, Value::Null, vec![other]).went_as_expected());
    }
}
