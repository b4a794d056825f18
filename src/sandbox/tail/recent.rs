//! The latest requests of each TPP, from lines of the gateway's access log (docs/logs.md).
//!
//! Invariants: a request belongs to the TPP whose signature verified, which the log calls `tpp`; `shown_tpp`, which anybody can name, counts
//! for nothing. A TPP learns nothing of another: numbers are counted for each. Only the members of [`ShownRequest`] leave this module.

use portvakt_interface::{Reason, TppId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use uuid::Uuid;

/// The most requests of a TPP that are kept: the latest.
const OF_A_TPP: usize = 100;

/// The most TPPs. Beyond it, the TPP that sent nothing for longest is forgotten.
const MOST_TPPS: usize = 1_024;

/// A request as its TPP sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShownRequest {
    /// Counts the requests of the TPP in one series.
    pub(super) number: u64,
    /// When the request ended, in UTC.
    pub(super) time: String,
    /// The method, if a standard defines it.
    pub(super) method: Option<String>,
    /// The operation; `None` if the path names none.
    pub(super) operation: Option<String>,
    /// The status of the answer; `None` without one.
    pub(super) status: Option<u16>,
    /// The outcome, as in the access log.
    pub(super) outcome: Option<String>,
    /// The reason of a refused or failed request.
    pub(super) reason: Option<String>,
    /// X-Request-ID, as the TPP chose it.
    #[serde(rename = "requestId")]
    pub(super) request_id: Option<String>,
    /// The correction, by the guide to the reason.
    pub(super) remedy: Option<String>,
}

/// The body of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShownTail {
    /// The TPP of the token.
    pub(super) tpp: String,
    /// Changes where the numbers begin anew; `None` before the first request.
    pub(super) series: Option<String>,
    /// The latest requests, the oldest first.
    pub(super) requests: Vec<ShownRequest>,
}

/// The members of a line that are read. Others are passed over.
#[derive(Debug, Deserialize)]
struct Line {
    kind: String,
    time: String,
    tpp: Option<String>,
    method: Option<String>,
    operation: Option<String>,
    status: Option<u16>,
    outcome: Option<String>,
    reason: Option<String>,
    request_id: Option<String>,
}

/// The latest requests of all TPPs.
#[derive(Debug, Default)]
pub(super) struct Recent {
    of: BTreeMap<String, Requests>,
    /// The number of lines, by which the oldest TPP is found.
    lines: u64,
}

#[derive(Debug)]
struct Requests {
    series: String,
    count: u64,
    /// The last line, as a number of [`Recent::lines`].
    last: u64,
    latest: VecDeque<ShownRequest>,
}

impl Recent {
    /// Notes a line of the log. A line without a verified TPP, and one that is no request's, is passed over.
    pub(super) fn note(&mut self, line: &[u8]) {
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            return;
        };
        let Some(tpp) = line.tpp.clone().filter(|_| line.kind == "access") else {
            return;
        };
        self.lines = self.lines.saturating_add(1);
        if !self.of.contains_key(&tpp) && self.of.len() >= MOST_TPPS {
            self.forget_oldest();
        }
        let requests = self.of.entry(tpp).or_insert_with(|| Requests {
            series: Uuid::new_v4().to_string(),
            count: 0,
            last: 0,
            latest: VecDeque::new(),
        });
        requests.last = self.lines;
        requests.add(line);
    }

    /// The latest requests of exactly this TPP.
    pub(super) fn of(&self, tpp: &TppId) -> ShownTail {
        let requests = self.of.get(tpp.as_str());
        ShownTail {
            tpp: tpp.to_string(),
            series: requests.map(|requests| requests.series.clone()),
            requests: requests
                .map(|requests| requests.latest.iter().cloned().collect())
                .unwrap_or_default(),
        }
    }

    fn forget_oldest(&mut self) {
        let oldest = self.of.iter().min_by_key(|(_, requests)| requests.last);
        if let Some(tpp) = oldest.map(|(tpp, _)| tpp.clone()) {
            self.of.remove(&tpp);
        }
    }
}

impl Requests {
    fn add(&mut self, line: Line) {
        self.count = self.count.saturating_add(1);
        if self.latest.len() >= OF_A_TPP {
            self.latest.pop_front();
        }
        let reason = line.reason.as_deref().and_then(Reason::from_slug);
        self.latest.push_back(ShownRequest {
            number: self.count,
            time: line.time,
            method: line.method,
            operation: line.operation,
            status: line.status,
            outcome: line.outcome,
            reason: line.reason,
            request_id: line.request_id,
            remedy: reason.map(|reason| reason.guide().remedy.to_owned()),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tpp(id: &str) -> TppId {
        TppId::parse(id).unwrap()
    }

    fn line(tpp: &str, id: usize) -> Vec<u8> {
        let line = json!({
            "time": "2026-01-01T00:00:00.000Z", "kind": "access", "id": null, "request_id": id.to_string(), "method": "GET",
            "network": "0123456789abcdef", "operation": "account-list", "tpp": tpp, "outcome": "refused", "reason": "role-missing",
            "status": 403, "operator": "for the operator", "checks_us": {"match": 1},
        });
        line.to_string().into_bytes()
    }

    #[test]
    fn a_request_is_shown_with_its_reason_and_nothing_of_the_operators() {
        let mut recent = Recent::default();
        recent.note(&line("PSDNO-FSA-1", 7));
        let shown = recent.of(&tpp("PSDNO-FSA-1"));
        let [request] = shown.requests.as_slice() else {
            panic!("{shown:?}");
        };
        assert_eq!(request.request_id.as_deref(), Some("7"));
        assert_eq!(request.reason.as_deref(), Some("role-missing"));
        assert_eq!(
            request.remedy.as_deref(),
            Some(Reason::RoleMissing.guide().remedy)
        );
        let text = serde_json::to_string(&shown).unwrap();
        for hidden in ["for the operator", "0123456789abcdef", "checks_us"] {
            assert!(!text.contains(hidden), "{text}");
        }
    }

    #[test]
    fn other_tpps_and_unverified_requests_are_not_shown() {
        let mut recent = Recent::default();
        recent.note(&line("PSDNO-FSA-1-2", 1));
        let shown = json!({"time": "t", "kind": "access", "tpp": null, "shown_tpp": "PSDNO-FSA-1", "reason": "signature-mismatch"});
        recent.note(shown.to_string().as_bytes());
        let left_out = json!({"time": "t", "kind": "left-out", "of": "samples", "tpp": "PSDNO-FSA-1", "omitted": 1});
        recent.note(left_out.to_string().as_bytes());
        for broken in ["", "{", "[]", "{\"kind\":\"access\"}"] {
            recent.note(broken.as_bytes());
        }
        for none in ["PSDNO-FSA-1", "PSDNO-FSA-12"] {
            let shown = recent.of(&tpp(none));
            assert_eq!((shown.series, shown.requests.len()), (None, 0), "{none}");
        }
        assert_eq!(recent.of(&tpp("PSDNO-FSA-1-2")).requests.len(), 1);
    }

    #[test]
    fn the_latest_are_kept_and_numbers_are_of_one_tpp() {
        let mut recent = Recent::default();
        for id in 0..OF_A_TPP + 2 {
            recent.note(&line("PSDNO-FSA-1", id));
            recent.note(&line("PSDNO-FSA-2", id));
        }
        let shown = recent.of(&tpp("PSDNO-FSA-1")).requests;
        let numbers: Vec<_> = shown.iter().map(|request| request.number).collect();
        assert_eq!(numbers, (3..=102).collect::<Vec<u64>>());
        for id in 0..MOST_TPPS - 1 {
            recent.note(&line(&format!("PSDNO-FSA-A{id}"), 0));
        }
        let counts = ["PSDNO-FSA-1", "PSDNO-FSA-2"].map(|id| recent.of(&tpp(id)).requests.len());
        assert_eq!(counts, [0, OF_A_TPP], "the oldest is forgotten");
    }
}
