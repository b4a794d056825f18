//! The configuration as the gateway runs on it.
//!
//! Every setting is either [`Fixed`] or [`Reloadable`]. Invariant: [`Settings`] that exist can be started: each address is one that
//! may be used, the key fits the certificate, the snapshot is built, and no file has to be read again. A deployment reloads by
//! loading anew. Deliberately not here: keys that no code heeds yet, such as upstreams by group (FWD-3) or the settings of an unbuilt
//! stage.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::sign::CertifiedKey;
use tracing::Level;

use super::control::{ControlAccess, ControlAddress};
use super::document::Document;
use super::endpoints::{Listener, Upstream};
use super::fault::{Fault, Faults, FilePosition, Inspection};
use super::trust::TrustFiles;
use super::{pem, root};
use crate::admission::Snapshot;
use crate::interface::openapi;
use crate::interface::operations::Environment;
use crate::sca::ScaSettings;
use crate::signing::{AnswerSigning, AssertionSettings};
use crate::state::StateSettings;

/// Everything that a gateway is started with.
///
/// It has these two fields and no other, so that whoever adds a setting decides whether a reload replaces it.
///
/// `Debug` shows no key: rustls names a key's algorithm only.
#[derive(Debug)]
pub struct Settings {
    /// The settings that only a restart changes.
    pub fixed: Fixed,
    /// The settings that a reload replaces.
    pub reloadable: Reloadable,
}

/// The settings that only a restart changes: a running process stays with those that it was started with.
#[derive(Debug, PartialEq)]
pub struct Fixed {
    /// The environment (CRT-9). A reload with another one is refused, since state and keys belong to one environment.
    pub environment: Environment,
    /// `system` of every error body (ERR-1). Default `portvakt`.
    pub system: String,
    /// Where TPPs call.
    pub listener: Listener,
    /// Where the bank's own services call.
    pub control: ControlAddress,
    /// The core.
    pub upstream: Upstream,
    /// How the core's assertions are signed (FWD-1). None by default: there are none.
    pub assertion: Option<AssertionSettings>,
    /// How answers are signed (SIG-12). None by default: they are not.
    pub response_signing: Option<AnswerSigning>,
    /// Where state is kept. Default `../state/portvakt.db` and `../state/hash.key`.
    pub state: StateSettings,
    /// What is logged.
    pub log: Log,
    /// The pause between two looks at the files, to take changes into use (CRT-8); none where nobody looks. Default 5 s.
    pub watch: Option<Duration>,
}

/// The settings that a reload replaces, all at once (CRT-8).
#[derive(Debug)]
pub struct Reloadable {
    /// The certificate chain that the public listener shows, and the key that fits it, both read from PEM files.
    pub identity: Arc<CertifiedKey>,
    /// Who may call the control listener.
    pub control: ControlAccess,
    /// How SCA is asked for: the bank's page and the keys of its links.
    pub sca: ScaSettings,
    /// What requests are judged by: policy, catalogue and trust, ready.
    pub snapshot: Snapshot,
    /// The folders that the snapshot's trust was read from.
    pub trust: TrustFiles,
    /// The catalogue file that the snapshot's catalogue was read from (HTTP-11). None by default.
    pub operations: Option<PathBuf>,
    /// The files and folders that these settings were read from: those that are looked at for changes. Files that the gateway
    /// writes itself are not among them.
    pub files: ReadFiles,
}

/// The files and folders that a configuration was read from.
#[derive(Clone, Debug, Default)]
pub struct ReadFiles {
    /// The configuration file itself; none where the text did not come from a file.
    pub source: Option<PathBuf>,
    /// The files and folders that it names.
    pub named: Vec<PathBuf>,
}

/// What is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Whether every request has a line. Default true.
    pub access: bool,
    /// The least severe events that are logged. Default `info`.
    pub level: Level,
}

impl Settings {
    /// Loads a configuration file and every file that it names, by paths that are relative to its folder.
    ///
    /// # Errors
    /// Every fault of all those files, in their order.
    pub fn load(path: &Path) -> Result<Self, Faults> {
        let file = path.display().to_string();
        let text = pem::read_text(path).map_err(|text| Fault {
            place: FilePosition::start_of(file.as_str()),
            text,
        })?;
        let mut settings = Self::parse(&file, &text, path.parent().unwrap_or(Path::new("")))?;
        settings.reloadable.files.source = Some(path.to_owned());
        Ok(settings)
    }

    /// Reads a configuration: `file_name` is its name in faults, `text` its content, `base` the folder that its paths are relative to.
    ///
    /// # Errors
    /// Every fault of it and of the files that it names.
    pub fn parse(file_name: &str, text: &str, base: &Path) -> Result<Self, Faults> {
        let document = Document::read(file_name, text)?;
        let inspection = Inspection::new();
        let mut settings = root::read(document.root(&inspection), &inspection, base);
        if let Some(settings) = &mut settings {
            settings.reloadable.files.named = settings.watched(inspection.named());
        }
        inspection.conclude(file_name, settings)
    }

    /// The interface that these settings make, as OpenAPI.
    pub fn openapi(&self) -> serde_json::Value {
        self.reloadable.openapi(&self.fixed)
    }

    /// Of the paths that the configuration names, those that are read and not written.
    fn watched(&self, mut named: Vec<PathBuf>) -> Vec<PathBuf> {
        let (state, sca) = (&self.fixed.state, &self.reloadable.sca);
        let revocation = self.reloadable.snapshot.trust.revocation();
        let copies = revocation.and_then(|revocation| revocation.copies());
        let written = [
            Some(&*state.file),
            Some(&*state.hash_key),
            Some(&*sca.token_seals),
            copies,
        ];
        named.push(sca.token_keys.clone());
        named.retain(|path| !written.contains(&Some(path)));
        named
    }
}

impl Fixed {
    /// The keys, as the file has them, whose values in `other` differ. The environment is not among them: it is never left as it was.
    pub fn changed_keys(&self, other: &Self) -> Vec<&'static str> {
        // Both are taken apart without `..`, so that a setting that is added must be compared too.
        let Self {
            environment: _,
            system,
            listener,
            control,
            upstream,
            assertion,
            response_signing,
            state,
            log,
            watch,
        } = self;
        let Listener {
            address,
            client_auth,
            threads,
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
                "listener.body_timeout",
                *body_timeout == listened.body_timeout,
            ),
            ("listener.keepalive", *keepalive == listened.keepalive),
            ("control.address", *control == other.control),
            ("upstream", *upstream == other.upstream),
            ("state", *state == other.state),
            ("assertion", *assertion == other.assertion),
            (
                "response_signing",
                *response_signing == other.response_signing,
            ),
            ("log", *log == other.log),
            ("reload", *watch == other.watch),
        ];
        let same = same.into_iter().chain(limits.compare(&listened.limits));
        let changed = same.filter(|(_, same)| !same);
        changed.map(|(key, _)| key).collect()
    }
}

impl Reloadable {
    /// The interface as OpenAPI. Its server is where the gateway listens; on every address of the machine that is `localhost`.
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
        };
        openapi::describe(&self.snapshot.catalogue, &setting)
    }
}

impl ReadFiles {
    /// All of them.
    pub fn all(&self) -> Vec<PathBuf> {
        self.named.iter().chain(&self.source).cloned().collect()
    }
}
