//! The figures of each TPP, and their total: live consents, and SCAs that ended, with the codes of the failed ones.

use super::{beside::Beside, day::Day, ends::Ended};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A TPP, or the total.
#[derive(Debug, Default)]
struct Row {
    live: Option<u64>,
    ended: Option<Ended>,
}

/// The TPPs, by their names.
#[derive(Debug)]
pub(super) struct ByTpp<'a> {
    rows: BTreeMap<&'a str, Row>,
    total: Row,
    /// SCAs that began, of all TPPs: neither the audit nor a metric has the TPP.
    begun: Option<u64>,
    /// The moment of the live consents.
    at: Option<String>,
}

impl<'a> ByTpp<'a> {
    /// The TPPs of a report; `None` if it was given neither state nor audit.
    pub(super) fn of(days: &[Day], beside: &'a Beside) -> Option<Self> {
        let (consents, ends) = (beside.consents.as_ref(), beside.ends.as_ref());
        if consents.is_none() && ends.is_none() {
            return None;
        }
        let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
        for (tpp, live) in consents.iter().flat_map(|consents| &consents.by_tpp) {
            rows.entry(tpp).or_default().live = Some(*live);
        }
        if let (Some(ends), Some(first), Some(last)) = (ends, days.first(), days.last()) {
            for (tpp, ended) in ends.by_tpp(first.date, last.date) {
                rows.entry(tpp).or_default().ended = Some(ended);
            }
        }
        let mut total = Row {
            live: consents.map(|_| 0),
            ended: ends.map(|_| Ended::default()),
        };
        for row in rows.values_mut() {
            // A TPP that one of the two does not name has none there.
            row.live = consents.map(|_| row.live.unwrap_or_default());
            row.ended = ends.map(|_| row.ended.take().unwrap_or_default());
            total.live = total.live.zip(row.live).map(|(sum, own)| sum + own);
            if let (Some(sum), Some(own)) = (&mut total.ended, &row.ended) {
                sum.add(own);
            }
        }
        let begun = beside.sca.as_ref().map(|sca| {
            let begun = days.iter().filter_map(|day| sca.of(day.date)?.started);
            begun.fold(0, u64::saturating_add)
        });
        Some(Self {
            rows,
            total,
            begun,
            at: consents.map(|consents| consents.at.to_string()),
        })
    }

    /// A line for each TPP, and one of the total.
    pub(super) fn csv(&self) -> String {
        let mut text = "tpp".to_owned();
        if self.at.is_some() {
            text += ",live_consents";
        }
        if self.begun.is_some() {
            text += ",sca_started";
        }
        if self.total.ended.is_some() {
            text += ",sca_completed,sca_failed,sca_failed_by_code";
        }
        text.push('\n');
        let rows = self.rows.iter().map(|(tpp, row)| (*tpp, row, None));
        for (name, row, begun) in rows.chain([("total", &self.total, self.begun)]) {
            text += name;
            if let Some(live) = row.live {
                text += &format!(",{live}");
            }
            if self.begun.is_some() {
                text.push(',');
                text += &begun.map(|begun| begun.to_string()).unwrap_or_default();
            }
            if let Some(ended) = &row.ended {
                let (completed, failed) = (ended.completed, ended.failed());
                text += &format!(",{completed},{failed},{}", codes(ended));
            }
            text.push('\n');
        }
        text
    }

    /// The members of the report beside its days.
    pub(super) fn members(&self) -> Map<String, Value> {
        let rows = self.rows.iter().map(|(tpp, row)| {
            let mut object = Map::new();
            object.insert("tpp".to_owned(), json!(tpp));
            object.extend(figures(row));
            Value::Object(object)
        });
        let mut total = figures(&self.total);
        if let Some(begun) = self.begun {
            total.insert("sca_started".to_owned(), json!(begun));
        }
        let mut members = Map::new();
        members.insert("tpps".to_owned(), rows.collect());
        members.insert("total".to_owned(), Value::Object(total));
        if let Some(at) = &self.at {
            members.insert("live_consents_at".to_owned(), json!(at));
        }
        members
    }
}

fn figures(row: &Row) -> Map<String, Value> {
    let mut object = Map::new();
    if let Some(live) = row.live {
        object.insert("live_consents".to_owned(), json!(live));
    }
    if let Some(ended) = &row.ended {
        object.insert("sca_completed".to_owned(), json!(ended.completed));
        object.insert("sca_failed".to_owned(), json!(ended.failed()));
        object.insert("sca_failed_by_code".to_owned(), json!(ended.by_code));
    }
    object
}

/// The codes of failed SCAs in a field of CSV, as in `FORBIDDEN=1 PSU_CREDENTIALS_INVALID=2`.
pub(super) fn codes(ended: &Ended) -> String {
    let codes = ended.by_code.iter();
    let codes: Vec<_> = codes
        .map(|(code, count)| format!("{code}={count}"))
        .collect();
    codes.join(" ")
}
