//! Starts and runs the gateway's server.

use super::{
    checked::{Checked, Ports, written_folders},
    control_service::{ControlRun, ControlService},
    drain::{BySignal, CONTROL_WITHIN, Drain, Drained},
    error_body::ErrorBodySettings,
    gate::{Gate, GateSettings},
    listener::{self, PublicListener, PublicSocket},
    opened_state::open_state,
    registrations::{self, Tellers},
    reload::{self, Reloader},
    signals::{EndSignals, Signals},
    sockets::{Inherited, OpenSockets},
    start_fault::StartFault,
};
use crate::{
    admission::Snapshot,
    audit::{self, Audit, AuditKind},
    clock::Clock,
    config::{Fixed, Listener, Settings, Shutdown},
    control::{self, ControlContext, ControlSignals, Observations, Readiness, Reload},
    hsm,
    in_use::{Current, InUse},
    interface::operations::Environment,
    sca::{Links, ScaSettings},
    seen::{self, SeenCertificates, SeenKeeper},
    signing::{AssertionSettings, AssertionSigner},
    state::StateStore,
    telemetry::{AccessLog, LAST_WITHIN, Telemetry, Traces, UpgradeResult, WrittenFolders},
    upstreams::{Upkeep, Upstreams},
};
use pingora::{
    server::{
        RunArgs, Server,
        configuration::{Opt, ServerConf},
    },
    services::background::background_service,
};
use std::{
    io,
    net::TcpListener,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// The time that pingora waits for busy runtime threads. It drops waiting tasks at once, so `drain` waits for requests before
/// that.
const RUNTIMES_WITHIN: Duration = Duration::from_secs(2);

/// The longest waits after the drain: for the runtimes, for the certificates that were seen, for the last observations of TPPs, for the last
/// records of the audit and lines of the access log, for both again when they are closed, for the last lines of events, and for calls of an
/// HSM. Only a disk, a reader or an HSM that takes nothing more makes them as long.
const AFTER_DRAIN: [Duration; 5] = [
    RUNTIMES_WITHIN,
    seen::LAST_WITHIN,
    audit::LAST_WITHIN,
    LAST_WITHIN.saturating_mul(5),
    hsm::END_WITHIN,
];

/// The signals and sockets that belong to the process.
#[derive(Debug)]
pub struct Startup {
    signals: Signals,
    inherited: Inherited,
}

impl Startup {
    /// Catches the signals, and takes the sockets that the process was started with. To be called first in a process, before any thread
    /// starts and before anything takes time.
    ///
    /// # Errors
    /// The system refuses to catch a signal.
    pub fn take() -> io::Result<Self> {
        Ok(Self {
            signals: Signals::catch()?,
            inherited: Inherited::take(),
        })
    }

    /// The addresses to bind: those for which the process was started with no socket.
    pub fn ports(&self, settings: &Fixed) -> Ports {
        self.inherited.ports(settings)
    }
}

/// Runs a gateway until a signal ends it.
///
/// # Errors
/// The reason why it does not start.
pub fn serve(checked: Checked, startup: Startup) -> Result<(), StartFault> {
    let Startup { signals, inherited } = startup;
    let Signals { control, mut ends } = signals;
    let takes_over = inherited.predecessor.is_some();
    let prepared = prepare(
        checked,
        Clock::System,
        inherited,
        Some(control),
        Some(&mut ends),
    )?;
    let telemetry = Arc::clone(&prepared.telemetry);
    if takes_over {
        telemetry.upgraded(UpgradeResult::TakenOver);
    }
    let by_signal = BySignal::new(prepared.drain, telemetry, ends, prepared.sockets);
    prepared.server.run(RunArgs {
        shutdown_signal: Box::new(by_signal),
    });
    drop(prepared.seen);
    prepared
        .observations
        .write_last(&prepared.store, LAST_WITHIN);
    prepared.telemetry.say_left_out(true);
    let audit = prepared.telemetry.audit();
    audit.record(audit.event(AuditKind::Stopped));
    if !prepared.telemetry.flush(LAST_WITHIN) {
        tracing::error!("the last lines of the access log or of the audit could not be written");
    }
    Ok(())
}

/// The longest time from the signal to the end of the process.
pub fn longest_stop(settings: &Settings) -> Duration {
    let (fixed, core) = (&settings.fixed, settings.reloadable.upstreams.longest());
    let Shutdown { lame_duck, .. } = fixed.shutdown;
    let finish = fixed.shutdown.finish(&fixed.listener, core);
    let times = [lame_duck, finish, CONTROL_WITHIN]
        .into_iter()
        .chain(AFTER_DRAIN);
    times.fold(Duration::ZERO, Duration::saturating_add)
}

/// A gateway that is ready to run.
pub(super) struct Prepared {
    pub(super) server: Server,
    pub(super) drain: Drain,
    sockets: OpenSockets,
    telemetry: Arc<Telemetry>,
    /// Whether the public listener has begun to accept connections.
    pub(super) accepting: Arc<AtomicBool>,
    pub(super) readiness: Readiness,
    /// Writes the certificates that were seen, the last time when it is dropped; `None` if the system refuses a thread.
    pub(super) seen: Option<SeenKeeper>,
    observations: Arc<Observations>,
    store: Arc<StateStore>,
}

/// Makes everything ready that can fail.
pub(super) fn prepare(
    checked: Checked,
    clock: Clock,
    mut inherited: Inherited,
    signals: Option<ControlSignals>,
    ends: Option<&mut EndSignals>,
) -> Result<Prepared, StartFault> {
    let settings = checked.into_settings();
    let folders = written_folders(&settings);
    let Settings { fixed, reloadable } = settings;
    let (socket, bound, sockets) = bind(&fixed, &mut inherited)?;
    let source = reloadable.files.source.clone();
    let telemetry = Arc::new(telemetry(&fixed, source.as_deref(), folders, &clock)?);
    let tellers = Tellers::new(&telemetry, &clock);
    let links = links(&reloadable.sca, fixed.environment, &clock)?;
    let signer = assertion_signer(reloadable.assertion.as_ref(), &fixed.system)?;
    let mut server = server(fixed.listener.threads);
    let seen = start_checks(&reloadable.snapshot, &fixed, &clock, &tellers)?;
    let upkeep = Upkeep::start(&telemetry).map_err(StartFault::Upstreams)?;
    let core = reloadable.upstreams.longest();
    let upstreams = Upstreams::start(reloadable.upstreams.clone(), None, &upkeep);
    let now = clock.now();
    let in_use = InUse::new(
        &fixed, reloadable, links, signer, upstreams, &telemetry, now,
    );
    let current = Arc::new(Current::from_pointee(in_use));
    let store = Arc::new(open_state(&fixed.state, &mut inherited, ends)?);
    let gate = gate(&current, &store, &clock, &telemetry, &fixed);
    let drain = Drain::new(Arc::clone(gate.underway()), &fixed, core);
    let accepting = Arc::new(AtomicBool::new(false));
    let (socket, open) = PublicSocket::closed(socket, &accepting);
    let pulse = Arc::clone(&socket.pulse);
    let public = listen(socket, gate, &fixed.listener, &current, &clock)?;
    let (system, watch) = (fixed.system.clone(), fixed.watch);
    let observations = Arc::clone(&tellers.observations);
    let reload = source.map(|source| -> Arc<dyn Reload> {
        let (current, clock) = (Arc::clone(&current), clock.clone());
        Arc::new(Reloader::new(
            source, fixed, current, clock, &tellers, upkeep,
        ))
    });
    let context = Arc::new(ControlContext {
        system,
        current,
        store: Arc::clone(&store),
        clock,
        observations: Arc::clone(&observations),
        telemetry: Arc::clone(&telemetry),
        reload,
        watch,
        accepting: Arc::clone(&accepting),
    });
    server.add_service(Drained::new(public, drain.listener()));
    let listener = control::Listener::new(bound, context, signals);
    let readiness = listener.readiness(&drain.stopping());
    let control = ControlService::new(ControlRun {
        listener,
        stopping: drain.stopping(),
        closing: drain.control(),
        accepting: Arc::clone(&accepting),
        pulse,
        open,
        predecessor: inherited.predecessor,
    });
    server.add_service(background_service("control", control));
    Ok(Prepared {
        server,
        drain,
        sockets,
        telemetry,
        accepting,
        readiness,
        seen,
        observations,
        store,
    })
}

fn links(sca: &ScaSettings, environment: Environment, clock: &Clock) -> Result<Links, StartFault> {
    sca.links(environment, clock.now())
        .map_err(|fault| StartFault::TokenKeys(sca.token_keys.clone(), fault))
}

fn gate(
    current: &Arc<Current>,
    store: &Arc<StateStore>,
    clock: &Clock,
    telemetry: &Arc<Telemetry>,
    fixed: &Fixed,
) -> Gate {
    let settings = GateSettings {
        origin: ErrorBodySettings {
            system: fixed.system.clone(),
            documentation: fixed.listener.documentation.clone(),
        },
        keepalive: fixed.listener.keepalive,
        body_timeout: fixed.listener.body_timeout,
        hsts: fixed.listener.hsts,
        limits: fixed.listener.limits.clone(),
    };
    Gate::new(
        Arc::clone(current),
        Arc::clone(store),
        clock.clone(),
        Arc::clone(telemetry),
        settings,
    )
}

/// The signer of assertions for the core, if they are configured (FWD-1).
fn assertion_signer(
    settings: Option<&AssertionSettings>,
    system: &str,
) -> Result<Option<AssertionSigner>, StartFault> {
    let signer = settings.map(|settings| settings.signer(system));
    signer
        .transpose()
        .map_err(|(path, fault)| StartFault::AssertionKey(path, fault))
}

/// Starts the threads that check revocation, and the one that keeps the certificates that are seen; logs the age of the registers.
fn start_checks(
    snapshot: &Snapshot,
    fixed: &Fixed,
    clock: &Clock,
    tellers: &Tellers,
) -> Result<Option<SeenKeeper>, StartFault> {
    if let Some(registers) = &snapshot.registers {
        let now = clock.now();
        for register in registers.each() {
            tracing::info!(
                register = register.name().as_str(),
                identities = register.len(),
                as_of = %register.as_of(),
                institutions = register.counts().institutions,
                without_identity = register.counts().without_identity,
                stale = register.is_stale(now),
                "a register is read"
            );
        }
        tracing::info!(tpps = registers.local_len(), "the bank's own list is read");
    }
    if let Some(revocation) = snapshot.trust.revocation() {
        revocation
            .start(clock)
            .map_err(|error| StartFault::Revocation(error.to_string()))?;
    }
    Ok(keep_seen(&snapshot.seen, fixed, clock, tellers))
}

/// Starts to keep the certificates by which requests are signed. Without that, requests are judged all the same.
fn keep_seen(
    seen: &Arc<SeenCertificates>,
    fixed: &Fixed,
    clock: &Clock,
    tellers: &Tellers,
) -> Option<SeenKeeper> {
    let path = seen::file_beside(&fixed.state.file);
    let tellers = tellers.clone();
    let kept = SeenKeeper::start(Arc::clone(seen), path, clock.clone(), move |event| {
        registrations::tell_seen(event, &tellers);
    });
    let warn = |error: &io::Error| {
        tracing::warn!(%error, "the certificates that were seen are not kept");
    };
    kept.inspect_err(warn).ok()
}

/// Opens the access log and the audit, where they are on. The audit has the start, and the hash of the configuration.
fn telemetry(
    fixed: &Fixed,
    source: Option<&Path>,
    folders: WrittenFolders,
    clock: &Clock,
) -> Result<Telemetry, StartFault> {
    let log = &fixed.log;
    let access = log
        .access
        .then(|| AccessLog::open(log.access_output.clone(), log.sample));
    let access = access.transpose().map_err(StartFault::AccessLog)?;
    let traces = fixed.traces.clone().map(Traces::open).transpose();
    let traces = traces.map_err(StartFault::Traces)?;
    let audit = match &fixed.audit {
        Some(settings) => Audit::open(settings, clock).map_err(StartFault::Audit)?,
        None => Audit::default(),
    };
    let started = audit
        .event(AuditKind::Started)
        .with("version", env!("CARGO_PKG_VERSION"))
        .with_some("configuration", source.and_then(reload::file_hash));
    audit.record(started);
    let telemetry = Telemetry::new(access).with_audit(audit).with_traces(traces);
    Ok(telemetry.with_folders(folders))
}

/// The sockets of both listeners. pingora would end the process if it could not listen.
fn bind(
    fixed: &Fixed,
    inherited: &mut Inherited,
) -> Result<(TcpListener, control::Bound, OpenSockets), StartFault> {
    let address = fixed.listener.address;
    let public = inherited.public(address);
    let public = public.map_err(|error| StartFault::Listen(address, error))?;
    let control = inherited.control(&fixed.control);
    let control = control.map_err(|error| StartFault::Control(fixed.control.clone(), error))?;
    let unused = inherited.unused();
    if !unused.is_empty() {
        return Err(StartFault::Unused(unused.join(", ")));
    }
    let copies = OpenSockets::of(&public, &control).map_err(StartFault::Shared)?;
    Ok((public, control, copies))
}

/// Creates the public listener, with the gate behind it.
fn listen(
    socket: PublicSocket,
    gate: Gate,
    listener: &Listener,
    current: &Arc<Current>,
    clock: &Clock,
) -> Result<PublicListener<Gate>, StartFault> {
    let (current, clock) = (Arc::clone(current), clock.clone());
    let telemetry = Arc::clone(gate.telemetry());
    let overload = Arc::clone(gate.overload());
    let public = listener::public(socket, gate, listener, current, clock, overload, telemetry);
    public.map_err(|error| StartFault::Proxy(error.to_string()))
}

fn server(threads: usize) -> Server {
    let settings = ServerConf {
        threads,
        // Timers of a second and more are tokio's. pingora's run in a thread of their own, which can end a wait before a busy process has
        // asked the kernel.
        fast_timeout_to_tokio_threshold_seconds: Some(0),
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(RUNTIMES_WITHIN.as_secs()),
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(Some(Opt::default()), settings);
    server.bootstrap();
    server
}
