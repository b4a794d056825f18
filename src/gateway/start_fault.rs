//! The reasons why a gateway does not start, in words that say what to change.

use super::descriptors::DescriptorFault;
use crate::{
    audit::AuditFault,
    config::ControlAddress,
    sca::KeyFault,
    signing::AssertionKeyFault,
    state::OpenFault,
    telemetry::{LogFault, TraceFault},
};
use std::{
    fmt,
    io::{self, ErrorKind},
    net::SocketAddr,
    path::PathBuf,
    time::Duration,
};

/// Ports below this one need a privilege on most systems.
const FIRST_UNPRIVILEGED: u16 = 1024;

/// The reason why a gateway does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    /// The address of the public listener cannot be used.
    #[error("listener.address: cannot listen on {0}: {1}{hint}", hint = hint(Some(*.0), .1))]
    Listen(SocketAddr, io::Error),
    /// The service manager passed sockets that no listener uses.
    #[error(
        "the process was started with sockets that no listener uses: {0}; a listener uses one socket, for listener.address, control.address or control.socket"
    )]
    Unused(String),
    /// The sockets cannot be kept for an upgrade.
    #[error("the listening sockets cannot be copied: {0}")]
    Shared(io::Error),
    /// The control listener cannot listen.
    #[error("control: cannot listen on {0}: {1}{hint}", hint = hint(.0.tcp(), .1))]
    Control(ControlAddress, io::Error),
    /// The keys of SCA tokens cannot be read or created (SCA-12).
    #[error("sca.token_keys: {0}: {1}")]
    TokenKeys(PathBuf, KeyFault),
    /// The counts of the seals of SCA tokens cannot be kept (SCA-12).
    #[error("sca.token_seals: {0}: {1}")]
    TokenSeals(PathBuf, io::Error),
    /// The key of assertions cannot be read or created (FWD-1).
    #[error("assertion.key: {0}: {1}")]
    AssertionKey(PathBuf, AssertionKeyFault),
    /// The process may open too few file descriptors.
    #[error("listener.max_connections: {0}")]
    Descriptors(DescriptorFault),
    /// The file of the access log cannot be opened.
    #[error("log.access_file: {0}")]
    AccessLog(LogFault),
    /// The traces cannot be pushed.
    #[error("traces: {0}")]
    Traces(TraceFault),
    /// The file of the events cannot be opened.
    #[error("log.events_file: {0}")]
    EventLog(LogFault),
    /// The audit cannot be opened or created.
    #[error("audit.folder: {0}")]
    Audit(AuditFault),
    /// The state cannot be opened or created.
    #[error("state: {0}")]
    State(OpenFault),
    /// The process before does not end.
    #[error(
        "the process before has not ended within {} s, so the schema of the state cannot be migrated: stop it, then start this one", .0.as_secs()
    )]
    Predecessor(Duration),
    /// A signal came before this process served.
    #[error("told to stop before the schema of the state was migrated: nothing changed")]
    Stopped,
    /// The process before cannot be waited for, and goes on.
    #[error(
        "the schema of the state cannot be migrated, since the process before cannot be waited for: {0}"
    )]
    PredecessorUnknown(io::Error),
    /// The thread that checks revocation cannot start.
    #[error("revocation cannot be checked: {0}")]
    Revocation(String),
    /// The thread that checks endpoints and resolves their names cannot start.
    #[error("endpoints cannot be checked: {0}")]
    Upstreams(io::Error),
    /// pingora's server failed to start.
    #[error("the proxy failed to start: {0}")]
    Proxy(String),
}

/// All reasons that were found: at least one.
#[derive(Debug)]
pub struct StartFaults(Vec<StartFault>);

impl StartFaults {
    /// `value`, unless there are faults.
    pub(super) fn or<T>(faults: Vec<StartFault>, value: T) -> Result<T, Self> {
        if faults.is_empty() {
            Ok(value)
        } else {
            Err(Self(faults))
        }
    }

    /// The faults.
    pub fn iter(&self) -> std::slice::Iter<'_, StartFault> {
        self.0.iter()
    }
}

impl From<StartFault> for StartFaults {
    fn from(fault: StartFault) -> Self {
        Self(vec![fault])
    }
}

impl fmt::Display for StartFaults {
    /// One fault per line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            fault.fmt(formatter)?;
        }
        Ok(())
    }
}

impl std::error::Error for StartFaults {}

/// What to change where a socket cannot be bound.
fn hint(address: Option<SocketAddr>, error: &io::Error) -> &'static str {
    let is_privileged = address.is_some_and(|address| address.port() < FIRST_UNPRIVILEGED);
    match error.kind() {
        ErrorKind::AddrInUse => {
            "; another process listens there: stop it, or name another address (a check beside a running gateway or a socket unit needs --no-bind)"
        }
        ErrorKind::AddrNotAvailable => {
            "; no network interface of this machine has this address: name one that \"ip address\" shows, or 0.0.0.0 or [::] for all"
        }
        ErrorKind::PermissionDenied if is_privileged => {
            "; a port below 1024 needs a privilege: AmbientCapabilities=CAP_NET_BIND_SERVICE of systemd, or a port from 1024 on behind a redirection"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_what_to_change() {
        for (address, kind, expected) in [
            (
                "0.0.0.0:443",
                ErrorKind::PermissionDenied,
                "CAP_NET_BIND_SERVICE",
            ),
            ("0.0.0.0:443", ErrorKind::AddrInUse, "--no-bind"),
            (
                "192.0.2.1:8443",
                ErrorKind::AddrNotAvailable,
                "no network interface",
            ),
        ] {
            let fault = StartFault::Listen(address.parse().unwrap(), kind.into());
            let text = fault.to_string();
            assert!(text.contains(expected) && text.contains(address), "{text}");
        }
        let denied = io::Error::from(ErrorKind::PermissionDenied);
        assert_eq!(hint("0.0.0.0:8443".parse().ok(), &denied), "");
    }
}
