//! The status of an interface for programs: `status.json`.
//!
//! Invariant: members are only added, unless [`VERSION`] changes. It has no number of requests: only what the page shows too.

use super::{
    beside::Figures,
    day::{Day, rounded_down},
    own::OwnDay,
};
use serde_json::{Value, json};

/// The beginning of every such file.
pub(super) const BEGIN: &str = "{\n  \"format\": \"portvakt-status\",";

/// The version of the members.
const VERSION: u32 = 1;

/// Renders the days.
pub(super) fn render(days: &[Day], own: Option<&Figures<OwnDay>>, bank: Option<&str>) -> String {
    let date = |day: Option<&Day>| day.map(|day| day.date.to_string());
    let objects = days.iter().map(|day| {
        json!({
            "date": day.date.to_string(),
            "dedicated_interface": {
                "availability_percent": rounded_down(day.availability()),
                "downtime_seconds": day.downtime_seconds(),
                "mean_ms_ais": day.ais.mean().map(|mean| rounded(mean, 1)),
                "mean_ms_pis": day.pis.mean().map(|mean| rounded(mean, 1)),
                "errors": day.errors,
                "error_rate_percent": rounded(day.error_rate(), 4),
            },
            "own_channel": own.and_then(|own| own.of(day.date)).map(own_channel),
        })
    });
    let status = json!({
        "format": "portvakt-status",
        "version": VERSION,
        "bank": bank,
        "from": date(days.first()),
        "to": date(days.last()),
        "days": Value::from_iter(objects),
    });
    format!("{status:#}\n")
}

fn own_channel(own: &OwnDay) -> Value {
    json!({
        "availability_percent": rounded_down(own.availability),
        "mean_ms": own.mean.map(|mean| rounded(mean, 1)),
        "errors": own.errors,
        "error_rate_percent": rounded(own.error_rate(), 4),
    })
}

/// The figure as the page shows it.
fn rounded(figure: f64, decimals: usize) -> f64 {
    format!("{figure:.decimals$}").parse().unwrap_or(figure)
}
