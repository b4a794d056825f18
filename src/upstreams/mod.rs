//! The core as it is reached now: groups of endpoints, their connections, their health and the addresses of their names (FWD-3).
//!
//! A request takes its group from the configuration that it began with. A reload replaces groups whose settings changed; endpoints that
//! are in both keep their connections and their health. Deliberately not here: sending requests and reading answers (`gateway`).

// One connection to the core, and the pool of an endpoint's idle ones.
mod connection;
mod pool;

// An endpoint: its failures, and its ejection.
mod endpoint;
mod passive;

// A group: the choice of an endpoint, the limit of concurrent requests, the budget of retries.
mod budget;
mod group;
mod in_flight;

// The members of a group, by addresses and names; their active checks.
mod check;
mod dns;
mod inner;
mod members;
mod names;

pub use connection::{CoreConnection, MAX_HEAD};
pub use endpoint::Endpoint;
pub use group::{DrainFault, EndpointState, Group};
pub use in_flight::{Full, InFlightRequest, RequestRoom, TppMark};
pub use passive::Failure;

use crate::{config, interface::operations::Operation, telemetry::Telemetry};
use inner::InnerNames;
use names::Names;
use std::{fmt, io, sync::Arc};
use tokio::runtime::{Builder, Handle, Runtime};

/// The thread that checks endpoints and resolves their names. It outlives reloads.
pub struct Upkeep {
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
    handle: Handle,
    names: Names,
    inner: Arc<InnerNames>,
    telemetry: Arc<Telemetry>,
}

impl fmt::Debug for Upkeep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Upkeep").finish_non_exhaustive()
    }
}

impl Upkeep {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(telemetry: &Arc<Telemetry>) -> io::Result<Arc<Self>> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("upstreams")
            .enable_all()
            .build()?;
        Ok(Arc::new(Self {
            names: Names::new(runtime.handle().clone()),
            inner: Arc::default(),
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
            telemetry: Arc::clone(telemetry),
        }))
    }
}

/// A runtime must not wait for its tasks where it is dropped by one of pingora's.
impl Drop for Upkeep {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The groups of one configuration.
#[derive(Debug)]
pub struct Upstreams {
    settings: config::Upstreams,
    groups: Vec<Arc<Group>>,
    /// The groups' tasks run on its thread.
    _upkeep: Arc<Upkeep>,
}

impl Upstreams {
    /// Takes the groups of a configuration into use, and waits for the first addresses of new names. Groups of `before` whose settings
    /// are the same stay.
    pub fn start(
        settings: config::Upstreams,
        before: Option<&Self>,
        upkeep: &Arc<Upkeep>,
    ) -> Arc<Self> {
        let groups = settings.groups().iter().map(|group| {
            let known = before.and_then(|before| {
                let mut known = before.groups.iter();
                known.find(|known| known.settings().name == group.name)
            });
            match known {
                Some(known) if known.settings() == group => Arc::clone(known),
                _ => Group::start(
                    group,
                    known.map(AsRef::as_ref),
                    &upkeep.names,
                    &upkeep.inner,
                    &upkeep.handle,
                    &upkeep.telemetry,
                ),
            }
        });
        Arc::new(Self {
            groups: groups.collect(),
            settings,
            _upkeep: Arc::clone(upkeep),
        })
    }

    /// The group that answers an operation; `None` never happens, since each operation has one.
    pub fn of(&self, operation: &Operation) -> Option<&Arc<Group>> {
        self.groups.get(self.settings.index_of(operation))
    }

    /// All groups, in the order of the configuration.
    pub fn groups(&self) -> &[Arc<Group>] {
        &self.groups
    }

    /// The names of the groups that are needed and have no endpoint that is healthy by active checks.
    pub fn unhealthy(&self) -> Vec<&str> {
        let groups = self.groups.iter();
        let unhealthy = groups.filter(|group| group.settings().needed && !group.is_healthy());
        unhealthy
            .map(|group| group.settings().name.as_str())
            .collect()
    }
}

/// The names of endpoints that cannot be resolved now, one line each. A gateway starts nevertheless, and asks again.
pub fn unresolved(settings: &config::Upstreams) -> Vec<String> {
    let groups = settings.groups().iter();
    let names = groups.flat_map(|group| {
        let endpoints = group.endpoints.iter();
        endpoints.filter_map(move |endpoint| match &endpoint.host {
            config::Host::Name(name) => Some((group, name)),
            config::Host::Address(_) => None,
        })
    });
    let mut names = names.peekable();
    if names.peek().is_none() {
        return Vec::new();
    }
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let resolve = |(group, name): (&Arc<config::UpstreamGroup>, &String)| {
        let resolved = runtime.block_on(dns::resolve(name, &group.name_servers));
        let fault = resolved.err()?;
        Some(format!(
            "upstreams: {}: {name} cannot be resolved now: {fault}",
            group.name
        ))
    };
    names.filter_map(resolve).collect()
}
