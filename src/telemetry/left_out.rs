//! The line that says what was left out of a log (FWD-8), one for each subject in a minute (docs/logs.md).

use super::{
    object::{Object, member},
    subject::Subject,
    values::LineKind,
};
use crate::clock::LogTime;

/// The samples of accepted requests that have no line.
pub(super) const SAMPLES: &str = "samples";

/// Lines for which the queue had no place.
pub(super) const QUEUE: &str = "queue";

/// What was left out of a log.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) at: LogTime,
    /// Why the lines were left out, or the cause of the events that were.
    pub(super) of: &'static str,
    pub(super) subject: Subject,
    pub(super) omitted: u64,
}

impl LeftOut {
    /// Appends the line to a text, without its end.
    pub(super) fn append_to(&self, text: &mut Vec<u8>) {
        let mut line = Object::begin(text);
        line.shown(member!("time"), self.at);
        line.word(member!("kind"), Some(LineKind::LeftOut.name()));
        line.word(member!("of"), Some(self.of));
        match &self.subject {
            Subject::Tpp(tpp) => line.value(member!("tpp"), &tpp.as_str()),
            Subject::Network(share) => line.value(member!("network"), share),
            Subject::OtherTpps | Subject::Gateway => {}
        }
        line.value(member!("omitted"), &self.omitted);
        line.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{interface::TppId, telemetry::schema};
    use serde_json::Value;
    use std::fs;

    /// docs/logs.md lists the members of a line.
    #[test]
    fn the_members_are_documented() {
        let tpp = TppId::parse("PSDNO-FSA-1").unwrap();
        let all = [
            Subject::Tpp(tpp),
            Subject::OtherTpps,
            Subject::Network(255),
            Subject::Gateway,
        ];
        let lines = all.map(|subject| {
            let line = LeftOut {
                at: LogTime::from_unix_milliseconds(7),
                of: SAMPLES,
                subject,
                omitted: 3,
            };
            let mut text = Vec::new();
            line.append_to(&mut text);
            serde_json::from_slice::<Value>(&text).unwrap()
        });
        let document =
            fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/logs.md")).unwrap();
        schema::check(&document, "What was left out", &lines, &[]);
    }
}
