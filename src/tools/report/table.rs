//! A report as CSV and as JSON.
//!
//! Invariant: the columns and members of the access logs come first and are always there; those of a file follow if it was given. With
//! figures of TPPs, CSV has a second table after an empty line, and JSON is an object, of which `days` is what it is without them.

use super::{
    beside::Beside,
    by_tpp::{ByTpp, codes},
    day::Day,
    own::OwnDay,
};
use serde_json::{Map, Value, json};

/// The columns of the access logs.
pub(super) const COLUMNS: &str = "date,availability_percent,downtime_seconds,requests,requests_ais,requests_pis,mean_ms_ais,mean_ms_pis,errors,error_rate_percent";

/// Those of the own channel.
const OWN_COLUMNS: &str =
    ",own_availability_percent,own_mean_ms,own_requests,own_errors,own_error_rate_percent";

/// Those of SCAs.
const SCA_COLUMNS: &str = ",sca_started,sca_completed,sca_failed";

/// The codes of failed SCAs.
const CODE_COLUMN: &str = ",sca_failed_by_code";

/// A line for each day.
pub(super) fn csv(days: &[Day], beside: &Beside) -> String {
    let mut text = COLUMNS.to_owned();
    if beside.own.is_some() {
        text += OWN_COLUMNS;
    }
    if beside.sca.is_some() || beside.ends.is_some() {
        text += SCA_COLUMNS;
    }
    if beside.ends.is_some() {
        text += CODE_COLUMN;
    }
    text.push('\n');
    let mean = |mean: Option<f64>| mean.map(|mean| format!("{mean:.1}")).unwrap_or_default();
    let count = |count: Option<u64>| count.map(|count| count.to_string()).unwrap_or_default();
    for day in days {
        text += &format!(
            "{},{:.3},{},{},{},{},{},{},{},{:.4}",
            day.date,
            day.availability(),
            day.downtime_seconds(),
            day.requests,
            day.ais.requests,
            day.pis.requests,
            mean(day.ais.mean()),
            mean(day.pis.mean()),
            day.errors,
            day.error_rate(),
        );
        if let Some(own) = &beside.own {
            text += &match own.of(day.date) {
                None => ",,,,,".to_owned(),
                Some(own) => format!(
                    ",{:.3},{},{},{},{:.4}",
                    own.availability,
                    mean(own.mean),
                    own.requests,
                    own.errors,
                    own.error_rate(),
                ),
            };
        }
        if let Some(sca) = beside.sca_of(day.date) {
            for figure in [sca.started, sca.completed, sca.failed] {
                text.push(',');
                text += &count(figure);
            }
        }
        if let Some(ends) = &beside.ends {
            text.push(',');
            text += &codes(&ends.of(day.date));
        }
        text.push('\n');
    }
    if let Some(tpps) = ByTpp::of(days, beside) {
        text.push('\n');
        text += &tpps.csv();
    }
    text
}

/// An object for each day.
pub(super) fn objects(days: &[Day], beside: &Beside) -> String {
    let objects = days.iter().map(|day| object(day, beside));
    let objects = Value::from_iter(objects);
    let report = match ByTpp::of(days, beside) {
        None => objects,
        Some(tpps) => {
            let mut report = Map::new();
            report.insert("days".to_owned(), objects);
            report.extend(tpps.members());
            Value::Object(report)
        }
    };
    format!("{report:#}\n")
}

fn object(day: &Day, beside: &Beside) -> Value {
    let mut object = json!({
        "date": day.date.to_string(),
        "availability_percent": day.availability(),
        "downtime_seconds": day.downtime_seconds(),
        "requests": day.requests,
        "requests_ais": day.ais.requests,
        "requests_pis": day.pis.requests,
        "mean_ms_ais": day.ais.mean(),
        "mean_ms_pis": day.pis.mean(),
        "errors": day.errors,
        "error_rate_percent": day.error_rate(),
    });
    let mut add = |name: &str, figure: Value| {
        if let Some(members) = object.as_object_mut() {
            members.insert(name.to_owned(), figure);
        }
    };
    if let Some(own) = &beside.own {
        let own = own.of(day.date);
        add(
            "own_availability_percent",
            json!(own.map(|own| own.availability)),
        );
        add("own_mean_ms", json!(own.and_then(|own| own.mean)));
        add("own_requests", json!(own.map(|own| own.requests)));
        add("own_errors", json!(own.map(|own| own.errors)));
        let rate = own.map(OwnDay::error_rate);
        add("own_error_rate_percent", json!(rate));
    }
    if let Some(sca) = beside.sca_of(day.date) {
        add("sca_started", json!(sca.started));
        add("sca_completed", json!(sca.completed));
        add("sca_failed", json!(sca.failed));
    }
    if let Some(ends) = &beside.ends {
        add("sca_failed_by_code", json!(ends.of(day.date).by_code));
    }
    object
}
