//! SCAs by day, from a saved answer of Prometheus about `portvakt_sca_total`.
//!
//! The answer is that of `/api/v1/query_range` to an increase over a day, at each midnight (UTC): the figure of a midnight is that of the
//! day before it. Deliberately not here: a client of Prometheus, and the codes of failures, which no metric has (ends.rs).

use super::fault::PlacedFault;
use crate::telemetry::ScaEvent;
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde_json::Value;
use std::collections::BTreeMap;

/// The seconds of a day.
const DAY: i64 = 86_400;

/// The events that a report has.
const EVENTS: [ScaEvent; 3] = [ScaEvent::Started, ScaEvent::Completed, ScaEvent::Failed];

/// The SCAs of a day, by [`EVENTS`]; `None` where Prometheus has no sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScaDay {
    /// SCAs whose link the bank's service read.
    pub(super) started: Option<u64>,
    pub(super) completed: Option<u64>,
    pub(super) failed: Option<u64>,
}

impl ScaDay {
    /// Keeps a figure; false if there is one already.
    fn keep(&mut self, event: ScaEvent, count: u64) -> bool {
        let figure = match event {
            ScaEvent::Started => &mut self.started,
            ScaEvent::Completed => &mut self.completed,
            ScaEvent::Failed => &mut self.failed,
            ScaEvent::Link | ScaEvent::Expired => return true,
        };
        figure.replace(count).is_none()
    }
}

/// Reads the answer.
///
/// # Errors
/// What is no such answer.
pub(super) fn read(bytes: &[u8]) -> Result<BTreeMap<Date, ScaDay>, Vec<PlacedFault>> {
    let series = matrix(bytes).map_err(|fault| vec![fault])?;
    let mut days: BTreeMap<Date, ScaDay> = BTreeMap::new();
    let mut faults = Vec::new();
    let mut seen = Vec::new();
    for (index, one) in series.iter().enumerate() {
        let place = format!("data.result[{index}]");
        let Some(name) = one.pointer("/metric/event").and_then(Value::as_str) else {
            let text = "there is no label event; ask for the sum by (event)";
            faults.push(PlacedFault::new(format!("{place}.metric"), text));
            continue;
        };
        let Some(event) = ScaEvent::from_name(name) else {
            let text = "this version knows no such event; ask for the increase of portvakt_sca_total of gateways of this version";
            faults.push(PlacedFault::new(format!("{place}.metric"), text));
            continue;
        };
        if !EVENTS.contains(&event) {
            continue;
        }
        if seen.contains(&event) {
            let text = "another series has the same event; ask for the sum by (event)";
            faults.push(PlacedFault::new(format!("{place}.metric"), text));
            continue;
        }
        seen.push(event);
        let Some(values) = one.get("values").and_then(Value::as_array) else {
            let text = "expected a list of samples; save the whole answer of Prometheus";
            faults.push(PlacedFault::new(format!("{place}.values"), text));
            continue;
        };
        for (index, sample) in values.iter().enumerate() {
            let kept = read_sample(sample).and_then(|(date, count)| {
                match days.entry(date).or_default().keep(event, count) {
                    true => Ok(()),
                    false => Err("another sample has the same day; remove one of them"),
                }
            });
            if let Err(text) = kept {
                faults.push(PlacedFault::new(format!("{place}.values[{index}]"), text));
            }
        }
    }
    for event in EVENTS.iter().filter(|event| !seen.contains(event)) {
        let text = format!(
            "no series has the event {}; ask for the sum by (event) of portvakt_sca_total",
            event.name()
        );
        faults.push(PlacedFault::new("data.result", text));
    }
    match faults.is_empty() {
        true => Ok(days),
        false => Err(faults),
    }
}

/// The series of an answer.
fn matrix(bytes: &[u8]) -> Result<Vec<Value>, PlacedFault> {
    let mut answer: Value = serde_json::from_slice(bytes).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        PlacedFault::new(place, "it is no JSON; save the whole answer of Prometheus")
    })?;
    let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str);
    if text("/status") != Some("success") {
        let text = "expected success; ask Prometheus again";
        return Err(PlacedFault::new("status", text));
    }
    if text("/data/resultType") != Some("matrix") {
        let text = "expected matrix; ask /api/v1/query_range";
        return Err(PlacedFault::new("data.resultType", text));
    }
    match answer.pointer_mut("/data/result").map(Value::take) {
        Some(Value::Array(series)) => Ok(series),
        _ => {
            let text = "expected a list; save the whole answer of Prometheus";
            Err(PlacedFault::new("data.result", text))
        }
    }
}

/// The day that ends with a sample, and its count. Prometheus extrapolates an increase, so it is rounded.
fn read_sample(sample: &Value) -> Result<(Date, u64), &'static str> {
    let midnight = sample.get(0).and_then(Value::as_i64);
    let midnight = midnight.filter(|seconds| seconds.rem_euclid(DAY) == 0);
    let date = midnight.and_then(day_before);
    let date =
        date.ok_or("expected a midnight (UTC); ask with a start at 00:00:00Z and step=1d")?;
    let count = sample.get(1).and_then(Value::as_str);
    let count = count.and_then(|text| text.parse::<f64>().ok());
    let count = count.filter(|count| count.is_finite() && *count >= 0.0);
    // Whole numbers beyond u64 are refused here.
    let count = count.and_then(|count| format!("{:.0}", count.abs()).parse().ok());
    let count = count.ok_or("expected a number of events; ask for the increase over a day")?;
    Ok((date, count))
}

fn day_before(midnight: i64) -> Option<Date> {
    let midnight = Timestamp::from_second(midnight).ok()?;
    let date = midnight.to_zoned_datetime(TimeZone::UTC).date();
    date.yesterday().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// 2026-10-02T00:00:00Z.
    const MIDNIGHT: i64 = 1_790_899_200;

    fn series(event: &str, values: &Value) -> Value {
        json!({"metric": {"event": event}, "values": values})
    }

    fn answer(series: &[Value]) -> Value {
        json!({"status": "success", "data": {"resultType": "matrix", "result": series}})
    }

    fn whole() -> [Value; 5] {
        [
            series(
                "completed",
                &json!([[MIDNIGHT, "6.004"], [MIDNIGHT + DAY, "0"]]),
            ),
            series("expired", &json!([[MIDNIGHT, "9"]])),
            series("failed", &json!([[MIDNIGHT, "2"]])),
            series("link", &json!([[MIDNIGHT, "20"]])),
            series("started", &json!([[MIDNIGHT, "11.996"]])),
        ]
    }

    fn faults(answer: &Value) -> Vec<String> {
        let faults = read(answer.to_string().as_bytes()).unwrap_err();
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_midnight_has_the_figures_of_the_day_before() {
        let days = read(answer(&whole()).to_string().as_bytes()).unwrap();
        let days: Vec<_> = days
            .into_iter()
            .map(|(day, of)| (day.to_string(), of))
            .collect();
        let first = ScaDay {
            started: Some(12),
            completed: Some(6),
            failed: Some(2),
        };
        let second = ScaDay {
            completed: Some(0),
            ..ScaDay::default()
        };
        let expected = [
            ("2026-10-01".to_owned(), first),
            ("2026-10-02".to_owned(), second),
        ];
        assert_eq!(days, expected);
    }

    #[test]
    fn another_answer_is_refused() {
        let text = read(b"{\n  no").unwrap_err();
        let text = text[0].to_string();
        assert!(text.starts_with("line 2, column "), "{text}");
        let table = [
            (json!({"status": "error", "error": "x"}), "status: "),
            (
                json!({"status": "success", "data": {"resultType": "vector", "result": []}}),
                "data.resultType: ",
            ),
            (
                json!({"status": "success", "data": {"resultType": "matrix"}}),
                "data.result: expected a list",
            ),
        ];
        for (answer, expected) in table {
            let found = faults(&answer);
            assert!(
                found.len() == 1 && found[0].starts_with(expected),
                "{found:?}"
            );
        }
        let missing = faults(&answer(&whole()[..4]));
        assert_eq!(missing.len(), 1);
        assert!(missing[0].contains("the event started"), "{missing:?}");
    }

    #[test]
    fn a_wrong_series_is_refused_with_its_place() {
        let nameless = json!({"metric": {}, "values": []});
        let table = [
            (nameless, "data.result[5].metric: there is no label event"),
            (
                series("failed", &json!([])),
                "data.result[5].metric: another series has the same event",
            ),
            (
                series("postponed", &json!([])),
                "data.result[5].metric: this version knows no such event",
            ),
        ];
        for (more, expected) in table {
            let found = faults(&answer(&[whole().as_slice(), &[more]].concat()));
            assert!(
                found.len() == 1 && found[0].starts_with(expected),
                "{found:?}"
            );
        }
        for sample in [
            json!([MIDNIGHT + 1, "1"]),
            json!([1.5, "1"]),
            json!([MIDNIGHT, "NaN"]),
            json!([MIDNIGHT, "-1"]),
            json!([MIDNIGHT, 1]),
            json!([]),
            json!("x"),
            json!([MIDNIGHT, "2"]),
        ] {
            let mut all = whole();
            all[2] = series("failed", &json!([[MIDNIGHT, "2"], sample]));
            let found = faults(&answer(&all));
            assert!(
                found.len() == 1 && found[0].starts_with("data.result[2].values[1]: "),
                "{sample}: {found:?}"
            );
        }
    }
}
