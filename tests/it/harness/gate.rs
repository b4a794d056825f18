//! A gateway with an upstream, each on its own port. Dropping the gate stops both.

use super::{
    address::free_address,
    call::{Call, Protocol, Sealed},
    h1::{Connection, connect_plainly},
    h2,
    program::{Program, to_files},
    upstream::Upstream,
    waiting::{LIMIT, eventually},
    wire::{Answer, Wire},
    world::{World, world, write_private},
};
use portvakt::{
    clock::{Clock, Timestamp},
    config::Settings,
    gateway::{self, Running},
};
use serde_json::{Value, json};
use std::{
    array,
    collections::HashSet,
    fs,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Mutex,
    thread,
    time::Duration,
};
use tempfile::TempDir;

/// The bearer token of the control listener in production; a sandbox requires none.
const CONTROL_TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A running gateway.
pub(crate) struct Gate {
    running: Option<Running>,
    address: SocketAddr,
    control: SocketAddr,
    upstream: Upstream,
    clock: Clock,
    world: &'static World,
    /// The PSUs that were reported to the gate; `None` if the gate is to know no PSU.
    introduced: Option<Mutex<HashSet<Value>>>,
    folder: TempDir,
    yaml: String,
}

/// The settings of a gateway before its start.
pub(crate) struct GateBuilder {
    environment: &'static str,
    world: &'static World,
    clock: Clock,
    threads: usize,
    listener: String,
    upstream: String,
    trust: String,
    sca: String,
    state: String,
    core: Option<SocketAddr>,
    groups: Option<String>,
    root: String,
    files: Vec<(String, Vec<u8>)>,
    private: Vec<String>,
    introducing: bool,
    from_file: bool,
    /// The folder of the state and its keys; empty for the gate's own.
    home: String,
}

impl Gate {
    /// A gateway with default settings.
    pub(crate) fn start() -> Self {
        Self::builder().start()
    }

    /// A gateway with changed settings.
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
            state: String::new(),
            core: None,
            groups: None,
            root: String::new(),
            files: Vec::new(),
            private: Vec::new(),
            introducing: true,
            from_file: false,
            home: String::new(),
        }
    }

    /// The address of the public listener.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the control listener.
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

    /// The folder of the configuration. It holds `gateway.yaml` if the gate was started from a file.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The configuration at the start.
    pub(crate) fn yaml(&self) -> &str {
        &self.yaml
    }

    /// Signs a call by the gate's clock, and reports the PSU to the gate, unless the gate is to know no PSU.
    pub(crate) fn seal(&self, call: &Call) -> Sealed {
        let sealed = call.seal(self.now());
        if let Some(introduced) = &self.introduced
            && let Some(who) = who(call, &sealed)
        {
            // Another caller for the same PSU waits until the gate knows the PSU.
            let mut introduced = introduced.lock().unwrap();
            if introduced.insert(who.clone()) {
                self.introduce(who);
            }
        }
        sealed
    }

    /// Reports a PSU who has just completed an SCA and given consent.
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

    /// The same, but the control listener may be unavailable.
    pub(crate) fn try_tell(&self, path: &str, body: &Value) -> io::Result<Answer> {
        let stream = connect_plainly(self.control)?;
        // A reload reads hundreds of megabytes, on a busy machine in minutes.
        stream.set_read_timeout(Some(5 * LIMIT))?;
        let mut wire = Wire::new(stream);
        let body = body.to_string();
        write!(
            wire.reader.stream,
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

    /// Sends a request unchanged on a new connection.
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

    /// The first refusal by a rate of few requests a second (429, or 503 of a chain). Rates go by the machine's time: four calls that were
    /// signed before come at once, again and again, so that a slow machine exceeds the rate too.
    pub(crate) fn exceed(&self, mut call: impl FnMut() -> Call) -> Answer {
        eventually("a rate is exceeded", || {
            let sealed: [Sealed; 4] = array::from_fn(|_| self.seal(&call()));
            let answers = thread::scope(|scope| {
                let send = |sealed| self.send_sealed(sealed, Protocol::Http1).unwrap();
                let sent = sealed
                    .each_ref()
                    .map(|sealed| scope.spawn(move || send(sealed)));
                sent.map(|sent| sent.join().unwrap())
            });
            let is_held = |answer: &Answer| [429, 503].contains(&answer.status);
            answers.into_iter().find(is_held)
        })
    }

    /// Sends a request to the control listener.
    pub(crate) fn control(&self, path: &str) -> Answer {
        let mut wire = Wire::new(connect_plainly(self.control).unwrap());
        write!(
            wire.reader.stream,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {CONTROL_TOKEN}\r\n\
             Connection: close\r\n\r\n"
        )
        .unwrap();
        wire.answer("GET").unwrap()
    }

    /// The sum of all samples of a metric with these labels, as they are now. The name must be exact.
    pub(crate) fn metric_now(&self, name: &str, labels: &[&str]) -> f64 {
        let text = String::from_utf8(self.control("/metrics").body).unwrap();
        let samples = text.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        });
        samples
            .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .sum()
    }

    /// The same once no request is in flight: a request is counted when its answer is written, which its client may notice first.
    pub(crate) fn metric_at_rest(&self, name: &str, labels: &[&str]) -> f64 {
        self.eventually_metric("portvakt_requests_in_flight", &[], 0.0);
        self.metric_now(name, labels)
    }

    /// Waits until a metric has this value.
    #[track_caller]
    pub(crate) fn eventually_metric(&self, name: &str, labels: &[&str], expected: f64) {
        self.eventually_metric_is(name, labels, &format!("is {expected}"), |value| {
            (value - expected).abs() < 1e-6
        });
    }

    /// Waits until a condition on a metric holds, and returns its value.
    #[track_caller]
    pub(crate) fn eventually_metric_is(
        &self,
        name: &str,
        labels: &[&str],
        what: &str,
        holds: impl Fn(f64) -> bool,
    ) -> f64 {
        eventually(&format!("{name} {labels:?} {what}"), || {
            let value = self.metric_now(name, labels);
            holds(value).then_some(value).ok_or(value)
        })
    }

    /// Restarts the gateway with the same state and the same ports.
    pub(crate) fn restart(&mut self) {
        self.stop();
        let start = || {
            let settings = Settings::parse("gateway.yaml", &self.yaml, self.folder.path()).unwrap();
            gateway::start(settings, self.clock.clone())
        };
        // The sockets of the previous gateway close a moment after its stop.
        let running = eventually("the gateway starts again", || {
            start().map_err(|fault| fault.to_string())
        });
        self.running = Some(running);
    }

    /// Starts the program with this gate's configuration. Each start uses the same state and ports.
    /// `PORTVAKT_PROGRAM` names another build of the program, such as the one that `make dist` makes.
    pub(crate) fn program(&self) -> Command {
        let program = std::env::var_os("PORTVAKT_PROGRAM");
        let mut program =
            Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_portvakt").into()));
        let config = self.folder.path().join("gateway.yaml");
        program.args(["serve", "--config"]).arg(config);
        program
    }

    /// Starts a program of this gate, and waits until it answers on both ports.
    pub(crate) fn run(&self, program: &mut Command) -> Program {
        let mut program = Program(program.spawn().unwrap());
        assert!(self.is_up(&mut program.0), "it does not start");
        program
    }

    /// The same, without its standard output and standard error.
    pub(crate) fn run_silently(&self, program: &mut Command) -> Program {
        self.run(program.stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// The same, with its access log in the file `gateway.log` of the folder, and its events in `gateway.events`.
    pub(crate) fn run_with_logs(&self, program: &mut Command) -> Program {
        self.run(to_files(program, &self.folder().join("gateway")))
    }

    /// Waits until the program answers on both ports; false if the program has ended. A start first tries each port, and resets who came
    /// to that trial: so the control listener has to answer.
    pub(crate) fn is_up(&self, program: &mut Child) -> bool {
        let is_answered = || -> io::Result<()> {
            let mut stream = TcpStream::connect(self.control)?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            stream.write_all(
                b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            )?;
            stream.read(&mut [0]).map(drop)
        };
        eventually("the program answers on both ports, or has ended", || {
            let answers = is_answered().is_ok() && TcpStream::connect(self.address).is_ok();
            let ended = !answers && program.try_wait().unwrap().is_some();
            (answers || ended).then_some(answers)
        })
    }

    /// Stops the gateway, so that no request or task is still running.
    pub(crate) fn stop(&mut self) {
        self.running.take();
    }
}

impl GateBuilder {
    /// Replaces the PKI.
    pub(crate) const fn world(mut self, world: &'static World) -> Self {
        self.world = world;
        self
    }

    /// Replaces the clock.
    pub(crate) fn clock(mut self, clock: &Clock) -> Self {
        self.clock = clock.clone();
        self
    }

    /// Replaces the environment.
    pub(crate) const fn environment(mut self, environment: &'static str) -> Self {
        self.environment = environment;
        self
    }

    /// The number of threads that serve requests; the default is one.
    pub(crate) const fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Adds a line to the section `listener`.
    pub(crate) fn listener(mut self, line: &str) -> Self {
        self.listener.push_str(&format!("  {line}\n"));
        self
    }

    /// Adds a line to the section `upstream`.
    pub(crate) fn upstream(mut self, line: &str) -> Self {
        self.upstream.push_str(&format!("  {line}\n"));
        self
    }

    /// Adds a line to the section `trust`.
    pub(crate) fn trust(mut self, line: &str) -> Self {
        self.trust.push_str(&format!("  {line}\n"));
        self
    }

    /// Reports no PSU to the gate.
    pub(crate) const fn strangers(mut self) -> Self {
        self.introducing = false;
        self
    }

    /// The core answers the operations that the gateway answers by default (SCA-20).
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

    /// Reads the configuration from a file, so that a reload is possible.
    pub(crate) const fn with_a_file(mut self) -> Self {
        self.from_file = true;
        self
    }

    /// Replaces the recording upstream by another core.
    pub(crate) const fn core(mut self, address: SocketAddr) -> Self {
        self.core = Some(address);
        self
    }

    /// Replaces the section `upstream` by groups of endpoints, as a YAML mapping on one line.
    pub(crate) fn groups(mut self, groups: &str) -> Self {
        self.groups = Some(groups.to_owned());
        self
    }

    /// Adds a line to the section `sca`.
    pub(crate) fn sca(mut self, line: &str) -> Self {
        self.sca.push_str(&format!("  {line}\n"));
        self
    }

    /// Uses the state of another gate, and its keys.
    pub(crate) fn shares(mut self, gate: &Gate) -> Self {
        self.home = format!("{}/", gate.folder().display());
        self
    }

    /// Adds a line to the section `state`.
    pub(crate) fn state(mut self, line: &str) -> Self {
        self.state.push_str(&format!("  {line}\n"));
        self
    }

    /// Adds a line outside all sections.
    pub(crate) fn line(mut self, line: &str) -> Self {
        self.root.push_str(&format!("{line}\n"));
        self
    }

    /// Adds a file to the folder of the configuration. The file replaces a file of the PKI with the same name.
    pub(crate) fn file(mut self, name: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((name.into(), content.into()));
        self
    }

    /// Adds a file that only its owner may read.
    pub(crate) fn private_file(mut self, name: &str, content: impl Into<Vec<u8>>) -> Self {
        self.private.push(name.into());
        self.file(name, content)
    }

    /// Starts the gateway in this process.
    pub(crate) fn start(self) -> Gate {
        self.try_start().unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// Starts the gateway as a separate process with its access log on. The output can be read after the stop.
    pub(crate) fn start_program(self) -> (Gate, Child) {
        let gate = self.for_program();
        let mut program = gate.program();
        let program = program.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut program = program.spawn().unwrap();
        assert!(gate.is_up(&mut program), "it does not start");
        (gate, program)
    }

    /// A gate whose program is not started yet; [`Gate::program`] starts it.
    pub(crate) fn for_program(self) -> Gate {
        let folder = TempDir::new().unwrap();
        self.write_files(folder.path());
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

    /// Starts the gateway, or returns the error.
    pub(crate) fn try_start(self) -> Result<Gate, String> {
        // `main` does the same first.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let folder = TempDir::new().unwrap();
        self.write_files(folder.path());
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

    /// Writes the files of the configuration.
    fn write_files(&self, folder: &Path) {
        self.world.write(folder);
        write_private(&folder.join("control.token"), CONTROL_TOKEN);
        for (name, content) in &self.files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        for name in &self.private {
            let mode = fs::Permissions::from_mode(0o600);
            fs::set_permissions(folder.join(name), mode).unwrap();
        }
    }

    fn yaml(&self, address: SocketAddr, control: SocketAddr, core: SocketAddr) -> String {
        let Self {
            environment,
            threads,
            listener,
            upstream,
            trust,
            sca,
            state,
            root,
            home,
            ..
        } = self;
        let core = self.core.unwrap_or(core);
        let core = match &self.groups {
            Some(groups) => format!("upstreams: {groups}\n"),
            None => format!("upstream:\n  address: {core}\n{upstream}"),
        };
        let guard = match *environment {
            "production" => "  token_file: control.token\n",
            _ => "",
        };
        // A test presents more certificates, and changes more, in a second than the default limits allow.
        let rates = if root.contains("rates:") {
            ""
        } else {
            "rates: {unsafe_per_tpp: off, chains_per_address: off, chains: off}\n"
        };
        // A test that sends SIGTERM has no balancer, unless it says so.
        let shutdown = if root.contains("shutdown:") {
            ""
        } else {
            "shutdown: {lame_duck: 0s}\n"
        };
        // Files that change are read when the test says so. With `off`, those that are as new as the start would be read once more.
        assert!(!root.contains("watch: off"), "name a long time");
        let reload = if root.contains("reload:") {
            ""
        } else {
            "reload: {watch: 1h}\n"
        };
        // On a busy machine, a gateway would refuse new connections of any test.
        let overload = if listener.contains("overload_delay:") {
            ""
        } else {
            "  overload_delay: off\n"
        };
        format!(
            "environment: {environment}\n\
             listener:\n  address: {address}\n  certificate: server.pem\n  key: server.key\n  threads: {threads}\n{listener}{overload}\
             control:\n  address: {control}\n{guard}\
             {core}\
             trust:\n  anchors: anchors\n  intermediates: intermediates\n{trust}\
             state:\n  file: {home}state/portvakt.db\n  hash_key: {home}state/hash.key\n{state}\
             sca:\n  page: https://bank.example/sca\n  token_keys: {home}sca.keys\n{sca}\
             {rates}{shutdown}{reload}log:\n  access: false\n{root}"
        )
    }
}

/// The PSU of a call, in the form that the control listener reads.
fn who(call: &Call, sealed: &Sealed) -> Option<Value> {
    let mut who = json!({ "tpp": call.tpp().id()?, "psu_id": sealed.request.header("psu-id")? });
    if let Some(corporate) = sealed.request.header("psu-corporate-id") {
        who["psu_corporate_id"] = corporate.into();
    }
    Some(who)
}
