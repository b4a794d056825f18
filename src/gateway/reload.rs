//! Applies a changed configuration without a restart (CRT-8).
//!
//! The file is read completely and applied completely or not at all: a fault anywhere leaves the configuration unchanged. Pending
//! requests keep the configuration that they began with; cached verdicts are replaced with it (CRT-12). Settings that a running
//! process cannot change, such as the address of a listener, stay, and their changed keys are reported. Deliberately not here:
//! the triggers of a reload (`control`).

use super::registrations::{self, Tellers};
use crate::{
    admission::Snapshot,
    audit::AuditKind,
    clock::{Clock, LogTime},
    config::{Fixed, Settings},
    control::{Observations, Reload},
    hex,
    in_use::{Current, InUse},
    telemetry::Telemetry,
    upstreams::{Upkeep, Upstreams},
};
use sha2::{Digest, Sha256};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// Reads the configuration file again, and replaces the current configuration.
#[derive(Debug)]
pub(super) struct Reloader {
    source: PathBuf,
    /// The settings that the process was started with.
    fixed: Fixed,
    current: Arc<Current>,
    clock: Clock,
    telemetry: Arc<Telemetry>,
    observations: Arc<Observations>,
    upkeep: Arc<Upkeep>,
    /// Allows one reload at a time.
    turn: Mutex<()>,
}

impl Reloader {
    /// Creates a reloader of `source`, for a gateway that was started with these fixed settings.
    pub(super) fn new(
        source: PathBuf,
        fixed: Fixed,
        current: Arc<Current>,
        clock: Clock,
        tellers: &Tellers,
        upkeep: Arc<Upkeep>,
    ) -> Self {
        Self {
            source,
            fixed,
            current,
            clock,
            telemetry: Arc::clone(&tellers.telemetry),
            observations: Arc::clone(&tellers.observations),
            upkeep,
            turn: Mutex::new(()),
        }
    }

    /// Prepares every part, then replaces the configuration in one step. Returns the changed keys that need a restart.
    fn replace(&self) -> Result<Vec<&'static str>, Vec<String>> {
        let Settings {
            fixed,
            reloadable: mut settings,
        } = Settings::load(&self.source)
            .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        if fixed.environment != self.fixed.environment {
            let text = "environment: another one needs a state, keys and a process of its own";
            return Err(vec![format!("{}: {text}", self.source.display())]);
        }
        let needs_restart = self.fixed.changed_keys(&fixed);
        let before = self.current.load_full();
        // If the control listener keeps an address that differs from the file's, it also keeps its access settings: those that
        // protect one address may be too weak for the other.
        if needs_restart.contains(&"control.address") {
            settings.control = before.control.clone();
        }
        let now = self.clock.now();
        let certificates = &settings.certificates;
        if let Some(text) = certificates.new_but_invalid(&before.certificates, now) {
            return Err(vec![format!("{}: {text}", self.source.display())]);
        }
        for warning in settings.warnings.iter().filter_map(|one| one.at(now)) {
            tracing::warn!("{warning}");
        }
        let links = settings
            .sca
            .links_again(fixed.environment, &before.links)
            .map_err(|fault| {
                let file = settings.sca.token_keys.display();
                vec![format!("{file}: {fault}")]
            })?;
        let assertion_signer = settings
            .assertion
            .as_ref()
            .map(|assertion| assertion.signer_again(&self.fixed.system))
            .transpose()
            .map_err(|(path, fault)| vec![format!("{}: {fault}", path.display())])?;
        settings.snapshot = keep_counts(&before.snapshot, settings.snapshot);
        let trust = &settings.snapshot.trust;
        trust.keep_those_of(&before.snapshot.trust, now);
        if let Some(revocation) = trust.revocation() {
            revocation
                .start(&self.clock)
                .map_err(|error| vec![format!("revocation cannot be checked: {error}")])?;
        }
        let upstreams = settings.upstreams.clone();
        let upstreams = Upstreams::start(upstreams, Some(&before.upstreams), &self.upkeep);
        let mut in_use = InUse::new(
            &self.fixed,
            settings,
            links,
            assertion_signer,
            upstreams,
            &self.telemetry,
            now,
        );
        in_use.needs_restart.clone_from(&needs_restart);
        let registers = [&before.snapshot, &in_use.snapshot].map(|one| one.registers.clone());
        let [had, has] = registers.each_ref().map(Option::as_deref);
        let tpps = before.snapshot.seen.tpps(now);
        let losses = registrations::losses(had, has, tpps.iter().cloned());
        let gains = registrations::gains(had, has, tpps);
        self.current.store(Arc::new(in_use));
        registrations::tell(&losses, &self.telemetry, &self.observations);
        gains
            .into_iter()
            .for_each(|gain| self.observations.push(gain));
        Ok(needs_restart)
    }
}

impl Reloader {
    /// Puts the reload into the audit.
    fn record(&self, replaced: &Result<Vec<&'static str>, Vec<String>>) {
        let audit = self.telemetry.audit();
        let hash = file_hash(&self.source);
        let event = match replaced {
            Ok(needs_restart) => audit
                .event(AuditKind::Reloaded)
                .with("needs_restart", needs_restart.clone()),
            Err(faults) => audit
                .event(AuditKind::ReloadRefused)
                .with("faults", faults.len()),
        };
        audit.record(event.with_some("configuration", hash));
    }
}

/// The SHA-256 of a file, in hexadecimal digits; `None` if it cannot be read.
pub(super) fn file_hash(path: &Path) -> Option<String> {
    Some(hex::encode(&Sha256::digest(fs::read(path).ok()?)))
}

impl Reload for Reloader {
    fn reload(&self) -> Result<Vec<&'static str>, Vec<String>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = self.replace();
        let needs_restart = replaced.as_ref().map(Vec::len).ok();
        self.telemetry.reloaded(needs_restart, self.clock.now());
        self.record(&replaced);
        match &replaced {
            Ok(needs_restart) if needs_restart.is_empty() => {
                tracing::info!("the configuration was reloaded");
            }
            Ok(needs_restart) => {
                let keys = needs_restart.join(", ");
                tracing::warn!(%keys, "the configuration was reloaded; these changes need a restart");
            }
            Err(faults) => {
                for fault in faults {
                    tracing::error!(%fault, "the configuration was not reloaded; the one before stays in use");
                }
            }
        }
        replaced
    }

    fn files(&self) -> Vec<PathBuf> {
        self.current.load().files.all()
    }

    fn read_since(&self) -> LogTime {
        self.current.load().files.since
    }
}

/// The new snapshot, with the old one's counts and revocation data for each part whose settings are unchanged, and with the certificates
/// that were seen.
fn keep_counts(old: &Snapshot, mut new: Snapshot) -> Snapshot {
    if old.rates.settings() == new.rates.settings() {
        new.rates = Arc::clone(&old.rates);
    }
    if let (Some(before), Some(after)) = (old.trust.revocation(), new.trust.revocation())
        && before.is_set_like(after)
    {
        let before = Arc::clone(before);
        new.trust = new.trust.with_revocation(Some(before));
    }
    new.seen = Arc::clone(&old.seen);
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        admission::{Policy, RateSettings, Rates},
        interface::operations::{Catalogue, Environment, builtin},
        trust::{Anchors, Revocation, Trust, revocation::RevocationSettings},
    };
    use std::time::Duration;

    fn snapshot(rates: RateSettings, stale: u64) -> Snapshot {
        let settings = RevocationSettings {
            stale: Duration::from_secs(stale),
            ..RevocationSettings::default()
        };
        let revocation = Arc::new(Revocation::new(settings).unwrap());
        let trust = Trust::new(Anchors::of_operator(Vec::new(), Vec::new()).unwrap());
        let mut snapshot = Snapshot::new(
            Policy::new(Environment::Sandbox),
            Catalogue::new(Environment::Sandbox, builtin()).unwrap(),
            trust.with_revocation(Some(revocation)),
        );
        snapshot.rates = Arc::new(Rates::new(rates));
        snapshot
    }

    #[test]
    fn counts_and_answers_outlive_a_reload_that_does_not_change_them() {
        let old = snapshot(RateSettings::default(), 1);
        let of = |snapshot: &Snapshot| Arc::clone(snapshot.trust.revocation().unwrap());
        let same = keep_counts(&old, snapshot(RateSettings::default(), 1));
        assert!(Arc::ptr_eq(&old.rates, &same.rates));
        assert!(Arc::ptr_eq(&of(&old), &of(&same)));
        assert!(Arc::ptr_eq(&old.seen, &same.seen));
        let none = RateSettings {
            per_tpp: None,
            ..RateSettings::default()
        };
        let other = keep_counts(&old, snapshot(none, 2));
        assert!(!Arc::ptr_eq(&old.rates, &other.rates));
        assert!(!Arc::ptr_eq(&of(&old), &of(&other)));
        assert!(Arc::ptr_eq(&old.seen, &other.seen));
    }
}
