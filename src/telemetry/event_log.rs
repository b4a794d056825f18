//! The log of events: one line of JSON for each event of the gateway itself.
//!
//! Deliberately not here: the texts of events, which stand where the events happen.

use super::log_level;
use super::notices::Due;
use super::sink::LogFault;
use super::stream::{JsonLine, LineCounts, LineStream};
use super::subject::Subject;
use super::values::LineKind;
use crate::{
    clock::{Clock, LogTime},
    config::LogOutput,
    interface::TppId,
    write_fault::WriteFault,
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::{fmt, panic, sync::OnceLock, time::Duration};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    subscriber::Interest,
};
use tracing_subscriber::{
    layer::{Context, Layer, SubscriberExt},
    registry,
};

/// The time for which a panic waits until its event is written.
const PANIC_WITHIN: Duration = Duration::from_secs(1);

/// The log of this process. Events are global to a process, as is their subscriber.
static LOG: OnceLock<EventLog> = OnceLock::new();

#[derive(Debug)]
struct EventLog {
    level: Level,
    stream: LineStream<EventLine>,
}

/// Writes the events of this process, from `level` on, and its panics. Only the first call has an effect.
///
/// # Errors
/// The file cannot be opened, or the thread cannot start.
pub fn write_events(level: Level, output: LogOutput) -> Result<(), LogFault> {
    let stream = LineStream::open("event-log", output)?;
    if LOG.set(EventLog { level, stream }).is_ok() {
        let subscriber = registry().with(EventLayer { level });
        // It fails only if there is a subscriber already.
        let _ = tracing::subscriber::set_global_default(subscriber);
        panic::set_hook(Box::new(|panicked| {
            let place = panicked.location().map(ToString::to_string);
            // Its message may hold any value, so it is not written.
            tracing::error!(place, "panic");
            flush_events(PANIC_WITHIN);
        }));
    }
    Ok(())
}

/// Waits until the events so far are written. False on a timeout.
pub fn flush_events(within: Duration) -> bool {
    LOG.get().is_none_or(|log| log.stream.flush(within))
}

/// The level of the configuration; `None` before the log is opened.
pub fn configured_level() -> Option<Level> {
    LOG.get().map(|log| log.level)
}

/// Whether events of this level are written.
pub(super) fn writes(level: Level) -> bool {
    LOG.get().is_some_and(|log| level <= log.level)
}

/// Says what was left out: these events, of which those that cannot be said are returned, and lines that were dropped.
pub(super) fn say_left_out(due: Vec<Due>, is_end: bool) -> Vec<Due> {
    let Some(EventLog { stream, .. }) = LOG.get() else {
        return due;
    };
    let at = Clock::System.log_time();
    stream.say_dropped(is_end, at);
    let unsaid = due
        .into_iter()
        .filter(|(cause, subject, omitted)| !stream.say(cause, subject, *omitted, at));
    unsaid.collect()
}

/// Opens the file of the events by its name again; `Err` is why not.
pub(super) fn reopen(within: Duration) -> Result<(), String> {
    LOG.get().map_or(Ok(()), |log| log.stream.reopen(within))
}

/// The numbers of lines since the start.
pub(super) fn counts() -> LineCounts {
    LOG.get().map(|log| log.stream.counts()).unwrap_or_default()
}

/// Why the last events could not be written.
pub(super) fn fault() -> Option<WriteFault> {
    LOG.get().and_then(|log| log.stream.fault())
}

/// Passes the gateway's own events on.
struct EventLayer {
    level: Level,
}

impl<S: Subscriber> Layer<S> for EventLayer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if log_level::shows(metadata, self.level) {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        log_level::shows(metadata, self.level)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(log_level::highest(self.level))
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if let Some(log) = LOG.get() {
            log.stream
                .write(EventLine::of(event, Clock::System.log_time()));
        }
    }
}

/// The members of a line, in their order.
#[derive(Debug, Serialize)]
struct EventLine {
    time: String,
    kind: &'static str,
    level: &'static str,
    target: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Map::is_empty")]
    fields: Map<String, Value>,
}

impl EventLine {
    fn of(event: &Event<'_>, at: LogTime) -> Self {
        let metadata = event.metadata();
        let mut members = Members::default();
        event.record(&mut members);
        Self {
            time: at.to_string(),
            kind: LineKind::Event.name(),
            level: match *metadata.level() {
                Level::ERROR => "error",
                Level::WARN => "warn",
                Level::INFO => "info",
                Level::DEBUG => "debug",
                Level::TRACE => "trace",
            },
            target: metadata.target(),
            message: members.message,
            fields: members.fields,
        }
    }
}

impl JsonLine for EventLine {
    fn append_to(&self, text: &mut Vec<u8>) {
        // Serialising into a Vec cannot fail; if it did, a reader would skip the line.
        let _ = serde_json::to_writer(text, self);
    }

    /// The TPP that the event names, or the gateway.
    fn subject(&self) -> Subject {
        let tpp = self.fields.get("tpp").and_then(Value::as_str);
        tpp.and_then(TppId::parse)
            .map_or(Subject::Gateway, Subject::Tpp)
    }
}

/// Collects the fields of an event.
#[derive(Default)]
struct Members {
    message: String,
    fields: Map<String, Value>,
}

impl Members {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Members {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" {
            self.message = text;
        } else {
            self.add(field, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        sync::{Arc, Mutex},
    };

    /// Keeps the lines instead of writing them.
    struct Kept(EventLayer, Arc<Mutex<Vec<Value>>>);

    impl<S: Subscriber> Layer<S> for Kept {
        fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
            <EventLayer as Layer<S>>::register_callsite(&self.0, metadata)
        }

        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let line = EventLine::of(event, LogTime::from_unix_milliseconds(7));
            let line = serde_json::to_value(line).unwrap();
            self.1.lock().unwrap().push(line);
        }
    }

    fn lines(level: Level, events: impl FnOnce()) -> Vec<Value> {
        let kept = Arc::<Mutex<Vec<Value>>>::default();
        let subscriber = registry().with(Kept(EventLayer { level }, Arc::clone(&kept)));
        tracing::subscriber::with_default(subscriber, events);
        kept.lock().unwrap().clone()
    }

    /// A crate that is missing in the list would lose its events in silence.
    #[test]
    fn every_crate_of_portvakt_is_listed() {
        let manifest = include_str!("../Cargo.toml");
        let (_, dependencies) = manifest.split_once("\n[dependencies]\n").unwrap();
        let (dependencies, _) = dependencies.split_once("\n[").unwrap();
        let names = dependencies
            .lines()
            .filter_map(|line| line.split(['.', ' ']).next());
        let own = names.filter(|name| name.starts_with("portvakt-"));
        let own: Vec<_> = own.map(|name| name.replace('-', "_")).collect();
        assert_eq!(log_level::TARGETS[1..], own);
    }

    #[test]
    fn only_the_gateways_own_events_are_written() {
        let found = lines(Level::TRACE, || {
            tracing::trace!("own");
            tracing::error!(target: "pingora_core::protocols", psu = "01010112345", "other");
            tracing::error!(target: "portvaktig", "other");
            tracing::error!(target: "portvakt", "root");
            tracing::error!(target: "portvakt_state::sqlite", "below");
        });
        let messages: Vec<_> = found.iter().map(|line| &line["message"]).collect();
        assert_eq!(messages, ["own", "root", "below"]);
        let found = lines(Level::WARN, || {
            tracing::info!("quiet");
            tracing::warn!("loud");
        });
        assert_eq!(found.len(), 1);
    }

    /// docs/logs.md lists the members of a line.
    #[test]
    fn the_members_are_documented() {
        let found = lines(Level::INFO, || {
            tracing::info!(requests = 3_u64, fault = %"full", is = true, "stopping");
        });
        let expected = serde_json::json!({
            "time": "1970-01-01T00:00:00.007Z", "kind": "event", "level": "info",
            "target": "portvakt::telemetry::event_log::tests", "message": "stopping",
            "fields": {"requests": 3, "fault": "full", "is": true},
        });
        assert_eq!(found, [expected]);
        let document =
            fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/logs.md")).unwrap();
        crate::telemetry::schema::check(&document, "Events", &found, &[]);
    }
}
