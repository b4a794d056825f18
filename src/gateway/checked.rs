//! The preparation that `portvakt check` and `portvakt serve` share: everything that the machine must allow, tried before the start.
//!
//! Invariants: a gateway starts from [`Checked`] settings only, so `serve` refuses whatever `check` refuses; all faults are found at once;
//! and a trial creates and changes no file, so that a check by another user leaves nothing that the gateway cannot open. Deliberately
//! not here: the configuration file and the files that it names, which `config` reads.

use super::{
    descriptors, memory_limit, sizing,
    start_fault::{StartFault, StartFaults},
};
use crate::{
    audit::AuditFault,
    clock::Timestamp,
    config::{AuditSettings, Fixed, Log, LogOutput, Settings},
    control,
    expiring::Finding,
    in_use::seals_finding,
    private_file::{self, FileFault},
    sca::{KeyFault, ScaSettings},
    signing::{AssertionKeyFault, AssertionSettings},
    state::{EngineSettings, StateSettings, StateStore},
    telemetry::{FolderUse, WrittenFolders, try_log},
    trust::Revocation,
    upstreams,
};
use std::{fs, io, net::TcpListener, os::unix::fs::PermissionsExt, path::Path};

/// Which addresses of the listeners are tried: each is bound, and released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// That of the public listener.
    pub public: bool,
    /// That of the control listener.
    pub control: bool,
}

impl Ports {
    /// Both are tried.
    pub const TRY: Self = Self {
        public: true,
        control: true,
    };

    /// Neither is tried: a gateway listens on them already.
    pub const SKIP: Self = Self {
        public: false,
        control: false,
    };
}

/// Settings with which a gateway can start on this machine.
#[derive(Debug)]
pub struct Checked {
    settings: Settings,
    warnings: Vec<String>,
}

impl Checked {
    /// Tries everything that a start needs: descriptors, addresses, and the files that the gateway makes or writes.
    ///
    /// # Errors
    /// All reasons why the gateway would not start.
    pub fn new(settings: Settings, ports: Ports, now: Timestamp) -> Result<Self, StartFaults> {
        let Settings { fixed, reloadable } = &settings;
        let mut faults = Vec::new();
        if let Err(fault) = descriptors::reserve(&fixed.listener, &reloadable.upstreams) {
            faults.push(StartFault::Descriptors(fault));
        }
        try_addresses(fixed, ports, &mut faults);
        try_token_files(&reloadable.sca, &mut faults);
        faults.extend(try_logs(&fixed.log));
        faults.extend(fixed.audit.as_ref().and_then(try_audit));
        if let Err(fault) = StateStore::try_open(&fixed.state) {
            faults.push(StartFault::State(fault));
        }
        faults.extend(reloadable.assertion.as_ref().and_then(try_assertion_key));
        let warnings = reloadable.warnings.iter();
        let mut warnings: Vec<_> = warnings
            .filter_map(|warning| Some(warning.at(now)?.to_string()))
            .collect();
        warnings.extend(open_state(&fixed.state));
        let full = written_folders(&settings).findings();
        let full = full.into_iter().chain(used_keys(&reloadable.sca));
        warnings.extend(full.map(|finding| finding.text));
        warnings.extend(sizing::beyond(&settings, memory_limit::limit()));
        warnings.extend(upstreams::unresolved(&reloadable.upstreams));
        let revocation = reloadable.snapshot.trust.revocation();
        warnings.extend(revocation.and_then(|revocation| try_copies(revocation)));
        StartFaults::or(faults, Self { settings, warnings })
    }

    /// Conditions that do not prevent the start, one line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The memory and the file descriptors that a gateway with these settings needs, on two lines.
    pub fn needs(&self) -> String {
        sizing::describe(&self.settings)
    }

    /// The settings.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings, to start with. Logs the warnings.
    pub(super) fn into_settings(self) -> Settings {
        for warning in &self.warnings {
            tracing::warn!("{warning}");
        }
        self.settings
    }
}

fn try_addresses(fixed: &Fixed, ports: Ports, faults: &mut Vec<StartFault>) {
    let address = fixed.listener.address;
    // Held until the control listener has been tried: both must be free at once.
    let public = ports.public.then(|| TcpListener::bind(address));
    let control = ports.control.then(|| control::try_bind(&fixed.control));
    if let Some(Err(error)) = control {
        faults.push(StartFault::Control(fixed.control.clone(), error));
    }
    if let Some(Err(error)) = public {
        faults.push(StartFault::Listen(address, error));
    }
}

/// Keys that exist were read with the configuration; the first start makes them. Each start writes the file of their seals.
fn try_token_files(sca: &ScaSettings, faults: &mut Vec<StartFault>) {
    if let Err(error) = try_missing(&sca.token_keys) {
        let fault = KeyFault::Written(error);
        faults.push(StartFault::TokenKeys(sca.token_keys.clone(), fault));
    }
    if let Err(error) = private_file::try_make(&sca.token_seals) {
        faults.push(StartFault::TokenSeals(sca.token_seals.clone(), error));
    }
}

fn try_assertion_key(assertion: &AssertionSettings) -> Option<StartFault> {
    let error = try_missing(&assertion.key).err()?;
    let fault = AssertionKeyFault::File(FileFault::File(error));
    Some(StartFault::AssertionKey(assertion.key.clone(), fault))
}

/// The destinations of the logs, which a start opens.
fn try_logs(log: &Log) -> Vec<StartFault> {
    let access = log.access.then(|| try_log(&log.access_output).err());
    let access = access.flatten().map(StartFault::AccessLog);
    let events = try_log(&log.events_output).err().map(StartFault::EventLog);
    access.into_iter().chain(events).collect()
}

/// The folder of the audit, in which a start makes files.
fn try_audit(audit: &AuditSettings) -> Option<StartFault> {
    let error = private_file::try_make(&audit.folder.join("lock")).err()?;
    let fault = AuditFault::new(&audit.folder, error);
    Some(StartFault::Audit(fault))
}

/// Tries to make a file that does not exist.
fn try_missing(path: &Path) -> io::Result<()> {
    match path.try_exists() {
        Ok(true) => Ok(()),
        _ => private_file::try_make_new(path),
    }
}

/// A state file that others may read: it holds pseudonymous data.
fn open_state(state: &StateSettings) -> Option<String> {
    match &state.engine {
        EngineSettings::Sqlite => {}
        EngineSettings::Postgres(_) => return None,
    }
    let mode = fs::metadata(&state.file).ok()?.permissions().mode() & 0o777;
    let path = state.file.display();
    (mode & 0o077 != 0).then(|| {
        format!(
            "state.file: the mode {mode:04o} of {path} grants access to other users; set it to 0600"
        )
    })
}

/// The keys of SCA links that have sealed many tokens.
fn used_keys(sca: &ScaSettings) -> Vec<Finding> {
    let counts = sca.sealed().into_iter();
    counts
        .filter_map(|(key, count)| seals_finding(&key, count))
        .collect()
}

/// The folders that the gateway writes to. A state in PostgreSQL has its disk elsewhere.
pub(super) fn written_folders(settings: &Settings) -> WrittenFolders {
    let Settings { fixed, reloadable } = settings;
    let mut folders = WrittenFolders::default();
    match &fixed.state.engine {
        EngineSettings::Sqlite => {
            let folder = private_file::folder_of(&fixed.state.file);
            folders = folders.with(FolderUse::State, folder);
        }
        EngineSettings::Postgres(_) => {}
    }
    if let Some(audit) = &fixed.audit {
        folders = folders.with(FolderUse::Audit, &audit.folder);
    }
    let log = &fixed.log;
    let access = log.access.then_some(&log.access_output);
    for output in access.into_iter().chain([&log.events_output]) {
        if let LogOutput::File(path) = output {
            folders = folders.with(FolderUse::Logs, private_file::folder_of(path));
        }
    }
    let revocation = reloadable.snapshot.trust.revocation();
    match revocation.and_then(|revocation| revocation.copies()) {
        Some(copies) => folders.with(FolderUse::Copies, copies),
        None => folders,
    }
}

/// Without copies the gateway works, but it judges nobody after a restart until it has fetched anew.
fn try_copies(revocation: &Revocation) -> Option<String> {
    let folder = revocation.copies()?;
    let error = private_file::try_make(&folder.join("copy")).err()?;
    let folder = folder.display();
    Some(format!(
        "revocation.copies: {folder}: no copies can be kept: {error}"
    ))
}
