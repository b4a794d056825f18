//! A key in use: threads that call its token, callers that wait for them within a limit, and a probe.
//!
//! A call of a PKCS#11 library blocks and cannot be cancelled, so no thread of pingora makes one: as many threads as the key has sessions
//! do, and a caller waits for its answer until the timeout. rustls asks for a signature without awaiting it, so the caller's thread waits;
//! `block_in_place` gives its other tasks to another thread meanwhile. Callers that wait are bounded by the queue; beyond it a call fails
//! at once. A library that never returns therefore takes its own threads only, and each caller's time up to the timeout.

use crate::{
    algorithm::{Call, Kind, Verified},
    fault::{Cause, Class, LoadFault, Part, Purpose},
    module::{Module, spawn},
    settings::Pkcs11Settings,
    state::{State, lock},
    token::TokenKey,
};
use openssl::{
    nid::Nid,
    pkey::{Id, PKey, Public},
};
use portvakt_base::clock::Stopwatch;
use rustls::SignatureScheme;
use std::{
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    time::Duration,
};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

/// Callers that wait, for each session.
const WAITING: usize = 4;

/// The time between two probes of a key that can be used.
const PROBE: Duration = Duration::from_secs(10);

/// The time between two probes of a key that cannot be used.
const PROBE_AGAIN: Duration = Duration::from_secs(1);

/// The timeouts that a key has to prove that it can be used: a login, and a signature with each mechanism.
const PROOF: u32 = 5;

/// Why a key cannot be used whose probe has no answer yet.
const LATE: &str = "the token does not answer within the timeout";

/// One key is opened at a time, so that two places of a configuration use one key.
static OPENING: Mutex<()> = Mutex::new(());

/// The next number of a use.
static OPENED: AtomicU64 = AtomicU64::new(1);

/// The keys in use.
static KEYS: Mutex<Vec<Weak<Key>>> = Mutex::new(Vec::new());

/// A key.
#[derive(Debug)]
pub(crate) struct Key {
    /// Which use of a key in this process it is, from 1.
    id: u64,
    token: Arc<TokenKey>,
    jobs: SyncSender<Job>,
}

/// A call, and where its caller waits.
struct Job {
    call: Call,
    since: Stopwatch,
    reply: SyncSender<Result<Verified, Cause>>,
}

/// Why keys in use cannot be used, one sentence each.
pub fn unavailable() -> Vec<String> {
    let keys: Vec<_> = lock(&KEYS).iter().filter_map(Weak::upgrade).collect();
    let faults = keys.iter().filter_map(|key| {
        let Pkcs11Settings { token, label, .. } = &key.token.settings;
        let fault = key.token.state.fault()?;
        Some(format!("key {label:?} of token {token:?}: {fault}"))
    });
    faults.collect()
}

impl Key {
    /// The key of these settings, whose public half is that of a certificate. A key that is in use is used further.
    pub(crate) fn open(
        settings: &Pkcs11Settings,
        public: &PKey<Public>,
        purpose: Purpose,
    ) -> Result<Arc<Self>, LoadFault> {
        let kind = kind(public)?;
        let schemes = match purpose {
            Purpose::Answers => vec![SignatureScheme::RSA_PKCS1_SHA256],
            Purpose::Listener | Purpose::Upstream => kind.schemes().to_vec(),
        };
        if purpose == Purpose::Answers && kind != Kind::Rsa {
            let text = "answers are signed with rsa-sha256, and this is no RSA key (SIG-5)";
            return Err(LoadFault::new(Part::Label, text));
        }
        let _turn = lock(&OPENING);
        let in_use: Vec<_> = lock(&KEYS).iter().filter_map(Weak::upgrade).collect();
        let known = in_use.into_iter().find(|key| {
            let token = &key.token;
            token.settings == *settings
                && token.schemes == schemes
                && token.public.public_eq(public)
        });
        if let Some(known) = known {
            return Ok(known);
        }
        let (bell, rung) = sync_channel(1);
        let token = Arc::new(TokenKey {
            kind,
            schemes,
            public: public.clone(),
            module: Module::load(&settings.module)?,
            state: Arc::new(State::new(bell)),
            settings: settings.clone(),
        });
        let key = Arc::new(Self::start(token, rung)?);
        let mut keys = lock(&KEYS);
        keys.retain(|key| key.strong_count() > 0);
        keys.push(Arc::downgrade(&key));
        Ok(key)
    }

    /// Starts the threads, after the key has proved that it can be used.
    fn start(token: Arc<TokenKey>, rung: Receiver<()>) -> Result<Self, LoadFault> {
        let sessions = token.settings.sessions;
        let (jobs, taken) = sync_channel(sessions.saturating_mul(WAITING));
        let taken = Arc::new(Mutex::new(taken));
        // Dropped after a fault, so that the threads end.
        let id = OPENED.fetch_add(1, Relaxed);
        let key = Self { id, token, jobs };
        key.token.module.register(&key.token.state);
        let prober = Prober::start(&key.token)?;
        let limit = key.token.settings.timeout.saturating_mul(PROOF);
        prober.results.recv_timeout(limit).map_err(|_| {
            LoadFault::outage("the token does not answer: a call of the module has not returned")
        })??;
        let token = Arc::clone(&key.token);
        spawn(move || watch(&token, &rung, &prober))?;
        for _ in 0..sessions {
            let (token, taken) = (Arc::clone(&key.token), Arc::clone(&taken));
            spawn(move || work(&token, &taken))?;
        }
        Ok(key)
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn kind(&self) -> Kind {
        self.token.kind
    }

    pub(crate) fn schemes(&self) -> &[SignatureScheme] {
        &self.token.schemes
    }

    /// The signature of a message. Waits until the timeout.
    pub(crate) fn sign(&self, scheme: SignatureScheme, message: &[u8]) -> Result<Verified, Cause> {
        let state = &self.token.state;
        if state.fault().is_some() {
            return Err(Cause::Unavailable);
        }
        let (reply, answer) = sync_channel(1);
        let job = Job {
            call: Call::new(scheme, message),
            since: Stopwatch::start(),
            reply,
        };
        self.jobs.try_send(job).map_err(|fault| match fault {
            TrySendError::Full(_) => Cause::Busy,
            TrySendError::Disconnected(_) => Cause::Unavailable,
        })?;
        match wait(|| answer.recv_timeout(self.token.settings.timeout)) {
            Ok(signed) => signed,
            Err(RecvTimeoutError::Timeout) => {
                state.wake();
                Err(Cause::Timeout)
            }
            Err(RecvTimeoutError::Disconnected) => Err(Cause::Unavailable),
        }
    }
}

/// Its threads close the sessions.
impl Drop for Key {
    fn drop(&mut self) {
        self.token.state.close();
    }
}

fn kind(public: &PKey<Public>) -> Result<Kind, LoadFault> {
    match public.id() {
        Id::RSA => Ok(Kind::Rsa),
        Id::EC if is_p256(public) => Ok(Kind::P256),
        _ => Err(LoadFault::new(
            Part::Label,
            "the key is neither RSA nor ECDSA P-256: name a key of these kinds, and its certificate",
        )),
    }
}

fn is_p256(public: &PKey<Public>) -> bool {
    let key = public.ec_key();
    key.is_ok_and(|key| key.group().curve_name() == Some(Nid::X9_62_PRIME256V1))
}

/// The thread that makes the calls of the probe. Another one waits for it, so that a call which does not return is noticed.
struct Prober {
    asks: SyncSender<()>,
    results: Receiver<Result<(), LoadFault>>,
}

impl Prober {
    /// Starts it; the first result is the proof that the key can be used.
    fn start(token: &Arc<TokenKey>) -> Result<Self, LoadFault> {
        let ((asks, asked), (answers, results)) = (sync_channel(1), sync_channel(1));
        let token = Arc::clone(token);
        spawn(move || {
            let mut result = prove(&token);
            while answers.send(result).is_ok() && asked.recv().is_ok() {
                result = probe(&token);
            }
            token.module.close_sessions(&token.state);
        })?;
        Ok(Self { asks, results })
    }
}

/// Whether the key can be used, with each mechanism.
fn prove(token: &TokenKey) -> Result<(), LoadFault> {
    let mut proven = token.prove();
    if proven.as_ref().is_err_and(LoadFault::is_outage) && token.module.initialize_again() {
        proven = token.prove();
    }
    if proven.is_ok() {
        token.state.set_fault(None);
    }
    proven
}

/// Waits. Of a runtime with several threads, another one runs this one's tasks meanwhile.
fn wait<T>(waiting: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(waiting),
        _ => waiting(),
    }
}

/// Makes calls until the key is dropped.
fn work(token: &TokenKey, jobs: &Mutex<Receiver<Job>>) {
    loop {
        let job = lock(jobs).recv();
        let Ok(Job { call, since, reply }) = job else {
            break;
        };
        // Its caller has left.
        if since.elapsed() >= token.settings.timeout {
            continue;
        }
        let signed = token.sign(&call).map_err(|fault| {
            let cause = match fault.part {
                Part::Label => Cause::Refused,
                Part::Module | Part::Token | Part::Pin => Cause::Unavailable,
            };
            tracing::debug!(reason = %fault, "a key in an HSM did not sign");
            if cause == Cause::Unavailable || fault.class == Class::Signature {
                settle(token, Some(fault.text));
            }
            token.state.wake();
            cause
        });
        // Its caller has left, if it is not there.
        let _ = reply.try_send(signed);
    }
    token.module.close_sessions(&token.state);
}

/// Lets the key be probed until it is dropped. Makes no call itself.
fn watch(token: &TokenKey, bell: &Receiver<()>, prober: &Prober) {
    let timeout = token.settings.timeout;
    loop {
        let pause = match token.state.fault() {
            None => PROBE,
            Some(_) => PROBE_AGAIN,
        };
        // After a call that failed, a probe follows at once; while the key cannot be used, no call is made.
        let _ = bell.recv_timeout(pause);
        if token.state.is_closed() || prober.asks.send(()).is_err() {
            return;
        }
        let mut proven = prober.results.recv_timeout(timeout);
        while matches!(proven, Err(RecvTimeoutError::Timeout)) {
            if token.state.is_closed() {
                return;
            }
            settle(token, Some(LATE.to_owned()));
            proven = prober.results.recv_timeout(PROBE_AGAIN);
        }
        let Ok(proven) = proven else {
            return;
        };
        settle(token, proven.err().map(|fault| fault.text));
    }
}

/// Whether the key can be used. Opens sessions, or the library, again if they are lost.
fn probe(token: &TokenKey) -> Result<(), LoadFault> {
    let mut proven = token.probe();
    if let Err(fault) = &proven {
        settle(token, Some(fault.text.clone()));
        if fault.is_outage() && token.module.initialize_again() {
            proven = token.probe();
        }
    }
    proven
}

/// Takes over whether the key can be used, and logs a change.
fn settle(token: &TokenKey, fault: Option<String>) {
    if token.state.is_closed() {
        return;
    }
    let before = token.state.set_fault(fault.clone());
    let Pkcs11Settings {
        token: name, label, ..
    } = &token.settings;
    match (before, fault) {
        (None, Some(reason)) => {
            tracing::warn!(token = %name, key = %label, %reason, "a key in an HSM is unavailable");
        }
        (Some(_), None) => {
            tracing::info!(token = %name, key = %label, "a key in an HSM is available again");
        }
        _ => {}
    }
}
