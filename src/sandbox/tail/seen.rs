//! The requests that `portvakt-sandbox tail` has printed, so that each is printed once.
//!
//! Invariant: the memory does not grow with the number of requests. Deliberately not here: the question to the bank, and the output.

use super::recent::{ShownRequest, ShownTail};
use std::collections::VecDeque;

/// The most printed requests that are remembered: twice the number that the bank shows.
const REMEMBERED: usize = 200;

/// The requests that were printed.
#[derive(Debug, Default)]
pub(super) struct Seen {
    has_asked: bool,
    series: Option<String>,
    number: u64,
    /// The latest printed requests, without their numbers.
    printed: VecDeque<ShownRequest>,
}

/// The requests to print.
#[derive(Debug)]
pub(super) struct NewRequests {
    /// The number of requests before them that the bank no longer shows.
    pub(super) passed_over: u64,
    /// Those that were not printed, the oldest first.
    pub(super) requests: Vec<ShownRequest>,
}

impl Seen {
    /// The requests that were not seen before. In a new series, such as after a restart of the bank, which reads its log again, those
    /// that equal a printed one are left out.
    pub(super) fn take_new(&mut self, shown: ShownTail) -> NewRequests {
        let is_other_series = self.series != shown.series;
        let was_empty = self.series.is_none() && self.printed.is_empty();
        let continues = self.has_asked && (!is_other_series || was_empty);
        self.has_asked = true;
        if is_other_series {
            self.series = shown.series;
            self.number = 0;
        }
        let mut requests = shown.requests;
        let last_seen = self.number;
        let first = requests.first().map_or(0, |first| first.number);
        let gap = first.saturating_sub(last_seen).saturating_sub(1);
        self.number = requests.last().map_or(last_seen, |last| last.number);
        requests.retain(|request| {
            let is_printed = is_other_series && self.printed.contains(&without_number(request));
            request.number > last_seen && !is_printed
        });
        for request in &requests {
            if self.printed.len() >= REMEMBERED {
                self.printed.pop_front();
            }
            self.printed.push_back(without_number(request));
        }
        NewRequests {
            passed_over: if continues { gap } else { 0 },
            requests,
        }
    }
}

/// The request as every series shows it.
fn without_number(request: &ShownRequest) -> ShownRequest {
    ShownRequest {
        number: 0,
        ..request.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u64) -> ShownRequest {
        ShownRequest {
            number,
            time: "2026-01-01T00:00:00.000Z".to_owned(),
            method: Some("GET".to_owned()),
            operation: None,
            status: Some(403),
            outcome: Some("refused".to_owned()),
            reason: Some("role-missing".to_owned()),
            request_id: Some("a-1".to_owned()),
            remedy: Some("Use another certificate.".to_owned()),
        }
    }

    /// An answer, whose requests have a number and an X-Request-ID each.
    fn answer(series: &str, requests: &[(u64, &str)]) -> ShownTail {
        let requests = requests.iter().map(|(number, id)| ShownRequest {
            request_id: Some((*id).to_owned()),
            ..request(*number)
        });
        ShownTail {
            tpp: "PSDNO-FSA-1".to_owned(),
            series: Some(series.to_owned()),
            requests: requests.collect(),
        }
    }

    fn ids(new: &NewRequests) -> Vec<&str> {
        let requests = new.requests.iter();
        requests
            .filter_map(|request| request.request_id.as_deref())
            .collect()
    }

    #[test]
    fn each_request_is_printed_once() {
        let mut seen = Seen::default();
        let first = seen.take_new(answer("a", &[(7, "p"), (8, "q")]));
        assert_eq!((ids(&first), first.passed_over), (vec!["p", "q"], 0));
        let same = seen.take_new(answer("a", &[(7, "p"), (8, "q")]));
        assert_eq!((ids(&same), same.passed_over), (vec![], 0));
        let next = seen.take_new(answer("a", &[(8, "q"), (9, "r"), (10, "r")]));
        assert_eq!((ids(&next), next.passed_over), (vec!["r", "r"], 0));
    }

    #[test]
    fn a_restart_of_the_bank_prints_no_request_again() {
        let mut seen = Seen::default();
        seen.take_new(answer("a", &[(7, "p"), (8, "q")]));
        let after = seen.take_new(answer("b", &[(1, "o"), (2, "p"), (3, "q"), (4, "r")]));
        assert_eq!((ids(&after), after.passed_over), (vec!["o", "r"], 0));
        let next = seen.take_new(answer("b", &[(4, "r"), (5, "s")]));
        assert_eq!((ids(&next), next.passed_over), (vec!["s"], 0));
        for number in 6..=250 {
            seen.take_new(answer("b", &[(number, "t")]));
        }
        assert_eq!(seen.printed.len(), REMEMBERED);
    }

    #[test]
    fn requests_that_the_bank_no_longer_shows_are_counted() {
        let mut seen = Seen::default();
        let none = ShownTail {
            series: None,
            ..answer("a", &[])
        };
        assert_eq!(seen.take_new(none).passed_over, 0);
        let burst = seen.take_new(answer("a", &[(51, "p"), (52, "q")]));
        assert_eq!((ids(&burst), burst.passed_over), (vec!["p", "q"], 50));
        let burst = seen.take_new(answer("a", &[(56, "r")]));
        assert_eq!((ids(&burst), burst.passed_over), (vec!["r"], 3));
    }
}
