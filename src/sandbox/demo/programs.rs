//! The stand-in core and the gateway, each a child of this program.
//!
//! Invariant: dropping a [`Program`] kills and reaps its process, whether the demo ended well, failed or panicked. Deliberately
//! without graceful shutdown: SIGKILL is certain and immediate, and a demo has no pending work.

use super::fault::DemoFault;
use super::report::Report;
use super::setup::DemoSetup;
use portvakt::tools::tpp::{CallOptions, SignedRequest, call};
use portvakt_base::clock::Stopwatch;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::net::TcpStream;

/// The time-out of a program's start: several hundred times what it takes on an idle machine.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The interval at which a starting program is polled.
const ASK: Duration = Duration::from_millis(20);

/// The number of log lines shown when a program ends unexpectedly.
const TAIL: usize = 12;

/// The running programs.
#[derive(Debug, Default)]
pub(super) struct Programs {
    running: Vec<Program>,
}

impl Programs {
    /// Starts the stand-in core and waits until it listens.
    pub(super) async fn start_core(
        &mut self,
        setup: &DemoSetup,
        report: &mut Report<'_>,
    ) -> Result<(), DemoFault> {
        let watch = Stopwatch::start();
        report.begin("core", &format!("starts on http://{}", setup.upstream))?;
        let mut command = Command::new(&setup.sandbox);
        command
            .args(["core", "--listen", &setup.upstream.to_string()])
            .args(["--control", &format!("http://{}", setup.control), "--log"])
            .arg(setup.journal())
            .arg("--ledger")
            .arg(&setup.core.ledger)
            .args(["--issuer", &setup.core.issuer])
            .args(["--audience", &setup.core.audience])
            .arg("--tail")
            .arg(setup.access_log())
            .arg("--tail-key")
            .arg(setup.tail_key())
            .stdout(Stdio::null());
        let log = setup.logs.join("core.log");
        self.running.push(Program::start("the core", command, log)?);
        while TcpStream::connect(setup.upstream).await.is_err() {
            self.still_waiting(&watch, setup.upstream).await?;
        }
        Ok(report.end(watch.elapsed())?)
    }

    /// Starts the gateway and waits until it says that it is ready.
    pub(super) async fn start_gateway(
        &mut self,
        setup: &DemoSetup,
        report: &mut Report<'_>,
    ) -> Result<(), DemoFault> {
        let watch = Stopwatch::start();
        report.begin("gateway", &format!("starts on {}", setup.base_url()))?;
        let mut command = Command::new(&setup.portvakt);
        command
            .args(["serve", "--config"])
            .arg(&setup.config)
            .stdout(created(&setup.access_log())?);
        let program = Program::start("the gateway", command, setup.gateway_log())?;
        self.running.push(program);
        while !is_ready(setup).await {
            self.still_waiting(&watch, setup.control).await?;
        }
        Ok(report.end(watch.elapsed())?)
    }

    /// Checks that all of them still run.
    pub(super) fn check(&mut self) -> Result<(), DemoFault> {
        self.running.iter_mut().try_for_each(Program::check)
    }

    /// Waits before the next poll of the program that was started last.
    async fn still_waiting(
        &mut self,
        watch: &Stopwatch,
        address: SocketAddr,
    ) -> Result<(), DemoFault> {
        self.check()?;
        match self.running.last() {
            Some(program) if watch.elapsed() > READY_WITHIN => Err(DemoFault::Silent {
                name: program.name,
                address,
                waited: READY_WITHIN,
                log: program.log.clone(),
            }),
            _ => {
                tokio::time::sleep(ASK).await;
                Ok(())
            }
        }
    }
}

/// Runs the core's batch through the bank's own channel, which no TPP uses.
pub(super) async fn run_batch(setup: &DemoSetup, report: &mut Report<'_>) -> Result<(), DemoFault> {
    let request = SignedRequest {
        method: "POST".into(),
        target: "/v1/sandbox/batch".into(),
        headers: Vec::new(),
        body: None,
        signing_string: String::new(),
    };
    let base_url = format!("http://{}", setup.upstream);
    let answer = call(&request, &base_url, &CallOptions::default()).await?;
    let text = match answer.is_success() {
        true => "it is time for the next run of payments",
        false => "it refuses to run its payments",
    };
    Ok(report.step("the bank", text)?)
}

/// Whether the control listener answers /readyz with 200.
async fn is_ready(setup: &DemoSetup) -> bool {
    let question = SignedRequest {
        method: "GET".into(),
        target: "/readyz".into(),
        headers: Vec::new(),
        body: None,
        signing_string: String::new(),
    };
    let base_url = format!("http://{}", setup.control);
    let answer = call(&question, &base_url, &CallOptions::default()).await;
    answer.is_ok_and(|answer| answer.is_success())
}

/// One child.
#[derive(Debug)]
struct Program {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Program {
    /// Each child has its own process group: this program handles Ctrl-C, and a child ended by it would look like a failed one.
    fn start(name: &'static str, mut command: Command, log: PathBuf) -> Result<Self, DemoFault> {
        let child = command
            .stdin(Stdio::null())
            .stderr(created(&log)?)
            .process_group(0)
            .spawn();
        let child = child.map_err(DemoFault::of(Path::new(command.get_program())))?;
        Ok(Self { name, child, log })
    }

    fn check(&mut self) -> Result<(), DemoFault> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(self.died(status)),
        }
    }

    fn died(&self, status: ExitStatus) -> DemoFault {
        DemoFault::Died {
            name: self.name,
            status: status.to_string(),
            log: self.log.clone(),
            tail: tail(&self.log).unwrap_or_else(|fault| fault.to_string()),
        }
    }
}

/// Both calls fail only if the child has already ended.
impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn created(path: &Path) -> Result<File, DemoFault> {
    File::create(path).map_err(DemoFault::of(path))
}

fn tail(log: &Path) -> io::Result<String> {
    let text = String::from_utf8_lossy(&std::fs::read(log)?).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(TAIL);
    Ok(lines.get(from..).unwrap_or_default().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(folder: &Path) -> Program {
        let mut command = Command::new("sleep");
        command.arg("600");
        Program::start("the sleeper", command, folder.join("log")).unwrap()
    }

    /// Whether the process exists.
    fn is_there(id: u32) -> bool {
        let mut asked = Command::new("kill");
        asked.args(["-0", &id.to_string()]).stderr(Stdio::null());
        asked.status().unwrap().success()
    }

    #[test]
    fn a_child_ends_with_its_guard_even_in_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let program = sleeper(folder.path());
        let id = program.child.id();
        assert!(is_there(id));
        let panicked = std::thread::spawn(move || {
            let _program = program;
            panic!("a scene that panics");
        });
        assert!(panicked.join().is_err());
        assert!(!is_there(id));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("portvakt (deleted)");
        let log = folder.path().join("log");
        let said = Program::start("the gateway", Command::new(&gone), log).unwrap_err();
        let expected = format!("{}: No such file or directory (os error 2)", gone.display());
        assert_eq!(said.to_string(), expected);
    }

    #[test]
    fn a_child_that_ends_is_reported_with_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "seq 20 >&2; exit 3"]);
        let mut program = Program::start("the shell", command, folder.path().join("log")).unwrap();
        program.child.wait().unwrap();
        let said = program.check().unwrap_err().to_string();
        assert!(
            said.contains("the shell ended by itself (exit status: 3)"),
            "{said}"
        );
        assert!(
            said.ends_with("\n19\n20") && !said.contains("\n8\n"),
            "{said}"
        );
    }
}
