//! The parts of the gateway that calls use, and the limit on the body of a call.

use super::observations::Observations;
use crate::{
    clock::{Clock, LogTime},
    in_use::{Current, InUse},
    state::StateStore,
    telemetry::Telemetry,
};
use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// The most bytes of a body: a consent for a thousand accounts has some 40 KiB.
pub(super) const MAX_BODY: usize = 64 * 1024;

/// The parts of the gateway that calls use.
#[derive(Debug)]
pub struct ControlContext {
    /// `system` of errors (ERR-1).
    pub system: String,
    /// The store.
    pub store: Arc<StateStore>,
    /// The clock.
    pub clock: Clock,
    /// The events that this gateway observes (CTL-3).
    pub observations: Arc<Observations>,
    /// The metrics.
    pub telemetry: Arc<Telemetry>,
    /// The current configuration.
    pub current: Arc<Current>,
    /// Reloads the configuration; `None` if it did not come from a file.
    pub reload: Option<Arc<dyn Reload>>,
    /// The interval of checks for changed files; `None` if they are off.
    pub watch: Option<Duration>,
    /// Whether the public listener has begun to accept connections.
    pub accepting: Arc<AtomicBool>,
}

/// A pending call: the gateway, and the configuration at the call's arrival.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) context: &'a ControlContext,
    pub(super) in_use: &'a InUse,
}

/// Replaces the current configuration, completely or not at all.
pub trait Reload: fmt::Debug + Send + Sync {
    /// Loads the configuration again, which reads files and takes some milliseconds.
    ///
    /// Returns the changed keys that need a restart.
    ///
    /// # Errors
    /// All faults with their positions; the current configuration stays.
    fn reload(&self) -> Result<Vec<&'static str>, Vec<String>>;

    /// The files and folders of the current configuration.
    fn files(&self) -> Vec<PathBuf>;

    /// The time from which these files were read, by the machine's clock.
    fn read_since(&self) -> LogTime;
}
