//! The addresses, programs and files of one demo.
//!
//! Invariant: the folder of the logs belongs to this demo alone. Deliberately not here: starting the programs (programs.rs).

use super::fault::DemoFault;
use std::fs::DirBuilder;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The addresses, programs and logs.
#[derive(Debug)]
pub(super) struct DemoSetup {
    /// The port of the gateway's listener.
    port: u16,
    /// The gateway's control listener.
    pub(super) control: SocketAddr,
    /// The core's listener.
    pub(super) upstream: SocketAddr,
    /// The gateway's program.
    pub(super) portvakt: PathBuf,
    /// A folder of this demo alone, for what its programs write.
    pub(super) logs: PathBuf,
    /// This program.
    pub(super) sandbox: PathBuf,
    /// The gateway's configuration.
    pub(super) config: PathBuf,
    /// The core's settings.
    pub(super) core: CoreSettings,
}

/// How the core is started.
#[derive(Debug)]
pub(super) struct CoreSettings {
    /// Where it listens.
    pub(super) upstream: SocketAddr,
    /// The file of its ledger, beside the gateway's state.
    pub(super) ledger: PathBuf,
    /// The issuer of the gateway's assertions.
    pub(super) issuer: String,
    /// Their audience.
    pub(super) audience: String,
}

impl DemoSetup {
    /// Finds the gateway's program, and creates the folder of the logs.
    pub(super) fn new(
        config: &Path,
        listener: SocketAddr,
        control: SocketAddr,
        core: CoreSettings,
    ) -> Result<Self, DemoFault> {
        let sandbox = std::env::current_exe()?;
        let portvakt = sandbox.with_file_name("portvakt");
        if !portvakt.is_file() {
            return Err(DemoFault::NoGateway(portvakt));
        }
        let name = format!("portvakt-demo-{}", Uuid::new_v4().simple());
        let logs = std::env::temp_dir().join(name);
        // The folder is new: an existing one is refused, not used.
        DirBuilder::new()
            .mode(0o700)
            .create(&logs)
            .map_err(DemoFault::of(&logs))?;
        Ok(Self {
            port: listener.port(),
            control,
            upstream: core.upstream,
            core,
            portvakt,
            logs,
            sandbox,
            config: config.to_owned(),
        })
    }

    /// Where a TPP calls, by the name in the server's certificate.
    pub(super) fn base_url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// One line of JSON for each request that the core saw.
    pub(super) fn journal(&self) -> PathBuf {
        self.logs.join("core.jsonl")
    }

    /// The gateway's access log.
    pub(super) fn access_log(&self) -> PathBuf {
        self.logs.join("access.jsonl")
    }

    /// The key of the tokens that show TPPs their own requests, beside the ledger: it stays the same in the next demo.
    pub(super) fn tail_key(&self) -> PathBuf {
        self.core.ledger.with_file_name("sandbox-tail.key")
    }

    /// The gateway's events.
    pub(super) fn gateway_log(&self) -> PathBuf {
        self.logs.join("gateway.log")
    }
}
