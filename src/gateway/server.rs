//! Starts and runs the gateway's server.

use super::{
    control_service::ControlService,
    descriptors::{self, DescriptorFault},
    drain::{self, BySignal, Drain, Drained},
    gate::{Gate, GateSettings},
    listener::{self, PublicListener},
    reload::Reloader,
};
use crate::{
    admission::Snapshot,
    clock::{Clock, Stopwatch},
    config::{ControlAddress, Fixed, Listener, Settings},
    control::{self, ControlContext, Reload},
    in_use::{Current, InUse},
    sca::KeyFault,
    signing::{self, AssertionSettings, AssertionSigner},
    state::{OpenFault, StateStore},
    telemetry::Telemetry,
};
use async_trait::async_trait;
use pingora::{
    server::{
        RunArgs, Server, ShutdownSignal, ShutdownSignalWatch,
        configuration::{Opt, ServerConf},
    },
    services::background::background_service,
};
use std::{
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::watch;

/// The time that pingora waits for busy runtime threads. It drops waiting tasks at once, so `drain` waits for requests before
/// that.
const RUNTIMES_WITHIN: Duration = Duration::from_secs(2);

/// The time-out of writing the last lines of the access log: the reader of its pipe may have stopped.
const LOG_WITHIN: Duration = Duration::from_secs(5);

/// The time-out of starting to listen.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// The reason why a gateway does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    /// The address of the public listener cannot be used.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// The control listener cannot listen.
    #[error("the control listener cannot listen on {0}: {1}")]
    Control(ControlAddress, std::io::Error),
    /// The keys of SCA tokens cannot be read or created (SCA-12).
    #[error("the file of token keys {0}: {1}")]
    TokenKeys(PathBuf, KeyFault),
    /// The key of assertions cannot be read or created (FWD-1).
    #[error("the key of assertions {0}: {1}")]
    AssertionKey(PathBuf, signing::AssertionKeyFault),
    /// The process may open too few file descriptors.
    #[error("{0}")]
    Descriptors(DescriptorFault),
    /// The state cannot be opened or created.
    #[error("the state: {0}")]
    State(OpenFault),
    /// The thread that checks revocation cannot start.
    #[error("revocation cannot be checked: {0}")]
    Revocation(String),
    /// pingora's server failed to start.
    #[error("the proxy failed to start: {0}")]
    Proxy(String),
}

/// Runs a gateway until the process receives a stop signal: with SIGTERM, pending requests finish; with SIGINT, they do not.
///
/// # Errors
/// The reason why it does not start.
pub fn serve(settings: Settings) -> Result<(), StartFault> {
    let prepared = prepare(settings, Clock::System)?;
    prepared.server.run(RunArgs {
        shutdown_signal: Box::new(BySignal(prepared.drain)),
    });
    if !prepared.telemetry.flush(LOG_WITHIN) {
        tracing::error!("the last lines of the access log could not be written");
    }
    Ok(())
}

/// Starts a gateway in this process, and returns when it accepts connections.
///
/// # Errors
/// The reason why it does not start.
pub fn start(settings: Settings, clock: Clock) -> Result<Running, StartFault> {
    let address = settings.fixed.listener.address;
    let control = settings.fixed.control.clone();
    let prepared = prepare(settings, clock)?;
    let Prepared {
        server,
        drain,
        accepting,
        ..
    } = prepared;
    let (stop, stopped) = watch::channel(false);
    let thread = std::thread::spawn(move || {
        server.run(RunArgs {
            shutdown_signal: Box::new(Told(stopped, drain)),
        })
    });
    let running = Running {
        address,
        control,
        stop,
        thread: Some(thread),
    };
    let waiting = Stopwatch::start();
    // The control listener is already bound.
    while !accepting.load(Ordering::Acquire) {
        if waiting.elapsed() > READY_WITHIN
            || running.thread.as_ref().is_none_or(JoinHandle::is_finished)
        {
            return Err(StartFault::Proxy(format!(
                "it does not listen on {address}"
            )));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(running)
}

/// A running gateway in this process. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    control: ControlAddress,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// The address of the public listener.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the control listener.
    pub const fn control(&self) -> &ControlAddress {
        &self.control
    }

    /// Stops the gateway at once.
    pub fn stop(self) {}
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Stops on a call, not on a signal, and without waiting.
struct Told(
    watch::Receiver<bool>,
    #[allow(dead_code, reason = "what listens ends with it")] Drain,
);

#[async_trait]
impl ShutdownSignalWatch for Told {
    async fn recv(&self) -> ShutdownSignal {
        let _ = self.0.clone().wait_for(|stop| *stop).await;
        ShutdownSignal::FastShutdown
    }
}

/// A gateway that is ready to run.
struct Prepared {
    server: Server,
    drain: Drain,
    telemetry: Arc<Telemetry>,
    /// Whether the public listener accepts connections.
    accepting: Arc<AtomicBool>,
}

fn prepare(settings: Settings, clock: Clock) -> Result<Prepared, StartFault> {
    // pingora ends the process if it cannot listen. Binding the address first allows a readable error message.
    let Settings { fixed, reloadable } = settings;
    let address = fixed.listener.address;
    descriptors::reserve(&fixed.listener, &fixed.upstream).map_err(StartFault::Descriptors)?;
    TcpListener::bind(address).map_err(|error| StartFault::Listen(address, error))?;
    let telemetry = Arc::new(Telemetry::new(fixed.log.access));
    let bound = control::Bound::bind(&fixed.control)
        .map_err(|error| StartFault::Control(fixed.control.clone(), error))?;
    let sca = &reloadable.sca;
    let links = sca
        .links(fixed.environment, clock.now())
        .map_err(|fault| StartFault::TokenKeys(sca.token_keys.clone(), fault))?;
    let store = Arc::new(StateStore::open(&fixed.state).map_err(StartFault::State)?);
    let assertion_signer = assertion_signer(fixed.assertion.as_ref(), &fixed.system)?;
    let mut server = server(fixed.listener.threads);
    let longest = drain::longest(&fixed.listener, &fixed.upstream);
    let source = reloadable.files.source.clone();
    start_checks(&reloadable.snapshot, &clock)?;
    let in_use = InUse::new(&fixed, reloadable, links, &telemetry, clock.now());
    let current = Arc::new(Current::from_pointee(in_use));
    let gate = Gate::new(
        Arc::clone(&current),
        Arc::clone(&store),
        clock.clone(),
        Arc::clone(&telemetry),
        gate_settings(&fixed, assertion_signer.clone()),
    );
    let drain = Drain::new(Arc::clone(gate.underway()), longest);
    let accepting = Arc::new(AtomicBool::new(false));
    let public = listen(
        gate,
        &fixed.listener,
        Arc::clone(&current),
        clock.clone(),
        Arc::clone(&accepting),
    )?;
    let (system, watch) = (fixed.system.clone(), fixed.watch);
    let reload = source.map(|source| -> Arc<dyn Reload> {
        let (current, telemetry) = (Arc::clone(&current), Arc::clone(&telemetry));
        Arc::new(Reloader::new(
            source,
            fixed,
            current,
            clock.clone(),
            telemetry,
        ))
    });
    let context = ControlContext {
        system,
        assertion_signer,
        current,
        store,
        clock,
        telemetry: Arc::clone(&telemetry),
        reload,
        watch,
        accepting: Arc::clone(&accepting),
    };
    let control = control::Listener::new(bound, Arc::new(context));
    add_listeners(&mut server, public, control, &drain);
    Ok(Prepared {
        server,
        drain,
        telemetry,
        accepting,
    })
}

fn gate_settings(fixed: &Fixed, assertion_signer: Option<Arc<AssertionSigner>>) -> GateSettings {
    GateSettings {
        system: fixed.system.clone(),
        keepalive: fixed.listener.keepalive,
        body_timeout: fixed.listener.body_timeout,
        hsts: fixed.listener.hsts,
        limits: fixed.listener.limits.clone(),
        upstream: fixed.upstream.clone(),
        assertion_signer,
        response_signing: fixed.response_signing.clone(),
    }
}

/// The signer of assertions for the core, if they are configured (FWD-1).
fn assertion_signer(
    settings: Option<&AssertionSettings>,
    system: &str,
) -> Result<Option<Arc<AssertionSigner>>, StartFault> {
    let signer = settings.map(|settings| settings.signer(system).map(Arc::new));
    signer
        .transpose()
        .map_err(|(path, fault)| StartFault::AssertionKey(path, fault))
}

/// Starts the threads that check revocation, and logs the age of the registers.
fn start_checks(snapshot: &Snapshot, clock: &Clock) -> Result<(), StartFault> {
    if let Some(registers) = &snapshot.registers {
        let read = registers.read();
        tracing::info!(
            identities = registers.len(),
            as_of = registers.as_of().map(|at| at.to_string()),
            institutions = read.map(|read| read.institutions),
            without_identity = read.map(|read| read.without_identity),
            stale = registers.is_stale(clock.now()),
            "registers are read"
        );
    }
    match snapshot.trust.revocation() {
        Some(revocation) => revocation
            .start(clock)
            .map_err(|error| StartFault::Revocation(error.to_string())),
        None => Ok(()),
    }
}

/// Creates the public listener, with the gate behind it.
fn listen(
    gate: Gate,
    listener: &Listener,
    current: Arc<Current>,
    clock: Clock,
    accepting: Arc<AtomicBool>,
) -> Result<PublicListener<Gate>, StartFault> {
    let telemetry = Arc::clone(gate.telemetry());
    let overload = Arc::clone(gate.overload());
    let public = listener::public(
        gate, listener, current, clock, overload, telemetry, accepting,
    );
    public.map_err(|error| StartFault::Proxy(error.to_string()))
}

/// Adds both listeners, which stop on the drain's signals.
fn add_listeners(
    server: &mut Server,
    public: PublicListener<Gate>,
    control: control::Listener,
    drain: &Drain,
) {
    server.add_service(Drained::new(public, drain.listener()));
    let control = ControlService::new(control, drain.stopping(), drain.control());
    server.add_service(background_service("control", control));
}

fn server(threads: usize) -> Server {
    let settings = ServerConf {
        threads,
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(RUNTIMES_WITHIN.as_secs()),
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(Some(Opt::default()), settings);
    server.bootstrap();
    server
}
