//! A gateway with an upstream behind it, both on ports of their own, both stopped when the gate is dropped.

use super::{
    call::{Call, Protocol, Sealed},
    h1::Connection,
    h2,
    upstream::Upstream,
    wire::{Answer, Wire},
    world::{World, world},
};
use portvakt::{
    clock::{Clock, Timestamp},
    config::Settings,
    gateway::{self, Running},
};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    fs,
    io::{self, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;

/// A program that is killed when it is dropped, at the latest.
pub(crate) struct Program(pub(crate) Child);

impl Program {
    /// SIGKILL.
    pub(crate) fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}

/// What opens the control listener in production; a sandbox asks for nothing.
const CONTROL_TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A running gateway.
pub(crate) struct Gate {
    running: Option<Running>,
    address: SocketAddr,
    control: SocketAddr,
    upstream: Upstream,
    clock: Clock,
    world: &'static World,
    /// Whose PSUs the gate has been told of; none where it is to know nobody.
    introduced: Option<Mutex<HashSet<Value>>>,
    folder: TempDir,
    yaml: String,
}

/// A gateway to be started.
pub(crate) struct GateBuilder {
    environment: &'static str,
    world: &'static World,
    clock: Clock,
    threads: usize,
    listener: String,
    upstream: String,
    trust: String,
    sca: String,
    core: Option<SocketAddr>,
    root: String,
    files: Vec<(String, Vec<u8>)>,
    private: Vec<String>,
    introducing: bool,
    from_file: bool,
}

impl Gate {
    /// A gateway with every default.
    pub(crate) fn start() -> Self {
        Self::builder().start()
    }

    /// A gateway that differs in something.
    pub(crate) fn builder() -> GateBuilder {
        GateBuilder {
            environment: "sandbox",
            world: world(),
            clock: Clock::System,
            threads: 1,
            listener: String::new(),
            upstream: String::new(),
            trust: String::new(),
            sca: String::new(),
            core: None,
            root: String::new(),
            files: Vec::new(),
            private: Vec::new(),
            introducing: true,
            from_file: false,
        }
    }

    /// Where TPPs call.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the bank's own services ask.
    pub(crate) const fn control_address(&self) -> SocketAddr {
        self.control
    }

    /// The upstream.
    pub(crate) const fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// The gateway's time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The PKI that it trusts.
    pub(crate) const fn world(&self) -> &'static World {
        self.world
    }

    /// The folder of its configuration, `gateway.yaml` where it was started from a file.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its configuration as it was started.
    pub(crate) fn yaml(&self) -> &str {
        &self.yaml
    }

    /// Signs a call by the gate's clock, and lets the gate know the PSU, unless it is to know nobody.
    pub(crate) fn seal(&self, call: &Call) -> Sealed {
        let sealed = call.seal(self.now());
        if let Some(introduced) = &self.introduced
            && let Some(who) = who(call, &sealed)
        {
            // Whoever else calls for the same PSU waits until the gate knows it.
            let mut introduced = introduced.lock().unwrap();
            if introduced.insert(who.clone()) {
                self.introduce(who);
            }
        }
        sealed
    }

    /// Tells the gate of a PSU who has just completed an SCA and consented.
    pub(crate) fn introduce(&self, mut who: Value) {
        who["last_sca"] = self.now().to_string().into();
        who["consent_at"] = self.now().to_string().into();
        let answer = self.tell("/psu/bind", &who);
        assert!(answer.status < 500, "{} {:?}", answer.status, answer.json());
    }

    /// Posts to the control listener.
    pub(crate) fn tell(&self, path: &str, body: &Value) -> Answer {
        self.try_tell(path, body).unwrap()
    }

    /// The same, where it may be gone.
    pub(crate) fn try_tell(&self, path: &str, body: &Value) -> io::Result<Answer> {
        let mut wire = Wire::new(TcpStream::connect(self.control)?);
        let body = body.to_string();
        write!(
            wire.stream,
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Authorization: Bearer {CONTROL_TOKEN}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )?;
        wire.answer("POST")
    }

    /// Signs a call and sends it over one protocol.
    pub(crate) fn send(&self, call: &Call, protocol: Protocol) -> Answer {
        self.send_sealed(&self.seal(call), protocol)
            .unwrap_or_else(|fault| panic!("{protocol:?}: {fault}"))
    }

    /// Sends a request as it is, on a connection of its own.
    pub(crate) fn send_sealed(
        &self,
        sealed: &Sealed,
        protocol: Protocol,
    ) -> Result<Answer, String> {
        match protocol {
            Protocol::Http1 => Connection::open(self)
                .exchange(sealed)
                .map_err(|fault| fault.to_string()),
            Protocol::Http2 => h2::exchange(self, sealed),
        }
    }

    /// Asks the control listener.
    pub(crate) fn control(&self, path: &str) -> Answer {
        let mut wire = Wire::new(TcpStream::connect(self.control).unwrap());
        write!(
            wire.stream,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {CONTROL_TOKEN}\r\n\
             Connection: close\r\n\r\n"
        )
        .unwrap();
        wire.answer("GET").unwrap()
    }

    /// The sum of all samples of a metric that have these labels.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let text = String::from_utf8(self.control("/metrics").body).unwrap();
        let samples = text.lines().filter(|line| {
            line.starts_with(name) && labels.iter().all(|label| line.contains(label))
        });
        samples
            .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .sum()
    }

    /// Stops the gateway and starts it anew, on the same state and the same ports.
    pub(crate) fn restart(&mut self) {
        self.stop();
        let start = || {
            let settings = Settings::parse("gateway.yaml", &self.yaml, self.folder.path()).unwrap();
            gateway::start(settings, self.clock.clone())
        };
        // The sockets of the one before close a moment after it has stopped.
        for _ in 0..500 {
            if let Ok(running) = start() {
                self.running = Some(running);
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not start again: {:?}", start().err());
    }

    /// The program that serves this gate's configuration: as often as it is started, on the same state and ports.
    /// `PORTVAKT_PROGRAM` names another build of it, such as the one that `make dist` makes.
    pub(crate) fn program(&self) -> Command {
        let program = std::env::var_os("PORTVAKT_PROGRAM");
        let mut program =
            Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_portvakt").into()));
        let config = self.folder.path().join("gateway.yaml");
        program.args(["serve", "--config"]).arg(config);
        program
    }

    /// Waits until the program answers on both ports; false where it has ended.
    pub(crate) fn is_up(&self, program: &mut Child) -> bool {
        let ports = [self.address, self.control];
        while ports.iter().any(|port| TcpStream::connect(port).is_err()) {
            if program.try_wait().unwrap().is_some() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Stops the gateway, so that whatever it had still under way is over.
    pub(crate) fn stop(&mut self) {
        self.running.take();
    }
}

impl GateBuilder {
    /// Another PKI.
    pub(crate) const fn world(mut self, world: &'static World) -> Self {
        self.world = world;
        self
    }

    /// Another clock.
    pub(crate) fn clock(mut self, clock: &Clock) -> Self {
        self.clock = clock.clone();
        self
    }

    /// Another environment.
    pub(crate) const fn environment(mut self, environment: &'static str) -> Self {
        self.environment = environment;
        self
    }

    /// Threads that serve requests, in place of one.
    pub(crate) const fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// A line of the section `listener`.
    pub(crate) fn listener(mut self, line: &str) -> Self {
        self.listener.push_str(&format!("  {line}\n"));
        self
    }

    /// A line of the section `upstream`.
    pub(crate) fn upstream(mut self, line: &str) -> Self {
        self.upstream.push_str(&format!("  {line}\n"));
        self
    }

    /// A line of the section `trust`.
    pub(crate) fn trust(mut self, line: &str) -> Self {
        self.trust.push_str(&format!("  {line}\n"));
        self
    }

    /// A gate that is told of no PSU.
    pub(crate) const fn strangers(mut self) -> Self {
        self.introducing = false;
        self
    }

    /// The core answers what the gateway would answer by itself (SCA-20).
    pub(crate) fn core_answers(self) -> Self {
        let names = [
            "user-register",
            "consent-create",
            "bank-offered-consent-create",
        ];
        let entries = names.map(|name| format!("  - {{name: {name}, answered_by: upstream}}\n"));
        self.line("operations: operations.yaml").file(
            "operations.yaml",
            format!("operations:\n{}", entries.concat()),
        )
    }

    /// Reads its configuration from a file, so that it can read it anew.
    pub(crate) const fn with_a_file(mut self) -> Self {
        self.from_file = true;
        self
    }

    /// Another core than the recording upstream.
    pub(crate) const fn core(mut self, address: SocketAddr) -> Self {
        self.core = Some(address);
        self
    }

    /// A line of the section `sca`.
    pub(crate) fn sca(mut self, line: &str) -> Self {
        self.sca.push_str(&format!("  {line}\n"));
        self
    }

    /// A line outside all sections.
    pub(crate) fn line(mut self, line: &str) -> Self {
        self.root.push_str(&format!("{line}\n"));
        self
    }

    /// A file in the configuration's folder; one of the PKI's files gives way to it.
    pub(crate) fn file(mut self, name: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((name.into(), content.into()));
        self
    }

    /// A file that only its owner may read.
    pub(crate) fn private_file(mut self, name: &str, content: impl Into<Vec<u8>>) -> Self {
        self.private.push(name.into());
        self.file(name, content)
    }

    /// Starts it.
    pub(crate) fn start(self) -> Gate {
        self.try_start().unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// Starts it as a program of its own, with its access log on. Its output can be read when it was stopped.
    pub(crate) fn start_program(self) -> (Gate, Child) {
        let gate = self.for_program();
        let mut program = gate.program();
        let program = program.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut program = program.spawn().unwrap();
        assert!(gate.is_up(&mut program), "it does not start");
        (gate, program)
    }

    /// A gate whose program is not started yet: see [`Gate::program`].
    pub(crate) fn for_program(self) -> Gate {
        let folder = TempDir::new().unwrap();
        self.world.write(folder.path());
        fs::write(folder.path().join("control.token"), CONTROL_TOKEN).unwrap();
        let upstream = Upstream::start();
        let (address, control) = (free_address(), free_address());
        let yaml = self.yaml(address, control, upstream.address());
        let yaml = yaml.replace("access: false", "access: true");
        fs::write(folder.path().join("gateway.yaml"), &yaml).unwrap();
        Gate {
            running: None,
            address,
            control,
            upstream,
            clock: self.clock,
            world: self.world,
            introduced: self.introducing.then(Mutex::default),
            folder,
            yaml,
        }
    }

    /// Starts it, or says why not.
    pub(crate) fn try_start(self) -> Result<Gate, String> {
        // As main does, first thing.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let folder = TempDir::new().unwrap();
        self.world.write(folder.path());
        fs::write(folder.path().join("control.token"), CONTROL_TOKEN).unwrap();
        for (name, content) in &self.files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        for name in &self.private {
            let mode = fs::Permissions::from_mode(0o600);
            fs::set_permissions(folder.path().join(name), mode).unwrap();
        }
        let upstream = Upstream::start();
        let yaml = self.yaml(free_address(), free_address(), upstream.address());
        let settings = if self.from_file {
            let config = folder.path().join("gateway.yaml");
            fs::write(&config, &yaml).unwrap();
            Settings::load(&config)
        } else {
            Settings::parse("gateway.yaml", &yaml, folder.path())
        };
        let settings = settings.map_err(|faults| faults.to_string())?;
        let running =
            gateway::start(settings, self.clock.clone()).map_err(|fault| fault.to_string())?;
        let (address, control) = (running.address(), running.control().tcp().unwrap());
        Ok(Gate {
            running: Some(running),
            address,
            control,
            upstream,
            clock: self.clock,
            world: self.world,
            introduced: self.introducing.then(Mutex::default),
            folder,
            yaml,
        })
    }

    fn yaml(&self, address: SocketAddr, control: SocketAddr, core: SocketAddr) -> String {
        let Self {
            environment,
            threads,
            listener,
            upstream,
            trust,
            sca,
            root,
            ..
        } = self;
        let core = self.core.unwrap_or(core);
        let guard = match *environment {
            "production" => "  token_file: control.token\n",
            _ => "",
        };
        // A test shows more certificates in a second than strangers may.
        let rates = if root.contains("rates:") {
            ""
        } else {
            "rates: {chains_per_address: off, chains: off}\n"
        };
        format!(
            "environment: {environment}\n\
             listener:\n  address: {address}\n  certificate: server.pem\n  key: server.key\n  threads: {threads}\n{listener}\
             control:\n  address: {control}\n{guard}\
             upstream:\n  address: {core}\n{upstream}\
             trust:\n  anchors: anchors\n  intermediates: intermediates\n{trust}\
             state:\n  file: state/portvakt.db\n  hash_key: state/hash.key\n\
             sca:\n  page: https://bank.example/sca\n  token_keys: sca.keys\n{sca}\
             {rates}log:\n  access: false\n{root}"
        )
    }
}

/// The PSU whom a call names, as the control listener is told.
fn who(call: &Call, sealed: &Sealed) -> Option<Value> {
    let mut who = json!({ "tpp": call.tpp().id()?, "psu_id": sealed.request.header("psu-id")? });
    if let Some(corporate) = sealed.request.header("psu-corporate-id") {
        who["psu_corporate_id"] = corporate.into();
    }
    Some(who)
}

/// A loopback address that nobody listens on. The kernel hands out ports above 32 767 to connections of its own choice, so that one
/// found by binding port 0 could be taken before the gateway binds it: these are below.
fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 100).unwrap() * 100;
    loop {
        let port = 20_000 + (first - 20_000 + NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
