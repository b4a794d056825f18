//! The access log: one line of JSON for each request (docs/logs.md).
//!
//! A line contains no path, no query, no body, and no header value except X-Request-ID, so no personal data.

use super::{
    facts::{CoreTook, Finished, HttpFacts},
    left_out,
    notices::Due,
    object::{Object, member},
    sampling::Sampling,
    sink::LogFault,
    stream::{JsonLine, LineCounts, LineStream},
    subject::Subject,
    top::keyed,
    upstreams::CoreEndpoint,
    values::{HttpVersion, LineKind, Psd2Service, TlsVersion},
};
use crate::{
    admission::{Check, ObservedFault, Outcome, Stage, Verdict},
    clock::LogTime,
    config::LogOutput,
    interface::{
        Reason, Side, TppId,
        headers::{RequestId, trace::TraceContext},
        operations::{Operation, Role},
    },
    network::Network,
    trust::{Certificate, Tolerated},
    write_fault::WriteFault,
};
use serde::{Serialize, Serializer};
use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use uuid::Uuid;

/// The access log of one gateway.
#[derive(Debug)]
pub struct AccessLog {
    stream: LineStream<Line>,
    /// Of the accepted requests of each TPP, one of this number has a line.
    sample: NonZeroU32,
    sampling: Sampling,
    /// Whether the last line was that of a failure: then the next accepted request has one too. Without it, failures between replies would
    /// look like failures in a row, which are downtime.
    has_failed: AtomicBool,
}

impl AccessLog {
    /// Opens the log. Of the accepted requests of each TPP, one of `sample` has a line; every other request has one, and so has one with a fault that
    /// is only observed, and the first after a failure.
    ///
    /// # Errors
    /// The file cannot be opened, or the thread that writes cannot start.
    pub fn open(output: LogOutput, sample: NonZeroU32) -> Result<Self, LogFault> {
        Ok(Self {
            stream: LineStream::open("access-log", output)?,
            sample,
            sampling: Sampling::default(),
            has_failed: AtomicBool::default(),
        })
    }

    /// Enqueues a line. If there is no place, the line is dropped and counted.
    pub(super) fn write(&self, finished: &Finished<'_>) {
        let mut sample = match finished.outcome {
            _ if finished.record.observed().next().is_some() => NonZeroU32::MIN,
            Outcome::Forwarded(status) if status < 400 => self.sample,
            Outcome::Answered => self.sample,
            _ => NonZeroU32::MIN,
        };
        let side = finished.outcome.at_fault();
        let has_failed = matches!(side, Some(Side::Gateway | Side::Core));
        if has_failed {
            self.has_failed.store(true, Ordering::Relaxed);
        } else if sample > NonZeroU32::MIN && self.has_failed.swap(false, Ordering::Relaxed) {
            sample = NonZeroU32::MIN;
        }
        if sample > NonZeroU32::MIN && !self.sampling.count(&finished.subject(), sample) {
            return;
        }
        self.stream.write(Line::of(finished, sample));
    }

    /// Says what was left out, of the subjects for which a minute has passed; of all at the end of the process: lines of these causes, of
    /// which those that cannot be said are returned, samples, and lines that were dropped (FWD-8).
    pub(super) fn say_left_out(&self, due: Vec<Due>, is_end: bool, at: LogTime) -> Vec<Due> {
        self.stream.say_dropped(is_end, at);
        for (subject, omitted) in self.sampling.due(is_end) {
            if !self.stream.say(left_out::SAMPLES, &subject, omitted, at) {
                self.sampling.put_back(&subject, omitted);
            }
        }
        let unsaid = due
            .into_iter()
            .filter(|(cause, subject, omitted)| !self.stream.say(cause, subject, *omitted, at));
        unsaid.collect()
    }

    /// Opens the file by its name again; `Err` is why not.
    pub(super) fn reopen(&self, within: Duration) -> Result<(), String> {
        self.stream.reopen(within)
    }

    /// The numbers of lines since the start.
    pub(super) fn counts(&self) -> LineCounts {
        self.stream.counts()
    }

    /// Why the last lines could not be written.
    pub(super) fn fault(&self) -> Option<WriteFault> {
        self.stream.fault()
    }

    /// Waits until the queued lines are written. False on a timeout.
    pub(super) fn flush(&self, within: Duration) -> bool {
        self.stream.flush(within)
    }
}

/// The fields of a line, collected on the request's path and written by the log's thread.
#[derive(Debug)]
struct Line {
    at: LogTime,
    id: Option<Uuid>,
    request_id: Option<RequestId>,
    trace: Option<TraceContext>,
    http: HttpFacts,
    operation: Option<Arc<Operation>>,
    certificate: Option<Arc<Certificate>>,
    /// The TPP that the request names without an accepted certificate.
    claimed: Option<TppId>,
    outcome: Outcome,
    status: Option<u16>,
    checks: Vec<Check>,
    observed: Vec<ObservedFault>,
    core: Option<CoreTook>,
    endpoint: Option<Arc<CoreEndpoint>>,
    whole: Duration,
    operator: Option<String>,
    revocation_unknown: bool,
    register_stale: bool,
    sample: NonZeroU32,
}

impl Line {
    fn of(finished: &Finished<'_>, sample: NonZeroU32) -> Self {
        let record = finished.record;
        Self {
            at: finished.at,
            id: finished.id,
            request_id: finished.request_id.cloned(),
            trace: finished.trace,
            http: finished.http,
            operation: record.operation().cloned(),
            certificate: record.certificate().cloned(),
            claimed: match record.certificate() {
                Some(_) => None,
                None => record.shown_tpp().cloned(),
            },
            outcome: finished.outcome,
            status: finished.status,
            checks: record.checks().to_vec(),
            observed: record.observed().collect(),
            core: finished.core,
            endpoint: finished.endpoint.cloned(),
            whole: record.elapsed(),
            operator: finished.operator.map(str::to_owned),
            revocation_unknown: record.revocation_is_unknown(),
            register_stale: record.register_is_stale(),
            sample,
        }
    }

    /// Whether the TPP's signature has verified.
    fn is_signed(&self) -> bool {
        let mut checks = self.checks.iter();
        checks.any(|check| check.stage == Stage::Signature && check.verdict == Verdict::Held)
    }

    /// Members that name the request and its answer.
    fn write_ids(&self, line: &mut Object<'_>) {
        line.shown(member!("time"), self.at);
        line.word(member!("kind"), Some(LineKind::Access.name()));
        match self.id {
            Some(id) => line.digits(
                member!("id"),
                id.hyphenated().encode_lower(&mut Uuid::encode_buffer()),
            ),
            None => line.word(member!("id"), None),
        }
        let id = self.request_id.as_ref().map(RequestId::as_str);
        line.value(member!("request_id"), &id);
        if let Some(trace) = &self.trace {
            line.digits(member!("trace_id"), trace.trace_id().as_str());
            line.digits(member!("span_id"), trace.span_id().as_str());
            if let Some(parent) = trace.parent_id() {
                line.digits(member!("parent_id"), parent.as_str());
            }
        }
        line.word(member!("method"), self.http.method);
        line.word(member!("http"), self.http.version.map(HttpVersion::name));
        line.word(member!("tls"), self.http.tls.map(TlsVersion::name));
        let is_refused = matches!(
            self.outcome,
            Outcome::Refused(_) | Outcome::Failed(_) | Outcome::Cut(_)
        );
        if let Some(caller) = self.http.caller.filter(|_| is_refused) {
            line.shown(member!("network"), keyed(Network::of_site(caller)));
        }
    }

    /// Members that name the operation and the TPP.
    fn write_subject(&self, line: &mut Object<'_>) {
        let operation = self.operation.as_ref();
        let name = operation.map(|operation| &operation.name);
        line.value(member!("operation"), &name);
        let service = operation.map(|operation| service(operation).name());
        line.word(member!("service"), service);
        // Certificates are public: before the signature verifies, one names its subject but does not authenticate the sender.
        let shown = self
            .certificate
            .as_ref()
            .map(|certificate| certificate.tpp_id())
            .or(self.claimed.as_ref())
            .map(TppId::as_str);
        let signed = self.is_signed();
        line.value(member!("tpp"), &shown.filter(|_| signed));
        if let Some(shown) = shown.filter(|_| !signed) {
            line.value(member!("shown_tpp"), &shown);
        }
    }

    /// Members that are seldom present.
    fn write_remarks(&self, line: &mut Object<'_>) {
        if !self.observed.is_empty() {
            line.value(member!("observed"), &Observed(&self.observed));
        }
        let certificate = self.certificate.iter();
        let tolerated: Vec<_> = certificate
            .flat_map(|certificate| certificate.tolerated().iter())
            .map(Tolerated::name)
            .collect();
        if !tolerated.is_empty() {
            line.value(member!("tolerated"), &tolerated);
        }
        if self.register_stale {
            line.word(member!("register"), Some("stale"));
        }
        if self.revocation_unknown {
            line.word(member!("revocation"), Some("unknown"));
        }
        if let Some(operator) = &self.operator {
            line.value(member!("operator"), operator);
        }
        if self.sample > NonZeroU32::MIN {
            line.value(member!("sample"), &self.sample);
        }
    }
}

impl JsonLine for Line {
    fn subject(&self) -> Subject {
        let certificate = self.certificate.as_ref();
        match certificate.filter(|_| self.is_signed()) {
            Some(certificate) => Subject::Tpp(certificate.tpp_id().clone()),
            None => Subject::network(self.http.caller),
        }
    }

    fn append_to(&self, text: &mut Vec<u8>) {
        let core_status = self.core.and_then(|core| core.status);
        let core_took = self.core.map(|core| microseconds(core.took));
        let mut line = Object::begin(text);
        self.write_ids(&mut line);
        self.write_subject(&mut line);
        line.word(member!("outcome"), Some(self.outcome.kind().name()));
        line.word(member!("reason"), self.outcome.reason().map(Reason::slug));
        if let Some(side) = self.outcome.at_fault() {
            line.word(member!("fault"), Some(side.name()));
        }
        line.value(member!("status"), &self.status);
        if let Some(endpoint) = &self.endpoint {
            line.members(endpoint.members());
        }
        line.value(member!("upstream_status"), &core_status);
        line.value(member!("received_bytes"), &self.http.received);
        line.value(member!("sent_bytes"), &self.http.sent);
        line.value(member!("whole_us"), &microseconds(self.whole));
        line.value(member!("upstream_us"), &core_took);
        let checks = self.checks.iter();
        let took = checks.map(|check| (check.stage.member(), microseconds(check.took)));
        line.numbers(member!("checks_us"), took);
        self.write_remarks(&mut line);
        line.end();
    }
}

/// Whole microseconds: the division of a `u128` would cost as much as the rest of the number.
fn microseconds(time: Duration) -> u64 {
    let seconds = time.as_secs().saturating_mul(1_000_000);
    seconds.saturating_add(time.subsec_micros().into())
}

/// The service of PSD2 that an operation belongs to, by the role that it needs.
fn service(operation: &Operation) -> Psd2Service {
    match operation.role {
        Role::AccountInformation => Psd2Service::AccountInformation,
        Role::PaymentInitiation => Psd2Service::PaymentInitiation,
        Role::Either => Psd2Service::Both,
    }
}

/// The faults that are only observed (FWD-6), as `{"check": …, "reason": …}`.
struct Observed<'a>(&'a [ObservedFault]);

impl Serialize for Observed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entry = |fault: &ObservedFault| {
            BTreeMap::from([
                ("check", fault.check.name()),
                ("reason", fault.reason.slug()),
            ])
        };
        serializer.collect_seq(self.0.iter().map(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        admission::{ObservableCheck, Record},
        interface::{headers::trace::TraceParent, operations::builtin},
        telemetry::schema,
    };
    use http::HeaderValue;
    use serde_json::Value;
    use std::fs;

    fn finished<'a>(record: &'a Record, outcome: Outcome) -> Finished<'a> {
        Finished {
            record,
            outcome,
            status: Some(200),
            id: None,
            request_id: None,
            trace: None,
            http: HttpFacts::default(),
            operator: None,
            core: None,
            endpoint: None,
            is_audited: false,
            at: LogTime::from_unix_milliseconds(0),
        }
    }

    /// docs/logs.md lists the members of a line. Those of a certificate are rare.
    #[test]
    fn the_members_are_documented() {
        let check = |stage, verdict| Check {
            stage,
            verdict,
            took: Duration::ZERO,
        };
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent = TraceParent::parse(&HeaderValue::from_static(parent));
        let least = Line::of(
            &finished(&Record::open(), Outcome::Answered),
            NonZeroU32::MIN,
        );
        let most = Line {
            at: LogTime::from_unix_milliseconds(1_767_225_600_007),
            id: Some(Uuid::from_u128(1)),
            request_id: RequestId::parse(&HeaderValue::from_static("a-1")),
            trace: Some(TraceContext::new(parent, 1, 2)),
            http: HttpFacts {
                caller: Some("192.0.2.7".parse().unwrap()),
                method: Some("GET"),
                version: Some(HttpVersion::V2),
                tls: Some(TlsVersion::V1_3),
                received: Some(0),
                sent: Some(7),
            },
            operation: builtin().into_iter().next().map(Arc::new),
            certificate: None,
            claimed: TppId::parse("PSDNO-FSA-1"),
            outcome: Outcome::Refused(Reason::DateSkewed),
            status: Some(400),
            checks: vec![
                check(Stage::Match, Verdict::Held),
                check(Stage::Date, Verdict::Waived(Reason::DateSkewed)),
            ],
            observed: vec![ObservedFault {
                check: ObservableCheck::Date,
                reason: Reason::DateSkewed,
            }],
            core: Some(CoreTook {
                status: Some(200),
                took: Duration::ZERO,
            }),
            endpoint: Some(CoreEndpoint::new("core".into(), "10.0.0.1:80".into())),
            whole: Duration::ZERO,
            operator: Some("the cause".to_owned()),
            revocation_unknown: true,
            register_stale: true,
            sample: NonZeroU32::MAX,
        };
        let lines = [least, most].map(|line| {
            let mut text = Vec::new();
            line.append_to(&mut text);
            serde_json::from_slice::<Value>(&text).unwrap()
        });
        assert_eq!(lines[1]["time"], "2026-01-01T00:00:00.007Z");
        assert_eq!(lines[1]["id"], "00000000-0000-0000-0000-000000000001");
        assert_eq!(lines[1]["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(lines[1]["parent_id"], "00f067aa0ba902b7");
        let document =
            fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/logs.md")).unwrap();
        schema::check(&document, "Access", &lines, &["tolerated"]);
    }

    /// One of three accepted requests has a line, and says so; every refused or observed one has a line.
    #[test]
    fn accepted_requests_are_sampled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access");
        let three = NonZeroU32::new(3).unwrap();
        let log = AccessLog::open(LogOutput::File(path.clone()), three).unwrap();
        let record = Record::open();
        let mut observed = Record::open();
        observed.note_late(&[ObservedFault {
            check: ObservableCheck::Sca,
            reason: Reason::ScaRequired,
        }]);
        for _ in 0..7 {
            log.write(&finished(&record, Outcome::Forwarded(200)));
            log.write(&finished(&observed, Outcome::Forwarded(200)));
            log.write(&finished(&record, Outcome::Forwarded(404)));
            log.write(&finished(&record, Outcome::Refused(Reason::QuotaExceeded)));
        }
        assert!(log.flush(Duration::from_secs(60)));
        let lines = fs::read_to_string(path).unwrap();
        let lines: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let sampled = lines.iter().filter(|line| line["sample"] == 3).count();
        assert_eq!((lines.len(), sampled), (3 + 7 + 7 + 7, 3));
    }

    /// The first accepted request after a failure has a line: it shows that the failures are not in a row.
    #[test]
    fn a_reply_after_a_failure_is_not_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access");
        let log = AccessLog::open(LogOutput::File(path.clone()), NonZeroU32::MAX).unwrap();
        let record = Record::open();
        let failed = Outcome::Failed(Reason::UpstreamTimeout);
        for outcome in [failed, failed, Outcome::Forwarded(500)] {
            log.write(&finished(&record, Outcome::Forwarded(200)));
            log.write(&finished(&record, outcome));
            log.write(&finished(&record, Outcome::Forwarded(200)));
        }
        assert!(log.flush(Duration::from_secs(60)));
        let lines = fs::read_to_string(path).unwrap();
        let outcomes = lines.lines().map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            (
                line["outcome"].as_str().unwrap().to_owned(),
                line["sample"].is_null(),
            )
        });
        let forwarded = |is_one| ("forwarded".to_owned(), is_one);
        let failed = || ("failed".to_owned(), true);
        let expected = [
            forwarded(false),
            failed(),
            forwarded(true),
            failed(),
            forwarded(true),
            forwarded(true),
            forwarded(true),
        ];
        assert_eq!(outcomes.collect::<Vec<_>>(), expected);
    }
}
