//! The section `shutdown`: how long a stopping gateway goes on serving, and how long it waits for its requests (FWD-4).

use super::amount::show_duration;
use super::endpoints::Listener;
use super::section::Section;
use std::time::Duration;

/// The default of `lame_duck`: a balancer that asks `/readyz` each second has noticed by then, after three refusals.
const LAME_DUCK: Duration = Duration::from_secs(5);

/// The largest values.
const MOST_LAME_DUCK: Duration = Duration::from_secs(600);
const MOST_FINISH: Duration = Duration::from_secs(24 * 3_600);

/// The time that a request may take in addition to its body, the core and its answer: for its head and the state.
const MARGIN: Duration = Duration::from_secs(10);

/// The times of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// The time from SIGTERM on in which `/readyz` answers 503 and everything else is served. Default 5 s.
    pub lame_duck: Duration,
    /// The time-out of the requests that are pending afterwards; `None`, the default: the longest time that the other time-outs
    /// let a request take.
    finish: Option<Duration>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            lame_duck: LAME_DUCK,
            finish: None,
        }
    }
}

impl Shutdown {
    /// The time-out of the requests that are pending when the listener closes. `core` is the longest time that one may wait for the
    /// head of the core's answer.
    pub fn finish(&self, listener: &Listener, core: Duration) -> Duration {
        self.finish.unwrap_or_else(|| longest(listener, core))
    }

    /// Reads the section, which is optional. `core` is as in [`Shutdown::finish`].
    pub(super) fn read(root: &mut Section<'_>, core: Option<Duration>) -> Self {
        let Some(mut section) = root.optional_section("shutdown") else {
            return Self::default();
        };
        let lame_duck = section.optional("lame_duck");
        let lame_duck = lame_duck.and_then(|value| value.duration(Duration::ZERO..=MOST_LAME_DUCK));
        let value = section.optional("finish");
        let finish = value
            .as_ref()
            .and_then(|value| value.duration(Duration::ZERO..=MOST_FINISH));
        if let (Some(value), Some(finish), Some(core)) = (value, finish, core)
            && finish < core
        {
            value.fault(format!(
                "found {}; expected at least {}, the time for which a request may wait for the core: a payment that the core executes needs its answer",
                value.found(),
                show_duration(core),
            ));
        }
        section.finish();
        Self {
            lame_duck: lame_duck.unwrap_or(LAME_DUCK),
            finish,
        }
    }
}

/// The longest time that a request may be pending, by the time-outs.
fn longest(listener: &Listener, core: Duration) -> Duration {
    MARGIN
        .saturating_add(listener.body_timeout)
        .saturating_add(core)
        .saturating_add(listener.limits.answer_timeout)
}
