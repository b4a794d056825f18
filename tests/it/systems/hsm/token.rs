//! A token of SoftHSM, and p11-kit's server for it, as processes.

use crate::harness::{Gate, Program, eventually, pki::Issued, write_private};
use std::{
    env::consts::ARCH,
    fs::{self, Permissions},
    os::unix::{fs::PermissionsExt, net::UnixStream, process::CommandExt},
    path::PathBuf,
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// The library of SoftHSM.
pub(super) const SOFTHSM: &str = "/usr/lib/softhsm/libsofthsm2.so";

/// The PIN of every token.
pub(super) const PIN: &str = "246810";

/// The value of the variable WRONG_PIN.
pub(super) const WRONG: &str = "975310";

/// A module of p11-kit or OpenSC, where Debian keeps it.
pub(super) fn module(name: &str) -> String {
    format!("/usr/lib/{ARCH}-linux-gnu/pkcs11/{name}")
}

/// A token, and its server where one was started. The label of the token is "bank".
pub(super) struct Hsm {
    folder: TempDir,
    server: Option<Program>,
}

impl Hsm {
    /// A token without a server, for a gateway that loads the library itself.
    pub(super) fn without_server() -> Self {
        let folder = TempDir::new().unwrap();
        let tokens = folder.path().join("tokens");
        fs::create_dir(&tokens).unwrap();
        let config = format!(
            "directories.tokendir = {}\nobjectstore.backend = file\nlog.level = ERROR\nslots.removable = false\n",
            tokens.display()
        );
        fs::write(folder.path().join("softhsm2.conf"), config).unwrap();
        let hsm = Self {
            folder,
            server: None,
        };
        hsm.add_token("bank");
        hsm
    }

    /// A token behind p11-kit.
    pub(super) fn start() -> Self {
        let mut hsm = Self::without_server();
        hsm.serve();
        hsm
    }

    /// Adds a token.
    pub(super) fn add_token(&self, label: &str) {
        let pins = ["--so-pin", "13579111", "--pin", PIN];
        self.softhsm(&[&["--init-token", "--free", "--label", label], &pins[..]].concat());
    }

    /// Puts a key into the token "bank", with a new id.
    pub(super) fn import(&self, label: &str, key_pem: &str, id: u8) {
        let path = self.folder.path().join("imported.key");
        write_private(&path, key_pem);
        let (path, id) = (path.display().to_string(), format!("{id:02x}"));
        let (key, token) = (["--import", &path], ["--token", "bank", "--pin", PIN]);
        self.softhsm(&[&key[..], &token, &["--label", label, "--id", &id]].concat());
    }

    fn softhsm(&self, arguments: &[&str]) {
        let mut program = Command::new("softhsm2-util");
        let output = self.for_process(&mut program).args(arguments).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
    }

    /// Changes the PIN of the token "bank", which was [`PIN`].
    pub(super) fn change_pin(&self, new: &str) {
        let mut program = Command::new("pkcs11-tool");
        let program = self.for_process(&mut program).args(["--module", SOFTHSM]);
        let program = program.args(["--token-label", "bank", "--login", "--pin", PIN]);
        let output = program.args(["--change-pin", "--new-pin", new]).output();
        assert!(output.unwrap().status.success());
    }

    /// Lets SoftHSM support one mechanism. Its list of excluded ones, which begins with "-", changes nothing in version 2.6.1.
    pub(super) fn support_only(&self, mechanism: &str) {
        let path = self.folder.path().join("softhsm2.conf");
        let config = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{config}slots.mechanisms = {mechanism}\n")).unwrap();
    }

    /// Whether `portvakt check` accepts the configuration of a gate, and what it prints.
    pub(super) fn check(&self, gate: &Gate) -> (bool, String) {
        let mut program = Command::new(gate.program().get_program());
        let program = self.for_process(&mut program);
        let program = program.args(["check", "--no-bind", "--config"]);
        let output = program.arg(gate.folder().join("gateway.yaml")).output();
        let output = output.unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }

    /// Starts p11-kit's server for SoftHSM.
    pub(super) fn serve(&mut self) {
        self.serve_by(SOFTHSM);
    }

    /// Starts p11-kit's server for a library. It replaces the socket that a killed one has left, and has a process for each client: all are
    /// one group.
    pub(super) fn serve_by(&mut self, library: &str) {
        let mut program = Command::new("p11-kit");
        program
            .args(["server", "-f", "-n"])
            .arg(self.socket())
            .args(["--provider", library, "pkcs11:token=bank"]);
        let program = self
            .for_process(&mut program)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.server = Some(Program(program.process_group(0).spawn().unwrap()));
        eventually("p11-kit's server", || {
            UnixStream::connect(self.socket()).is_ok()
        });
    }

    /// SIGKILL to the server and all its processes.
    pub(super) fn kill(&mut self) {
        self.signal("-KILL");
        self.server = None;
    }

    /// Sends a signal to the server and all its processes.
    pub(super) fn signal(&self, signal: &str) {
        if let Some(server) = &self.server {
            let group = format!("-{}", server.0.id());
            let sent = Command::new("kill").args([signal, "--", &group]).status();
            assert!(sent.unwrap().success());
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("p11-kit.sock")
    }

    /// The file in which pkcs11-spy writes calls.
    pub(super) fn calls(&self) -> String {
        let calls = fs::read(self.folder.path().join("calls")).unwrap_or_default();
        String::from_utf8_lossy(&calls).into_owned()
    }

    /// Compiles a module that passes calls to SoftHSM, and fails as [`Self::set_faults`] says.
    pub(super) fn faulty(&self) -> String {
        let [source, module] = ["faulty.c", "faulty.so"].map(|name| self.folder.path().join(name));
        fs::write(&source, include_str!("faulty.c")).unwrap();
        let mut compiler = Command::new("cc");
        let compiler = compiler.args(["-Wall", "-Werror", "-shared", "-fPIC", "-o"]);
        let output = compiler.arg(&module).arg(&source).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        fs::set_permissions(&module, Permissions::from_mode(0o755)).unwrap();
        module.display().to_string()
    }

    /// From now on, the faulty module has these faults: lines with a function and a fault, as in faulty.c.
    pub(super) fn set_faults(&self, faults: &str) {
        let path = self.folder.path().join("faults.new");
        fs::write(&path, faults).unwrap();
        // A reader never sees half of it.
        fs::rename(path, self.folder.path().join("faults")).unwrap();
    }

    /// The logins that the faulty module was asked for.
    pub(super) fn logins(&self) -> usize {
        fs::read(self.folder.path().join("logins")).map_or(0, |logins| logins.len())
    }

    /// A path in its folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The environment of a process that uses the token.
    pub(super) fn for_process<'a>(&self, program: &'a mut Command) -> &'a mut Command {
        let socket = format!("unix:path={}", self.socket().display());
        program
            .env("SOFTHSM2_CONF", self.folder.path().join("softhsm2.conf"))
            .env("P11_KIT_SERVER_ADDRESS", socket)
            .env("PKCS11SPY", SOFTHSM)
            .env("PKCS11SPY_OUTPUT", self.folder.path().join("calls"))
            .env("FAULTY_FOLDER", self.folder.path())
            .env("HSM_PIN", PIN)
            .env("WRONG_PIN", WRONG)
    }

    /// Starts the program of a gate with this environment.
    pub(super) fn run(&self, gate: &Gate) -> Program {
        gate.run_with_logs(self.for_process(&mut gate.program()))
    }
}

/// No process of the server outlives the test, and a stopped one ends too.
impl Drop for Hsm {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.kill();
        }
    }
}

/// The value of `key` for a key of the token "bank" behind p11-kit, with more keys.
pub(super) fn key(label: &str, more: &str) -> String {
    let client = module("p11-kit-client.so");
    format!(
        "{{pkcs11: {{module: {client}, token: bank, label: {label}, pin: '${{HSM_PIN}}'{more}}}}}"
    )
}

/// Lets a gate whose program is not started yet use another key of its listener.
pub(super) fn set_listener_key(gate: &Gate, key: &str) {
    let yaml = gate
        .yaml()
        .replace("  key: server.key\n", &format!("  key: {key}\n"));
    fs::write(gate.folder().join("gateway.yaml"), yaml).unwrap();
}

/// Replaces the listener's certificate of a gate.
pub(super) fn set_certificate(gate: &Gate, issued: &Issued) {
    fs::write(gate.folder().join("server.pem"), &issued.pem).unwrap();
}
