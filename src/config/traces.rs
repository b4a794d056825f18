//! The section `traces`: the collector that spans of requests are pushed to, and the ratio of requests that have spans.
//!
//! Invariant: the address is the operator's, and no part of it comes from a request. Deliberately not here: what is in a span.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;

use super::section::Section;

/// The default of `ratio`: one request of a hundred.
const RATIO: Ratio = Ratio(10_000);

/// One, in millionths.
const ONE: u32 = 1_000_000;

/// The bits of a trace id that the ratio is compared with: those that level 2 of W3C Trace Context calls random.
const RANDOM_BITS: u32 = 56;

/// The section `traces`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSettings {
    /// The collector's address for traces, with its path.
    pub endpoint: TraceEndpoint,
    /// The ratio of requests with spans, where no trusted proxy decides. Default 0.01.
    pub ratio: Ratio,
}

/// An http or https URL without user, password, query and fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEndpoint(Url);

impl TraceEndpoint {
    /// The URL.
    pub const fn url(&self) -> &Url {
        &self.0
    }

    /// Whether the spans go in clear to a host that is not surely in the bank's own network: a name, or a public address.
    fn is_exposed(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_private = match host.parse() {
            Ok(std::net::IpAddr::V4(address)) => address.is_private() || address.is_loopback(),
            Ok(std::net::IpAddr::V6(address)) => address.is_unique_local() || address.is_loopback(),
            Err(_) => host == "localhost",
        };
        self.0.scheme() == "http" && !is_private
    }
}

/// The reason why a text is no address of a collector.
#[derive(Debug, thiserror::Error)]
#[error("only http or https, with a host, without user, password, query and fragment")]
pub struct NoTraceEndpoint;

impl FromStr for TraceEndpoint {
    type Err = NoTraceEndpoint;

    fn from_str(text: &str) -> Result<Self, NoTraceEndpoint> {
        let url = Url::parse(text).map_err(|_| NoTraceEndpoint)?;
        let is_plain = matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        is_plain.then_some(Self(url)).ok_or(NoTraceEndpoint)
    }
}

/// A ratio from 0 to 1, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio(u32);

impl Ratio {
    /// Whether a trace is one of this ratio, by the low 56 bits of its id: every system with the same ratio takes the same traces.
    pub fn takes(self, trace: u128) -> bool {
        let random = trace & ((1 << RANDOM_BITS) - 1);
        random * u128::from(ONE) < u128::from(self.0) << RANDOM_BITS
    }
}

/// The reason why a text is no ratio.
#[derive(Debug, thiserror::Error)]
#[error("digits, and after a point at most six more")]
pub struct NoRatio;

impl FromStr for Ratio {
    type Err = NoRatio;

    fn from_str(text: &str) -> Result<Self, NoRatio> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let is_written = matches!(whole, "0" | "1")
            && (1..=6).contains(&decimals.len())
            && decimals.bytes().all(|byte| byte.is_ascii_digit());
        let millionths = format!("{whole}{decimals:0<6}").parse().ok();
        let ratio = millionths.filter(|millionths| is_written && *millionths <= ONE);
        ratio.map(Self).ok_or(NoRatio)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:06}", self.0 / ONE, self.0 % ONE)
    }
}

/// Reads the section; `None` without an endpoint, and after a fault.
pub(super) fn read(root: &mut Section<'_>) -> Option<TraceSettings> {
    let mut section = root.optional_section("traces")?;
    let endpoint = section.optional("endpoint").and_then(|value| {
        let expected =
            "the URL of a collector, such as https://collector.example.com:4318/v1/traces";
        let endpoint: TraceEndpoint = value.parse(expected)?;
        if endpoint.is_exposed() {
            value.warn("spans go in clear, and the host is no private address: use https");
        }
        Some(endpoint)
    });
    let ratio = section.optional("ratio");
    if let (None, Some(ratio)) = (&endpoint, &ratio) {
        ratio.warn("without traces.endpoint no spans are pushed");
    }
    let ratio = ratio.and_then(|value| value.parse("a ratio from 0 to 1, such as 0.01"));
    section.finish();
    Some(TraceSettings {
        endpoint: endpoint?,
        ratio: ratio.unwrap_or(RATIO),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1", Some(ONE)),
            ("1.0", Some(ONE)),
            ("0.01", Some(10_000)),
            ("0.000001", Some(1)),
            ("0.0000001", None),
            ("1.000001", None),
            ("2", None),
            ("-0.1", None),
            ("1e-2", None),
            (".1", None),
            ("0.", None),
            ("", None),
        ] {
            let ratio = text.parse::<Ratio>().ok();
            assert_eq!(
                ratio.map(|Ratio(millionths)| millionths),
                expected,
                "{text}"
            );
        }
        let half: Ratio = "0.5".parse().unwrap();
        assert!(half.takes((1 << 55) - 1) && !half.takes(1 << 55));
        assert!(half.takes(1 << 56), "higher bits do not count");
        assert!(!Ratio(0).takes(0) && Ratio(ONE).takes(u128::MAX));
        assert_eq!(RATIO.to_string(), "0.010000");
    }

    #[test]
    fn endpoints() {
        for (text, is_exposed) in [
            ("https://collector.example.com/v1/traces", Some(false)),
            ("http://collector.example.com/v1/traces", Some(true)),
            ("http://8.8.8.8:4318/v1/traces", Some(true)),
            ("http://10.0.0.1:4318/v1/traces", Some(false)),
            ("http://localhost:4318/v1/traces", Some(false)),
            ("http://[::1]:4318/v1/traces", Some(false)),
            ("http://a:b@10.0.0.1/v1/traces", None),
            ("http://10.0.0.1/v1/traces?token=a", None),
            ("ftp://10.0.0.1/", None),
            ("10.0.0.1:4318", None),
        ] {
            let endpoint = text.parse::<TraceEndpoint>().ok();
            let found = endpoint.map(|endpoint| endpoint.is_exposed());
            assert_eq!(found, is_exposed, "{text}");
        }
    }
}
