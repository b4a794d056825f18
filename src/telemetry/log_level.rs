//! The level of events: that of the configuration, and a higher one that an operator sets for a time.
//!
//! Invariant: events of other crates are not written, at any level: at `trace` they show whole headers, and no level is safe in all of
//! their versions.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use tracing::{Level, Metadata, level_filters::LevelFilter};

/// The crates whose events are written: this one, and those of Portvakt below it.
pub(super) const TARGETS: [&str; 6] = [
    env!("CARGO_CRATE_NAME"),
    "portvakt_base",
    "portvakt_hsm",
    "portvakt_interface",
    "portvakt_state",
    "portvakt_trust",
];

/// The level that holds for a time. Events are global to a process, and so is this.
static RAISED: RwLock<Raised> = RwLock::new(Raised {
    number: 0,
    level: None,
});

/// The level that an operator has set last, and how many were set before it.
struct Raised {
    number: u64,
    level: Option<(Level, OwnModule)>,
}

/// A module of Portvakt, with those below it; all of Portvakt by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnModule(Option<String>);

impl OwnModule {
    /// Parses a path such as `portvakt::gateway::upstream` or `portvakt_state`; `None` for one of another crate.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = text.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_:".contains(&byte)
        });
        (is_plain && TARGETS.iter().any(|own| is_below(text, own)))
            .then(|| Self(Some(text.to_owned())))
    }

    /// The path; `portvakt` for all of it.
    pub fn name(&self) -> &str {
        self.0.as_deref().unwrap_or("portvakt")
    }

    fn has(&self, target: &str) -> bool {
        self.0.as_ref().is_none_or(|own| is_below(target, own))
    }
}

fn is_below(target: &str, module: &str) -> bool {
    let rest = target.strip_prefix(module);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Whether an event is written if the configuration has this level.
pub(super) fn shows(metadata: &Metadata<'_>, configured: Level) -> bool {
    let target = metadata.target();
    let is_own = TARGETS.iter().any(|own| is_below(target, own));
    let level = *metadata.level();
    is_own && metadata.is_event() && (level <= configured || is_raised(target, level))
}

fn is_raised(target: &str, level: Level) -> bool {
    let raised = read();
    let raised = raised.level.as_ref();
    raised.is_some_and(|(most, module)| level <= *most && module.has(target))
}

/// The highest level of which events may be written.
pub(super) fn highest(configured: Level) -> LevelFilter {
    let raised = read();
    let raised = raised.level.as_ref().map(|(level, _)| *level);
    LevelFilter::from_level(raised.map_or(configured, |raised| configured.max(raised)))
}

/// Writes events of this level too, of these modules, until [`restore_level`] is called with the number that this returns, or another level
/// takes its place.
pub fn raise_level(level: Level, module: OwnModule) -> u64 {
    let mut raised = RAISED.write().unwrap_or_else(PoisonError::into_inner);
    raised.number = raised.number.wrapping_add(1);
    raised.level = Some((level, module));
    let number = raised.number;
    drop(raised);
    tracing::callsite::rebuild_interest_cache();
    number
}

/// Writes events of the configuration's level again; with a number only if that level has not been replaced. False if nothing changed.
pub fn restore_level(number: Option<u64>) -> bool {
    let mut raised = RAISED.write().unwrap_or_else(PoisonError::into_inner);
    let is_other = number.is_some_and(|number| number != raised.number);
    if is_other || raised.level.take().is_none() {
        return false;
    }
    drop(raised);
    tracing::callsite::rebuild_interest_cache();
    true
}

fn read() -> RwLockReadGuard<'static, Raised> {
    RAISED.read().unwrap_or_else(PoisonError::into_inner)
}
