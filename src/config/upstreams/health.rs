//! Health of endpoints: the keys `health` and `ejection` of an upstream group.

use super::super::endpoints::duration;
use super::super::section::Section;
use super::super::value::Value;
use std::time::Duration;

/// Active checks of every endpoint of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ActiveCheck {
    /// The path and query of the GET that is sent.
    pub path: String,
    /// The status of a healthy endpoint's answer. Default 200.
    pub status: u16,
    /// From the end of one check to the next. Default 1 s.
    pub interval: Duration,
    /// The time limit of a check. Default 500 ms.
    pub timeout: Duration,
    /// The consecutive successful checks after which an endpoint is healthy again. Default 2.
    pub healthy_after: usize,
    /// The consecutive failed checks after which an endpoint is unhealthy. Default 2.
    pub unhealthy_after: usize,
}

/// Passive ejection of endpoints whose requests fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ejection {
    /// The consecutive failures after which an endpoint is ejected. Default 5.
    pub failures: u32,
    /// How long it gets no request. Doubled by each ejection that follows at once, to eight times. Default 10 s.
    pub time: Duration,
    /// How long its share of requests grows back to its whole. Default 10 s.
    pub recovery: Duration,
}

impl Default for Ejection {
    fn default() -> Self {
        Self {
            failures: 5,
            time: Duration::from_secs(10),
            recovery: Duration::from_secs(10),
        }
    }
}

impl ActiveCheck {
    /// Reads the section; `None` if there is none.
    pub(super) fn read(group: &mut Section<'_>) -> Option<Self> {
        let mut section = group.optional_section("health")?;
        let path = section.required("path").and_then(|value| path(&value));
        let status = section.optional("status");
        let status = status.and_then(|value| value.integer(200..=599));
        let interval = duration(&mut section, "interval", 100, 300_000);
        let timeout = duration(&mut section, "timeout", 10, 60_000);
        let mut times = |key| {
            let value = section.optional(key);
            value.and_then(|value| value.integer(1..=100)).unwrap_or(2)
        };
        let (healthy_after, unhealthy_after) = (times("healthy_after"), times("unhealthy_after"));
        section.finish();
        Some(Self {
            path: path?,
            status: status.unwrap_or(200),
            interval: interval.unwrap_or(Duration::from_secs(1)),
            timeout: timeout.unwrap_or(Duration::from_millis(500)),
            healthy_after,
            unhealthy_after,
        })
    }
}

impl Ejection {
    /// Reads the key: `off`, or a section. Default on.
    pub(super) fn read(group: &mut Section<'_>) -> Option<Self> {
        let mut ejection = Self::default();
        let Some(value) = group.optional("ejection") else {
            return Some(ejection);
        };
        if value.is("off") {
            return None;
        }
        let mut section = value.as_section();
        let failures = section.optional("failures");
        if let Some(failures) = failures.and_then(|value| value.integer(1..=1_000)) {
            ejection.failures = failures;
        }
        for (key, limit) in [
            ("time", &mut ejection.time),
            ("recovery", &mut ejection.recovery),
        ] {
            *limit = duration(&mut section, key, 100, 3_600_000).unwrap_or(*limit);
        }
        section.finish();
        Some(ejection)
    }
}

/// A path in the form of a request line.
fn path(value: &Value<'_>) -> Option<String> {
    let text = value.as_str()?;
    let is_plain = text.len() <= 1_024 && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain && text.starts_with('/') {
        return Some(text.to_owned());
    }
    value.refuse("a path such as /health")
}
