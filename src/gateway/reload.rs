//! Taking a changed configuration into use without a restart (CRT-8).
//!
//! The configuration is read anew and whole, and taken whole or not at all: a fault anywhere leaves everything as it was. Requests
//! under way keep the world that they began with, and cached verdicts go with the old one (CRT-12). What a running process cannot
//! change, such as an address it listens on, stays as it is and is named. Deliberately not here: what asks for a reload (`control`).

use super::{proxy::World, tls::Identity};
use crate::{
    admission::Snapshot,
    clock::{Clock, Timestamp},
    config::Settings,
    control::{Current, Reload},
    interface::operations::Environment,
    sca::Links,
    telemetry::Telemetry,
    trust::{self, Trust},
};
use arc_swap::ArcSwap;
use rustls::sign::CertifiedKey;
use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// What is replaced in a running gateway, and how.
#[derive(Debug)]
pub(super) struct Reloader {
    source: PathBuf,
    environment: Environment,
    system: String,
    address: SocketAddr,
    fixed: Fixed,
    files: Mutex<Vec<PathBuf>>,
    running: Running,
    clock: Clock,
    telemetry: Arc<Telemetry>,
    /// One reload at a time.
    turn: Mutex<()>,
}

/// What only a restart changes, each with its key as the file has it.
type Fixed = Vec<(&'static str, String)>;

/// The places where what is in use stands.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) world: Arc<ArcSwap<World>>,
    pub(super) identity: Arc<Identity>,
    pub(super) links: Arc<ArcSwap<Links>>,
    pub(super) current: Arc<ArcSwap<Current>>,
}

/// What is taken over from the settings that a gateway starts with.
pub(super) struct Origin {
    source: PathBuf,
    environment: Environment,
    system: String,
    address: SocketAddr,
    fixed: Fixed,
    files: Vec<PathBuf>,
}

impl Origin {
    /// `None` where there is no file to read anew.
    pub(super) fn of(settings: &Settings) -> Option<Self> {
        Some(Self {
            source: settings.source.clone()?,
            environment: settings.snapshot.policy.environment,
            system: settings.system.clone(),
            address: settings.listener.address,
            fixed: fixed(settings),
            files: settings.files.clone(),
        })
    }
}

impl Reloader {
    pub(super) fn new(
        origin: Origin,
        running: Running,
        clock: Clock,
        telemetry: Arc<Telemetry>,
    ) -> Self {
        Self {
            source: origin.source,
            environment: origin.environment,
            system: origin.system,
            address: origin.address,
            fixed: origin.fixed,
            files: Mutex::new(origin.files),
            running,
            clock,
            telemetry,
            turn: Mutex::new(()),
        }
    }

    /// Everything is made ready before anything is replaced.
    fn take(&self) -> Result<Vec<&'static str>, Vec<String>> {
        let mut settings = Settings::load(&self.source)
            .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        if settings.snapshot.policy.environment != self.environment {
            let text = "environment: another one needs a state, keys and a process of its own";
            return Err(vec![format!("{}: {text}", self.source.display())]);
        }
        let left = differing(&self.fixed, &fixed(&settings));
        let current = self.current(&mut settings, &left);
        let now = self.clock.now();
        let links = settings
            .sca
            .links_again(self.environment, &self.running.links.load())
            .map_err(|fault| {
                let file = settings.sca.token_keys.display();
                vec![format!("{file}: {fault}")]
            })?;
        let links = Arc::new(links);
        let before = self.running.world.load_full();
        let snapshot = kept(before.snapshot(), settings.snapshot);
        snapshot.trust.keep_those_of(&before.snapshot().trust, now);
        if let Some(revocation) = snapshot.trust.revocation() {
            revocation
                .start(&self.clock)
                .map_err(|error| vec![format!("revocation cannot be checked: {error}")])?;
        }
        let revocation = snapshot.trust.revocation();
        self.telemetry
            .watch_revocation(revocation.map(|own| own.counters()));
        if let Some(registers) = &snapshot.registers {
            self.telemetry.watch_registers(registers);
        }
        let identity = settings.listener.identity;
        let (ends, seen) = (ends(&snapshot.trust, &identity), snapshot.trust.seen());
        self.telemetry.took_into_use(now, ends, seen);
        self.running.identity.replace(identity);
        self.running.current.store(Arc::new(current));
        self.running.links.store(Arc::clone(&links));
        let world = World::new(snapshot, links, &self.telemetry);
        self.running.world.store(Arc::new(world));
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = settings.files;
        Ok(left)
    }

    /// What the control listener goes by from now on. Where it stays at an address that is not that of the file, so does who may ask
    /// there: what is enough for the one may be too little for the other.
    fn current(&self, settings: &mut Settings, left: &[&str]) -> Current {
        settings.system.clone_from(&self.system);
        settings.listener.address = self.address;
        let current = Current::of(settings);
        if !left.contains(&"control.address") {
            return current;
        }
        let before = self.running.current.load();
        Current {
            token: before.token.clone(),
            metrics_token: before.metrics_token.clone(),
            hosts: before.hosts.clone(),
            tls: before.tls.clone(),
            ..current
        }
    }
}

impl Reload for Reloader {
    fn reload(&self) -> Result<Vec<&'static str>, Vec<String>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = self.take();
        self.telemetry.reloaded(taken.is_ok());
        match &taken {
            Ok(left) if left.is_empty() => tracing::info!("the configuration was reloaded"),
            Ok(left) => {
                let keys = left.join(", ");
                tracing::warn!(%keys, "the configuration was reloaded; these changes need a restart");
            }
            Err(faults) => {
                for fault in faults {
                    tracing::error!(%fault, "the configuration was not reloaded; the one before stays in use");
                }
            }
        }
        taken
    }

    fn files(&self) -> Vec<PathBuf> {
        self.files
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// A new snapshot with what outlives a reload: counts, and what sources of revocation said, where their settings are the same.
fn kept(old: &Snapshot, mut new: Snapshot) -> Snapshot {
    if old.rates.settings() == new.rates.settings() {
        new.rates = Arc::clone(&old.rates);
    }
    if let (Some(before), Some(after)) = (old.trust.revocation(), new.trust.revocation())
        && before.is_set_like(after)
    {
        let before = Arc::clone(before);
        new.trust = new.trust.with_revocation(Some(before));
    }
    new
}

fn fixed(settings: &Settings) -> Fixed {
    let (listener, control) = (&settings.listener, &settings.control);
    vec![
        ("system", settings.system.clone()),
        ("listener.address", listener.address.to_string()),
        (
            "listener.client_auth",
            format!("{:?}", listener.client_auth),
        ),
        ("listener.threads", listener.threads.to_string()),
        (
            "listener.max_connections",
            listener.max_connections.to_string(),
        ),
        (
            "listener.body_timeout",
            format!("{:?}", listener.body_timeout),
        ),
        ("listener.keepalive", format!("{:?}", listener.keepalive)),
        ("control.address", control.address.to_string()),
        ("upstream", format!("{:?}", settings.upstream)),
        ("state", format!("{:?}", settings.state)),
        ("assertion", format!("{:?}", settings.assertion)),
        (
            "response_signing",
            format!("{:?}", settings.response_signing),
        ),
        ("log", format!("{:?}", settings.log)),
        ("reload", format!("{:?}", settings.watch)),
    ]
}

fn differing(before: &Fixed, after: &Fixed) -> Vec<&'static str> {
    let pairs = before.iter().zip(after);
    let differing = pairs.filter(|(before, after)| before != after);
    differing.map(|(before, _)| before.0).collect()
}

/// When the gateway's own certificate ends, and what it trusts.
pub(super) fn ends(trust: &Trust, identity: &CertifiedKey) -> Vec<(&'static str, Timestamp)> {
    let own = identity.cert.first().and_then(|own| trust::end_of(own));
    let own = own.map(|end| ("listener", end));
    trust.ends().chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        admission::{Policy, RateSettings, Rates},
        interface::operations::{Catalogue, builtin},
        trust::{Anchors, Revocation, revocation::RevocationSettings},
    };
    use std::time::Duration;

    fn snapshot(rates: RateSettings, stale: u64) -> Snapshot {
        let settings = RevocationSettings {
            stale: Duration::from_secs(stale),
            ..RevocationSettings::default()
        };
        let revocation = Arc::new(Revocation::new(settings).unwrap());
        let trust = Trust::new(Anchors::new(Vec::new(), Vec::new()).unwrap());
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
        let same = kept(&old, snapshot(RateSettings::default(), 1));
        assert!(Arc::ptr_eq(&old.rates, &same.rates));
        assert!(Arc::ptr_eq(&of(&old), &of(&same)));
        let none = RateSettings {
            per_tpp: None,
            ..RateSettings::default()
        };
        let other = kept(&old, snapshot(none, 2));
        assert!(!Arc::ptr_eq(&old.rates, &other.rates));
        assert!(!Arc::ptr_eq(&of(&old), &of(&other)));
    }
}
