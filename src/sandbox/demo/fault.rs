//! Why a demo ends early or fails, with what to change.
//!
//! Deliberately not here: a scene's own unexpected result, which the report shows.

use portvakt::tools::tpp::TppFault;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The reason why a demo ends early or fails.
#[derive(Debug, thiserror::Error)]
pub(super) enum DemoFault {
    /// The configuration cannot be used.
    #[error("the configuration cannot be used:\n{0}")]
    Configuration(String),
    /// The listener cannot be reached from this machine under the name in its certificate.
    #[error(
        "{} lets TPPs call {address}: for the demo, set listener.address to a loopback address, such as 127.0.0.1:8443", config.display()
    )]
    NotLocal {
        /// The configuration.
        config: PathBuf,
        /// Its listener.
        address: SocketAddr,
    },
    /// An address cannot be listened on.
    #[error(
        "{address} is not free ({source}). Stop what listens there, or set {key} in {} to another port", config.display()
    )]
    Taken {
        /// The configuration.
        config: PathBuf,
        /// The key in it that names the address.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The simulated core has no address to listen on.
    #[error(
        "{} names the core: for the demo, set upstream.address to a loopback address, such as 127.0.0.1:8080", .0.display()
    )]
    NamedCore(PathBuf),
    /// The stand-in core cannot end an SCA.
    #[error(
        "{} has a control listener that the stand-in core cannot call: for the demo, set control.address to a loopback address, without socket, token_file, certificate and hosts", .0.display()
    )]
    NoControl(PathBuf),
    /// The core could not tell the gateway from anybody else.
    #[error("{} has no assertion.key: for the demo, set it to ../state/assertion.key, so that the core answers the gateway alone", .0.display())]
    NotAsserted(PathBuf),
    /// The links point to another page than the stand-in core's.
    #[error("{} sends PSUs to {page}: for the demo, set sca.page to {expected}", config.display())]
    OtherPage {
        /// The configuration.
        config: PathBuf,
        /// Its page.
        page: String,
        /// The stand-in core's.
        expected: String,
    },
    /// The gateway's program is not beside this one.
    #[error("{} is not there: build it with `cargo build --features sandbox --bins`", .0.display())]
    NoGateway(PathBuf),
    /// A program ended unexpectedly.
    #[error("{name} ended by itself ({status}). The end of what it wrote to {}:\n{tail}", log.display())]
    Died {
        /// Which one.
        name: &'static str,
        /// How it ended.
        status: String,
        /// Its standard error.
        log: PathBuf,
        /// The last lines of that.
        tail: String,
    },
    /// A program runs, but does not listen.
    #[error("{name} does not answer on {address} after {} s; what it wrote stands in {}", waited.as_secs(), log.display())]
    Silent {
        /// Which one.
        name: &'static str,
        /// Where it should.
        address: SocketAddr,
        /// How long it was given.
        waited: Duration,
        /// Its standard error.
        log: PathBuf,
    },
    /// SIGINT, SIGTERM or SIGHUP before the last scene.
    #[error("interrupted")]
    Interrupted,
    /// A scene had an unexpected result.
    #[error("{0} of {1} scenes went otherwise than expected: see ✗ above")]
    Unexpected(usize, usize),
    /// A request could not be signed.
    #[error(transparent)]
    Tpp(#[from] TppFault),
    /// A program cannot be started, or a file cannot be read or made.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A child or the terminal failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl DemoFault {
    /// The fault of a file or a program.
    pub(super) fn of(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::File {
            path: path.to_owned(),
            source,
        }
    }
}
