//! `portvakt-sandbox demo`: the gateway at work in front of a stand-in core, called as a TPP calls it.
//!
//! Invariant: nothing is simulated. Every request goes through the gateway's own TLS listener, and the requests at the core are
//! read from the core's log. The two programs never outlive this one, however it ends, except by SIGKILL. Deliberately not here:
//! how to run a gateway. It is started with the given configuration, as by any operator.

use portvakt::config::Settings;
use portvakt::tools::tpp::SignedRequest;
use portvakt_base::clock::Stopwatch;
use portvakt_base::terminal::Terminal;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;
use time::OffsetDateTime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use uuid::Uuid;

// What the parts share: scenes and what they are made of, the files and addresses, and the faults.
mod answered;
mod fault;
mod memory;
mod request;
mod scene;
mod setup;

// The scenes and their expected results: the interface's flows, and then the refusals.
mod flows;
mod refusals;
mod story;

// One scene: sent, answered, judged.
mod play;

// The PSU's browser.
pub(crate) mod browser;
pub(crate) mod form;

// The core and the gateway as children of this program.
mod programs;

// The output on the terminal.
mod report;

use self::fault::DemoFault;
use self::memory::Memory;
use self::play::{Stage, play};
use self::programs::{Programs, run_batch};
use self::report::Report;
use self::scene::Scene;
use self::setup::{CoreSettings, DemoSetup};
use self::story::{Step, Visit, Visitor};
use crate::core::WITH_AGREEMENT;

/// The interval at which the running gateway is checked.
const LOOK: Duration = Duration::from_millis(200);

/// The command line of the demo.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// The gateway's configuration. Its upstream is where the stand-in core will listen.
    #[arg(long, value_name = "FILE", default_value = "config/gateway.yaml")]
    config: PathBuf,
    /// The folder of the development PKI, as the configuration names it. It is made where it is not there.
    #[arg(long, value_name = "DIR", default_value = "certs")]
    certs: PathBuf,
    /// Play the scenes and stop: ends with 0 where everything went as expected, with 1 otherwise.
    #[arg(long)]
    once: bool,
}

/// Plays every scene; then, unless told otherwise, keeps gateway and core up until it is interrupted.
pub(crate) fn run(args: &DemoArgs) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = Terminal::output();
    let mut report = Report::new(out.is_terminal(), &mut out);
    report.title("Portvakt, a gateway for PSD2 interfaces: a demo\n")?;
    prepare_certificates(&args.certs, &mut report)?;
    let settings = Settings::load(&args.config)
        .map_err(|faults| DemoFault::Configuration(faults.to_string()))?;
    let control = callable_control(&args.config, &settings)?;
    check_page(&args.config, &settings)?;
    let listener = settings.fixed.listener.address;
    let upstream = core_address(&args.config, &settings)?;
    check_addresses(&args.config, listener, control, upstream)?;
    let assertion = settings.reloadable.assertion.as_ref();
    let assertion = assertion.ok_or_else(|| DemoFault::NotAsserted(args.config.clone()))?;
    let core = CoreSettings {
        upstream,
        ledger: settings.fixed.state.file.with_file_name("sandbox-core.db"),
        issuer: settings.fixed.system.clone(),
        audience: assertion.audience.clone(),
    };
    let setup = DemoSetup::new(&args.config, listener, control, core)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(perform(args, &setup, &mut report))?)
}

/// From the first program's start to its end. Returning from this function in any way ends both programs.
async fn perform(
    args: &DemoArgs,
    setup: &DemoSetup,
    report: &mut Report<'_>,
) -> Result<(), DemoFault> {
    // Signals are caught before anything exists that would have to be removed.
    let mut interruption = Interruption::new()?;
    let mut programs = Programs::default();
    let tally = tokio::select! {
        () = interruption.wait() => return Err(DemoFault::Interrupted),
        tally = open(args, setup, &mut programs, report) => tally?,
    };
    if !args.once {
        tokio::select! {
            () = interruption.wait() => report.line("\nstopping the gateway and the core")?,
            died = watch(&mut programs) => return Err(died),
        }
    }
    match tally.failed {
        0 => Ok(()),
        failed => Err(DemoFault::Unexpected(failed, tally.played)),
    }
}

/// The number of scenes, and of those with an unexpected result.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    played: usize,
    failed: usize,
}

impl Tally {
    /// Counts a scene; returns its number.
    const fn count(&mut self, good: bool) -> usize {
        self.played = self.played.saturating_add(1);
        if !good {
            self.failed = self.failed.saturating_add(1);
        }
        self.played
    }
}

/// Starts both programs and plays all scenes; then prints how to continue, unless it must stop.
async fn open(
    args: &DemoArgs,
    setup: &DemoSetup,
    programs: &mut Programs,
    report: &mut Report<'_>,
) -> Result<Tally, DemoFault> {
    programs.start_core(setup, report).await?;
    programs.start_gateway(setup, report).await?;
    report.cast(setup)?;
    let stage = Stage::new(setup, &args.certs);
    let refusals = refusals::all().map(|scene| Step::Call(Box::new(scene)));
    let refusals = [Step::Flow("Refusals")].into_iter().chain(refusals);
    let mut company = Company::default();
    // A new PSU, so that the records of earlier ones in the gateway and the core stay unchanged.
    company.memory.identity = format!("{:011}", Uuid::new_v4().as_u128() % 100_000_000_000);
    let flows = story::all().into_iter().chain(flows::all());
    for step in flows.chain(refusals) {
        match step {
            Step::Flow(name) => report.flow(name)?,
            Step::Call(scene) => company.call(&scene, &stage, report).await?,
            Step::Visit(visit) => company.visit(&visit, report).await?,
            Step::Batch => run_batch(setup, report).await?,
        }
        programs.check()?;
    }
    let Tally { played, failed } = company.tally;
    report.summary(played.saturating_sub(failed), played)?;
    if !args.once {
        let mut memory = Memory::default();
        play(&story::first_call(), &stage, &mut memory, None).await?;
        report.invitation(setup, &args.certs, &memory.link)?;
    }
    Ok(company.tally)
}

/// The TPP and the PSU: their knowledge, and the results so far.
#[derive(Debug, Default)]
struct Company {
    memory: Memory,
    last: Option<SignedRequest>,
    tally: Tally,
}

impl Company {
    async fn call(
        &mut self,
        scene: &Scene,
        stage: &Stage,
        report: &mut Report<'_>,
    ) -> Result<(), DemoFault> {
        let played = play(scene, stage, &mut self.memory, self.last.as_ref()).await?;
        let number = self.tally.count(played.went_as_expected());
        report.scene(number, scene, &played)?;
        self.last = Some(played.sent);
        Ok(())
    }

    async fn visit(&mut self, visit: &Visit, report: &mut Report<'_>) -> Result<(), DemoFault> {
        let identity = match visit.visitor {
            Visitor::Psu => &self.memory.identity,
            Visitor::Representative => WITH_AGREEMENT,
        };
        let visited = browser::approve(&self.memory.link, identity).await;
        let redirect = visited.redirect.as_deref();
        let good = redirect.is_some_and(|uri| self.memory.learn_redirect(uri));
        let number = self.tally.count(good);
        Ok(report.visit(number, visit.title, &visited, good)?)
    }
}

/// Returns when one of the programs has ended.
async fn watch(programs: &mut Programs) -> DemoFault {
    loop {
        if let Err(died) = programs.check() {
            return died;
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn prepare_certificates(
    certs: &Path,
    report: &mut Report<'_>,
) -> Result<(), Box<dyn std::error::Error>> {
    let now = OffsetDateTime::now_utc();
    if crate::mint::is_complete(certs, now) {
        return Ok(report.step(
            "certificates",
            &format!("those in {} still hold", certs.display()),
        )?);
    }
    let watch = Stopwatch::start();
    report.begin("certificates", &format!("made in {}", certs.display()))?;
    crate::mint::write_all(certs, now)?;
    Ok(report.end(watch.elapsed())?)
}

/// The control listener's address, if the core can call it without credentials.
fn callable_control(config: &Path, settings: &Settings) -> Result<SocketAddr, DemoFault> {
    let access = &settings.reloadable.control;
    let address = settings.fixed.control.tcp();
    address
        .filter(|_| access.token.is_none() && access.tls.is_none() && access.hosts.is_none())
        .ok_or_else(|| DemoFault::NoControl(config.to_owned()))
}

/// The address at which the simulated core listens: that of the first endpoint.
fn core_address(config: &Path, settings: &Settings) -> Result<SocketAddr, DemoFault> {
    (settings.reloadable.upstreams.first_address())
        .ok_or_else(|| DemoFault::NamedCore(config.to_owned()))
}

/// Checks that the SCA page's address is the core's.
fn check_page(config: &Path, settings: &Settings) -> Result<(), DemoFault> {
    let expected = format!("http://{}/sca", core_address(config, settings)?);
    let page = &settings.reloadable.sca.page;
    if *page == expected {
        return Ok(());
    }
    Err(DemoFault::OtherPage {
        config: config.to_owned(),
        page: page.clone(),
        expected,
    })
}

/// Both programs also report this, but only in their logs.
fn check_addresses(
    config: &Path,
    listener: SocketAddr,
    control: SocketAddr,
    upstream: SocketAddr,
) -> Result<(), DemoFault> {
    let local = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified();
    if !local(listener.ip()) {
        return Err(DemoFault::NotLocal {
            config: config.to_owned(),
            address: listener,
        });
    }
    for (key, address) in [
        ("listener.address", listener),
        ("control.address", control),
        ("upstream.address", upstream),
    ] {
        TcpListener::bind(address).map_err(|source| DemoFault::Taken {
            config: config.to_owned(),
            key,
            address,
            source,
        })?;
    }
    Ok(())
}

/// SIGINT, SIGTERM, or SIGHUP of a closed terminal.
struct Interruption([Signal; 3]);

impl Interruption {
    fn new() -> io::Result<Self> {
        Ok(Self([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    async fn wait(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
