//! What callers cause below HTTP: whether its event or line is written, and what was left out (FWD-8). The shares are in
//! [`super::notices`].

use super::{Subject, Telemetry, event_log, notices::CallerEvent, top::keyed};
use crate::{clock::Clock, network::Network};
use std::net::IpAddr;
use tracing::Level;

impl Telemetry {
    /// Whether an event of this level that the subject causes is written: of one cause few in a minute. Others are counted as left out.
    pub fn has_event(&self, level: Level, cause: &'static str, subject: Subject) -> bool {
        event_log::writes(level) && self.notices.take(cause, subject)
    }

    /// The same of an event that a caller causes below HTTP: it names the caller's network, keyed, as `GET /top` does.
    pub fn caller_event(
        &self,
        level: Level,
        cause: &'static str,
        subject: Subject,
        caller: Option<IpAddr>,
    ) -> Option<CallerEvent> {
        self.has_event(level, cause, subject).then(|| CallerEvent {
            network: caller.map(Network::of_site).map(keyed),
        })
    }

    /// The same of a line of the access log, of a refusal below HTTP.
    pub fn has_line(&self, cause: &'static str, subject: Subject) -> bool {
        self.lines.take(cause, subject)
    }

    /// Says in the audit and in both logs what was left out, of the subjects for which a minute has passed; of all at the end of the process
    /// (FWD-8). Call this regularly, outside the request path.
    pub fn say_left_out(&self, is_end: bool) {
        if self.audit.is_on() {
            self.refusals.record_left_out(&self.audit, is_end);
        }
        for due in event_log::say_left_out(self.notices.due(is_end), is_end) {
            self.notices.put_back(due);
        }
        let (at, due) = (Clock::System.log_time(), self.lines.due(is_end));
        for due in self.outputs.say_left_out(due, is_end, at) {
            self.lines.put_back(due);
        }
    }
}
