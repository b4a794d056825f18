//! The parts of the gateway that every call is answered from, and the bound on its body.

use crate::{
    clock::Clock,
    in_use::{Current, InUse},
    signing::AssertionSigner,
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

/// The parts of the gateway that the listener answers from.
#[derive(Debug)]
pub struct ControlContext {
    /// ERR-1's `system`.
    pub system: String,
    /// What signs the core's assertions, where there are any: its public keys are shown here (FWD-1).
    pub asserter: Option<Arc<AssertionSigner>>,
    /// Where state is kept.
    pub kept: Arc<StateStore>,
    /// The gateway's time.
    pub clock: Clock,
    /// What is measured.
    pub telemetry: Arc<Telemetry>,
    /// The configuration in use.
    pub current: Arc<Current>,
    /// Reads the configuration anew; none where it did not come from a file.
    pub reload: Option<Arc<dyn Reload>>,
    /// The pause between two looks at the configuration's files; none where nobody looks.
    pub watch: Option<Duration>,
    /// Whether the public listener accepts connections.
    pub accepting: Arc<AtomicBool>,
}

/// A request under way: the gateway, and the configuration that was in use when the request arrived.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) context: &'a ControlContext,
    pub(super) in_use: &'a InUse,
}

/// Takes a changed configuration into use, whole or not at all.
pub trait Reload: fmt::Debug + Send + Sync {
    /// Reads it anew. It takes some milliseconds, and reads files.
    ///
    /// Gives the keys whose change needs a restart.
    ///
    /// # Errors
    /// Every fault, each with its place; then everything is as it was.
    fn reload(&self) -> Result<Vec<&'static str>, Vec<String>>;

    /// The files and folders that the configuration in use was read from.
    fn files(&self) -> Vec<PathBuf>;
}
