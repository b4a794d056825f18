//! The spans of a finished request: the request, its checks, its claim, and the core's part.
//!
//! Invariant: names, keys and values come from the gateway's own enums and configuration, and the id of a TPP whose signature verified;
//! nothing comes from a header, a path or a body. Deliberately not here: which requests have spans.

use super::{
    super::{
        facts::{CoreTook, Finished},
        upstreams::CoreEndpoint,
    },
    message::{KeyValue, Span, SpanKind, Status, StatusCode},
};
use crate::{
    admission::{Outcome, Stage},
    clock::LogTime,
    interface::{Reason, Side, TppId, headers::trace::TraceContext, operations::Operation},
};
use portvakt_base::values;
use std::{sync::Arc, time::Duration};

values! {
    /// The name of a span.
    pub(super) enum SpanName {
        /// From the head to the end of the request.
        Request = "request",
        /// All checks before the claim, with the wait for the body.
        Checks = "checks",
        /// The claim of the request id and the quota.
        Claim = "claim",
        /// From the choice of an endpoint to the head of its answer.
        Upstream = "upstream",
    }
}

values! {
    /// The key of an attribute.
    pub(super) enum AttributeKey {
        /// The method, if a standard defines it.
        Method = "http.request.method",
        /// The operation.
        Operation = "portvakt.operation",
        /// The TPP, if its signature verified.
        Tpp = "portvakt.tpp",
        /// The outcome's kind.
        Outcome = "portvakt.outcome",
        /// The reason of a refusal or failure.
        Reason = "portvakt.reason",
        /// The side that has to act.
        Fault = "portvakt.fault",
        /// The class of the status, such as `2xx`.
        StatusClass = "portvakt.status_class",
        /// The group of endpoints.
        Upstream = "portvakt.upstream",
        /// The endpoint.
        Endpoint = "portvakt.endpoint",
    }
}

/// The facts of a request for its spans, collected on the request's path.
#[derive(Debug)]
pub(super) struct TracedRequest {
    trace: TraceContext,
    at: LogTime,
    whole: Duration,
    checks: Duration,
    claim: Option<Duration>,
    method: Option<&'static str>,
    operation: Option<Arc<Operation>>,
    tpp: Option<TppId>,
    outcome: Outcome,
    status: Option<u16>,
    core: Option<CoreTook>,
    endpoint: Option<Arc<CoreEndpoint>>,
}

impl TracedRequest {
    pub(super) fn of(finished: &Finished<'_>, trace: TraceContext) -> Self {
        let record = finished.record;
        let mut claim = None;
        let mut checks = Duration::ZERO;
        for check in record.checks() {
            if check.stage == Stage::Claim {
                claim = Some(check.took);
            } else {
                checks = checks.saturating_add(check.took);
            }
        }
        let certificate = record.certificate();
        let certificate = certificate.filter(|_| record.holds(Stage::Signature));
        Self {
            trace,
            at: finished.at,
            whole: record.elapsed(),
            checks,
            claim,
            method: finished.http.method,
            operation: record.operation().cloned(),
            tpp: certificate.map(|certificate| certificate.tpp_id().clone()),
            outcome: finished.outcome,
            status: finished.status,
            core: finished.core,
            endpoint: finished.endpoint.cloned(),
        }
    }

    /// The number of its spans.
    pub(super) fn count(&self) -> u64 {
        2 + u64::from(self.claim.is_some()) + u64::from(self.core.is_some())
    }

    /// Appends its spans. The durations are measured; the checks start with the request, and each part is placed after the one before.
    pub(super) fn append_to(&self, spans: &mut Vec<Span>) {
        let end = self.at.unix_milliseconds().saturating_mul(1_000_000);
        let start = end.saturating_sub(nanoseconds(self.whole));
        spans.push(self.request(start, end));
        let after = |start: u64, took| start.saturating_add(nanoseconds(took)).min(end);
        let checked = after(start, self.checks);
        spans.push(self.part(SpanName::Checks, [start, checked]));
        let claimed = after(checked, self.claim.unwrap_or_default());
        if self.claim.is_some() {
            spans.push(self.part(SpanName::Claim, [checked, claimed]));
        }
        if let Some(core) = self.core {
            let mut span = self.part(SpanName::Upstream, [claimed, after(claimed, core.took)]);
            span.kind = SpanKind::Client.into();
            add(&mut span, AttributeKey::StatusClass, core.status.map(class));
            if let Some(endpoint) = &self.endpoint {
                add(&mut span, AttributeKey::Upstream, Some(&endpoint.upstream));
                add(&mut span, AttributeKey::Endpoint, Some(&endpoint.endpoint));
            }
            span.status = error(matches!(core.status, None | Some(500..)));
            spans.push(span);
        }
    }

    fn request(&self, start: u64, end: u64) -> Span {
        let mut span = self.span(SpanName::Request, self.trace.span(), [start, end]);
        span.parent_span_id = match self.trace.parent() {
            Some(parent) => parent.to_be_bytes().to_vec(),
            None => Vec::new(),
        };
        span.kind = SpanKind::Server.into();
        let operation = self.operation.as_ref();
        let fault = self.outcome.at_fault();
        let all = [
            (AttributeKey::Method, self.method),
            (
                AttributeKey::Operation,
                operation.map(|operation| operation.name.as_str()),
            ),
            (AttributeKey::Tpp, self.tpp.as_ref().map(TppId::as_str)),
            (AttributeKey::Outcome, Some(self.outcome.kind().name())),
            (
                AttributeKey::Reason,
                self.outcome.reason().map(Reason::slug),
            ),
            (AttributeKey::Fault, fault.map(Side::name)),
            (AttributeKey::StatusClass, self.status.map(class)),
        ];
        for (key, value) in all {
            add(&mut span, key, value);
        }
        // A fault of the caller is no error of a server's span (OpenTelemetry's conventions for HTTP).
        span.status = error(matches!(fault, Some(Side::Gateway | Side::Core)));
        span
    }

    /// A part of the request.
    fn part(&self, name: SpanName, times: [u64; 2]) -> Span {
        let mut span = self.span(name, part_id(self.trace.span(), name), times);
        span.parent_span_id = self.trace.span().to_be_bytes().to_vec();
        span
    }

    fn span(&self, name: SpanName, id: u64, [start, end]: [u64; 2]) -> Span {
        Span {
            trace_id: self.trace.trace().to_be_bytes().to_vec(),
            span_id: id.to_be_bytes().to_vec(),
            parent_span_id: Vec::new(),
            name: name.name().to_owned(),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: start,
            end_time_unix_nano: end,
            attributes: Vec::new(),
            status: None,
        }
    }
}

/// The id of a part: that of the request, which looks random, with a distance of its own. It is never zero.
fn part_id(request: u64, part: SpanName) -> u64 {
    let distance = match part {
        SpanName::Request => 0,
        SpanName::Checks => 0x9e37_79b9_7f4a_7c15,
        SpanName::Claim => 0x3c6e_f372_fe94_f82a,
        SpanName::Upstream => 0xdaa6_6d2c_7ddf_743f,
    };
    (request ^ distance).max(1)
}

fn add(span: &mut Span, key: AttributeKey, value: Option<&str>) {
    let value = value.map(|value| KeyValue::new(key.name(), value));
    span.attributes.extend(value);
}

fn error(is_error: bool) -> Option<Status> {
    is_error.then(|| Status {
        code: StatusCode::Error.into(),
    })
}

const fn class(status: u16) -> &'static str {
    match status {
        100..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        500..600 => "5xx",
        _ => "other",
    }
}

/// Whole nanoseconds, at most some 584 years.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::operations::builtin;

    fn traced() -> TracedRequest {
        TracedRequest {
            trace: TraceContext::new(None, 7, 9),
            at: LogTime::from_unix_milliseconds(2_000),
            whole: Duration::from_millis(10),
            checks: Duration::from_millis(2),
            claim: Some(Duration::from_millis(1)),
            method: Some("GET"),
            operation: builtin().into_iter().next().map(Arc::new),
            tpp: TppId::parse("PSDNO-FSA-1"),
            outcome: Outcome::Forwarded(503),
            status: Some(503),
            core: Some(CoreTook {
                status: Some(503),
                took: Duration::from_millis(900),
            }),
            endpoint: Some(CoreEndpoint::new("core".into(), "10.0.0.1:80".into())),
        }
    }

    #[test]
    fn parts_lie_in_the_request_and_name_it_as_parent() {
        let (traced, mut spans) = (traced(), Vec::new());
        traced.append_to(&mut spans);
        assert_eq!(u64::try_from(spans.len()), Ok(traced.count()));
        let places: Vec<_> = spans
            .iter()
            .map(|span| {
                let place = |time: u64| time / 1_000_000;
                let (start, end) = (span.start_time_unix_nano, span.end_time_unix_nano);
                (span.name.as_str(), place(start), place(end))
            })
            .collect();
        let expected = [
            ("request", 1_990, 2_000),
            ("checks", 1_990, 1_992),
            ("claim", 1_992, 1_993),
            ("upstream", 1_993, 2_000),
        ];
        assert_eq!(places, expected);
        let (request, parts) = spans.split_first().unwrap();
        assert!(request.parent_span_id.is_empty());
        assert_eq!(request.trace_id, 7_u128.to_be_bytes());
        for part in parts {
            assert_eq!(part.parent_span_id, 9_u64.to_be_bytes(), "{}", part.name);
            assert_ne!(part.span_id, request.span_id, "{}", part.name);
        }
        assert_eq!(request.status, error(true));
    }

    #[test]
    fn a_refused_request_has_no_part_of_the_core_and_is_no_error() {
        let refused = TracedRequest {
            claim: None,
            core: None,
            outcome: Outcome::Refused(Reason::DateSkewed),
            status: Some(400),
            ..traced()
        };
        let mut spans = Vec::new();
        refused.append_to(&mut spans);
        assert_eq!(refused.count(), 2);
        let request = spans.first().unwrap();
        assert_eq!((spans.len(), request.status.clone()), (2, None));
        let reason = KeyValue::new("portvakt.reason", Reason::DateSkewed.slug());
        assert!(request.attributes.contains(&reason));
        assert!(
            request
                .attributes
                .contains(&KeyValue::new("portvakt.fault", "caller"))
        );
    }
}
