//! The typed settings of the gateway.
//!
//! Every setting is either [`Fixed`] or [`Reloadable`]. Invariant: existing [`Settings`] can be started: each address is
//! usable, the key fits the certificate, the snapshot is built, and no file has to be read again. A reload loads the file
//! again. Deliberately not here: the use of a setting.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::audit::AuditSettings;
use super::control::{ControlAccess, ControlAddress};
use super::endpoints::Listener;
use super::log::Log;
use super::server_certificates::ServerCertificates;
use super::shutdown::Shutdown;
use super::ticket_keys::TicketKeys;
use super::traces::TraceSettings;
use super::trust::TrustFiles;
use super::upstreams::Upstreams;
use super::warning::Warning;
use crate::admission::Snapshot;
use crate::clock::LogTime;
use crate::interface::openapi;
use crate::interface::operations::Environment;
use crate::sca::ScaSettings;
use crate::signing::{AnswerSigning, AssertionSettings};
use crate::state::StateSettings;

/// All settings of a gateway.
///
/// The struct has these two fields and no other, so that the author of a new setting decides whether a reload replaces it.
///
/// `Debug` shows no key: rustls names a key's algorithm only.
#[derive(Debug)]
pub struct Settings {
    /// The settings that only a restart changes.
    pub fixed: Fixed,
    /// The settings that a reload replaces.
    pub reloadable: Reloadable,
}

/// The settings that only a restart changes.
#[derive(Debug, PartialEq)]
pub struct Fixed {
    /// The environment (CRT-9). A reload with another environment is refused, since state and keys belong to one environment.
    pub environment: Environment,
    /// `system` of every error body (ERR-1). Default `portvakt`.
    pub system: String,
    /// The public listener.
    pub listener: Listener,
    /// The address of the control listener.
    pub control: ControlAddress,
    /// The files and limits of the state. Default `../state/portvakt.db` and `../state/hash.key`.
    pub state: StateSettings,
    /// The times of a shutdown.
    pub shutdown: Shutdown,
    /// The access log and the log level.
    pub log: Log,
    /// The traces; `None`, the default: no spans are made.
    pub traces: Option<TraceSettings>,
    /// The audit; `None` if it is off, the default in the sandbox.
    pub audit: Option<AuditSettings>,
    /// The interval of checks for changed files (CRT-8); `None` if they are off. Default 5 s.
    pub watch: Option<Duration>,
}

/// The settings that a reload replaces, all at once (CRT-8).
#[derive(Debug)]
pub struct Reloadable {
    /// The certificates of the public listener, with their keys.
    pub certificates: Arc<ServerCertificates>,
    /// The keys of TLS session tickets that replicas share. `None`, the default: each process has its own.
    pub ticket_keys: Option<Arc<TicketKeys>>,
    /// The access rules of the control listener.
    pub control: ControlAccess,
    /// The core: groups of endpoints, and the operations that each answers (FWD-3).
    pub upstreams: Upstreams,
    /// The settings of SCA: the bank's page and the keys of its links.
    pub sca: ScaSettings,
    /// The signing of assertions to the core (FWD-1). `None`, the default: no assertions.
    pub assertion: Option<AssertionSettings>,
    /// The signing of answers (SIG-12). `None`, the default: no signatures.
    pub response_signing: Option<AnswerSigning>,
    /// The policy, catalogue and trust that judge requests.
    pub snapshot: Snapshot,
    /// The folders of the snapshot's trust anchors and intermediates.
    pub trust: TrustFiles,
    /// The file of the snapshot's catalogue (HTTP-11). None by default.
    pub operations: Option<PathBuf>,
    /// The conditions of these settings that the operator should change.
    pub warnings: Vec<Warning>,
    /// The files and folders that these settings were read from, which are checked for changes. Files that the gateway writes
    /// itself are not included.
    pub files: ReadFiles,
}

/// What a configuration says, and what two replicas are compared by. It holds no secret.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The configuration in effect, as YAML.
    pub text: String,
    /// The SHA-256 of the text, in hexadecimal digits.
    pub hash: String,
    /// The SHA-256 over the public files that it names, in hexadecimal digits. Registers, bundles, CRLs and OCSP responses are left out, because
    /// replicas fetch them at different times.
    pub files_hash: String,
}

/// The files and folders that a configuration was read from.
#[derive(Clone, Debug, Default)]
pub struct ReadFiles {
    /// The configuration file itself; `None` if the text did not come from a file.
    pub source: Option<PathBuf>,
    /// The files and folders that it names.
    pub named: Vec<PathBuf>,
    /// The time from which they were read, by the machine's clock.
    pub since: LogTime,
    /// What the configuration says; `None` if the text did not come from a file.
    pub shown: Option<Shown>,
}

impl Settings {
    /// The OpenAPI description of these settings' interface.
    pub fn openapi(&self) -> serde_json::Value {
        self.reloadable.openapi(&self.fixed)
    }
}

impl Fixed {
    /// The keys whose values differ in `other`, in the order of the file. The environment is excluded: a reload with another
    /// one is refused.
    pub fn changed_keys(&self, other: &Self) -> Vec<&'static str> {
        // Destructured without `..`, so that each new setting must be compared too.
        let Self {
            environment: _,
            system,
            listener,
            control,
            state,
            shutdown,
            log,
            traces,
            audit,
            watch,
        } = self;
        let Listener {
            address,
            client_auth,
            threads,
            proxies,
            hsts,
            description,
            documentation,
            limits,
            body_timeout,
            keepalive,
        } = listener;
        let listened = &other.listener;
        let same = [
            ("system", *system == other.system),
            ("listener.address", *address == listened.address),
            ("listener.client_auth", *client_auth == listened.client_auth),
            ("listener.threads", *threads == listened.threads),
            (
                "listener.trusted_proxies",
                proxies.networks == listened.proxies.networks,
            ),
            (
                "listener.client_address",
                proxies.client_address == listened.proxies.client_address,
            ),
            (
                "listener.body_timeout",
                *body_timeout == listened.body_timeout,
            ),
            ("listener.hsts", *hsts == listened.hsts),
            ("listener.description", *description == listened.description),
            (
                "listener.documentation",
                *documentation == listened.documentation,
            ),
            ("listener.keepalive", *keepalive == listened.keepalive),
            ("control.address", *control == other.control),
            ("state", *state == other.state),
            ("shutdown", *shutdown == other.shutdown),
            ("log", *log == other.log),
            ("traces", *traces == other.traces),
            ("audit", *audit == other.audit),
            ("reload", *watch == other.watch),
        ];
        let same = same.into_iter().chain(limits.compare(&listened.limits));
        let changed = same.filter(|(_, same)| !same);
        changed.map(|(key, _)| key).collect()
    }
}

impl Reloadable {
    /// The OpenAPI description. Its server is the listener's address, or `localhost` if the listener is on every address.
    pub fn openapi(&self, fixed: &Fixed) -> serde_json::Value {
        let address = fixed.listener.address;
        let authority = if address.ip().is_unspecified() {
            format!("localhost:{}", address.port())
        } else {
            address.to_string()
        };
        let policy = &self.snapshot.policy;
        let setting = openapi::Setting {
            environment: policy.environment,
            system: &fixed.system,
            authority: &authority,
            identity: policy.identity,
            body_limit: policy.body_limit,
            ibans: &policy.ibans,
        };
        openapi::describe(&self.snapshot.catalogue, &setting)
    }
}

impl ReadFiles {
    /// All paths.
    pub fn all(&self) -> Vec<PathBuf> {
        self.named.iter().chain(&self.source).cloned().collect()
    }
}
