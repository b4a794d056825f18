//! The table of metrics: name, type, labels and meaning of each.
//!
//! Invariant: no metric exists outside the table, because [`super::registry`] makes every metric from a row of it. docs/metrics.md is made
//! from the table. Labels are closed sets, or bounded where the table says so; no other value of a request becomes a label.

use super::labels::{
    BoundBy, Build, Cache, Commit, Condition, Consumer, CoreStatus, Cut, Degraded, Direction, Done,
    Endpoint, Ends, Environment, ExpiringKind, Failure, Fault, Fetch, Files, Fix, Folder, Group,
    Handshake, Hash, HsmCause, Issuer, Key, KeyPurpose, LabelSet, Lines, ObservedCheck, Operation,
    OperationReason, Outcome, Place, Poll, Proven, Quota, Reason, Register, Registration, Reload,
    Sca, Serial, Shed, Source, Status, Table, TimedCheck, Tls, ToleratedFault, Tpp, Upgrade,
    Upstream, Use, Values, Why, Written,
};
use crate::{hsm, state::Counters};
use std::marker::PhantomData;

/// A metric with these labels.
#[derive(Debug)]
pub(super) struct Metric<L> {
    /// Its row.
    pub(super) row: Row,
    labels: PhantomData<fn() -> L>,
}

/// A row of the table.
#[derive(Debug)]
pub(super) struct Row {
    /// The name, by Prometheus' conventions.
    pub(super) name: &'static str,
    /// The type.
    pub(super) kind: MetricKind,
    /// The name and the values of each label, in their order.
    pub(super) labels: &'static [(&'static str, Values)],
    /// The meaning, in one line.
    pub(super) help: &'static str,
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum MetricKind {
    /// A number that only grows.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// A distribution, with the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

/// In seconds: from a refusal at the gateway to a core that answers just before a long time-out. A quantile is off by at most the width of its
/// bucket, which is half of its lower bound or less from 0.1 s to 12 s.
const REQUEST_BUCKETS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 4.0,
    6.0, 8.0, 12.0, 20.0, 30.0, 60.0,
];

/// In seconds: which of several endpoints is slow.
const ENDPOINT_BUCKETS: &[f64] = &[0.25, 1.0, 5.0];

/// In seconds: a cached signature check takes 15 µs, a new certificate 300 µs, and the store a few milliseconds.
const CHECK_BUCKETS: &[f64] = &[0.00001, 0.00005, 0.0001, 0.001, 0.005, 0.05, 1.0];

/// In seconds: a Date holds for 60 s (DAT-2). Distances are whole seconds, and 0 has a bucket: a right clock must not read as one that is
/// wrong by most of a second.
const SKEW_BUCKETS: &[f64] = &[0.0, 1.0, 2.0, 5.0, 15.0, 30.0, 60.0, 300.0];

macro_rules! metrics {
    ($($section:literal { $($id:ident = $kind:ident $(($buckets:expr))? $name:literal [$($label:ident),*] $help:literal;)+ })+) => {
        $($(#[allow(unused_parens, reason = "a metric has one label, or several as a tuple")]
        pub(super) static $id: Metric<($($label),*)> = Metric {
            row: Row {
                name: $name,
                kind: MetricKind::$kind $(($buckets))?,
                labels: <($($label),*) as LabelSet>::LABELS,
                help: $help,
            },
            labels: PhantomData,
        };)+)+

        /// Every row, by section. A row that nothing makes is unused code for the compiler.
        #[cfg(test)]
        pub(super) static SECTIONS: &[(&str, &[&Row])] = &[$(($section, &[$(&$id.row),+])),+];
    };
}

metrics! {
    "Requests" {
        REQUESTS = Counter "portvakt_requests_total" [Operation, Outcome, Status, Fault]
            "Requests that have ended; status is the class of the answer that the caller was sent, none without a whole answer, fault is the side that has to act.";
        ANSWERS = Counter "portvakt_answers_total" [Group, Fault]
            "Requests that have ended, for availability: each group of operations has every series from the start.";
        REFUSALS = Counter "portvakt_refusals_total" [Reason, Fault]
            "Requests that the gateway refused or that failed, by reason: each reason has its series from the start.";
        OPERATION_REFUSALS = Counter "portvakt_operation_refusals_total" [Operation, OperationReason]
            "The same by operation; beyond 70 pairs of operation and reason both are other.";
        IN_FLIGHT = Gauge "portvakt_requests_in_flight" []
            "Requests whose head was read and whose answer is not finished.";
        REQUEST_SECONDS = Histogram(REQUEST_BUCKETS) "portvakt_request_seconds" [Group]
            "From a request's head to the end of its answer; 0 for a refusal below HTTP.";
        CHECK_SECONDS = Histogram(CHECK_BUCKETS) "portvakt_check_seconds" [TimedCheck]
            "Each check of a request; body waits for the caller, sca and claim wait for the state.";
        CLOCK_SKEW = Histogram(SKEW_BUCKETS) "portvakt_caller_clock_skew_seconds" [Direction]
            "The distance of a request's Date to the gateway's clock, whether the request was refused or not; more than a day counts as a day.";
        TOLERATED_FAULTS = Counter "portvakt_tolerated_total" [ToleratedFault]
            "Requests with a fault of the certificate that a tolerant policy let pass.";
        OBSERVED = Counter "portvakt_observed_total" [ObservedCheck]
            "Requests that failed a check that is only observed, or that sca would refuse after the end of learning; a request counts once for each such check.";
        ACCEPT_FIX = Counter "portvakt_accept_fix_total" [Fix]
            "Admitted requests that named a fix in x-accept-fix.";
    }
    "Requests of one TPP" {
        TPP_REQUESTS = Counter "portvakt_tpp_requests_total" [Tpp]
            "Requests whose signature verified. With a TPP's first one, its series of refusals, of failed signatures and of exceeded quotas begin.";
        TPP_REFUSALS = Counter "portvakt_tpp_refusals_total" [Tpp]
            "Requests whose signature verified and that were refused by a fault of the caller.";
        TPP_SIGNATURE_FAILURES = Counter "portvakt_tpp_signature_failures_total" [Tpp]
            "Requests whose signature did not verify, by the TPP of the certificate shown; other if that TPP never signed a request.";
        TPP_QUOTA_EXCEEDED = Counter "portvakt_tpp_quota_exceeded_total" [Tpp]
            "Requests refused because the calls without the PSU were used up.";
        UNSIGNED_TARGET = Counter "portvakt_unsigned_target_total" [Tpp]
            "Admitted requests whose signature does not cover (request-target).";
        WITHOUT_SESSION = Counter "portvakt_psu_present_without_session_total" [Tpp]
            "Account information read with the PSU said to be present and without a valid session.";
    }
    "Connections of callers" {
        OPEN_CONNECTIONS = Gauge "portvakt_open_connections" []
            "Connections of clients that are open, handshakes included.";
        HANDSHAKES = Counter "portvakt_handshakes_total" [Handshake, Tls]
            "TLS handshakes by how they ended; the version is none if there is no connection.";
        TURNED_AWAY = Counter "portvakt_connections_turned_away_total" []
            "Connections beyond max_connections or max_connections_per_address.";
        CUTS = Counter "portvakt_cut_total" [Cut]
            "Connections and answers that the gateway ended, and requests that it held back from the core, by the cause.";
        SHED = Counter "portvakt_shed_total" [Shed]
            "New connections, and requests on connections without a verified signature, that were refused because of overload.";
    }
    "The core" {
        UPSTREAM_IN_FLIGHT = Gauge "portvakt_upstream_in_flight" []
            "Requests that the core has and has not answered to the end.";
        READ_AHEAD = Gauge "portvakt_read_ahead_bytes" []
            "Memory of answers that the core has sent and that wait for slow callers, up to listener.read_ahead.";
        UPSTREAM_SECONDS = Histogram(REQUEST_BUCKETS) "portvakt_upstream_seconds" [Group]
            "From choosing the upstream to the head of its answer, or until the caller left.";
        UPSTREAM_RESPONSES = Counter "portvakt_upstream_responses_total" [Group, CoreStatus]
            "Heads of the core's answers, by the class of the core's own status.";
        UPSTREAM_FAILURES = Counter "portvakt_upstream_failures_total" [Failure]
            "Failed attempts to get an answer of the core; an attempt that was repeated counts each time. unreachable: no connection, or no endpoint is healthy, so that none was tried; abandoned: the caller left while the core owed the answer.";
        UPSTREAM_CONNECTIONS = Counter "portvakt_upstream_connections_total" [Use]
            "Connections to the core that a request was sent on.";
        UPSTREAM_IDLE = Gauge "portvakt_upstream_idle_connections" []
            "Idle connections in the pool.";
        ENDPOINT_UP = Gauge "portvakt_upstream_endpoint_up" [Upstream, Endpoint]
            "Whether an endpoint of the core gets requests: it is healthy by active checks, not ejected and not drained.";
        EJECTIONS = Counter "portvakt_upstream_ejections_total" []
            "Endpoints that were ejected because their requests failed.";
        ENDPOINT_SECONDS = Histogram(ENDPOINT_BUCKETS) "portvakt_upstream_endpoint_seconds" [Upstream, Endpoint]
            "From a request on a connection to the endpoint to the head of its answer, or until the gateway or the caller waited no longer.";
        ENDPOINT_FAILURES = Counter "portvakt_upstream_endpoint_failures_total" [Upstream, Endpoint]
            "Requests that failed at an endpoint, with answers from 500 on and requests whose callers left after waiting 0.9 s for it.";
        INNER_ADDRESSES = Counter "portvakt_inner_addresses_total" [Place, Done]
            "Addresses in the core's answers that only the bank's network has, by where they stood and what was done.";
    }
    "Certificates" {
        CERTIFICATE_LOOKUPS = Counter "portvakt_certificate_lookups_total" [Cache]
            "Accepted certificates of requests, by the cache that had them; none if the chain was built.";
        CERTIFICATES_CACHED = Gauge "portvakt_certificates_cached" []
            "Certificates in the cache, by each of which a signature has verified.";
        CERTIFICATE_END = Gauge "portvakt_certificate_end_timestamp_seconds" [Ends]
            "When the certificate of a kind ends that ends first: the gateway's own with the CAs that it sends with them, and the CAs that it trusts.";
        BUNDLE_IMPORTED = Gauge "portvakt_bundle_imported_timestamp_seconds" []
            "When the bundle of trust anchors was imported (trust.bundle), if there is one.";
        BUNDLE_NEXT_UPDATE = Gauge "portvakt_bundle_next_update_timestamp_seconds" []
            "When the first of its lists is to be replaced.";
        TPP_CERTIFICATE_END = Gauge "portvakt_tpp_certificate_end_timestamp_seconds" [Tpp, Serial]
            "When the certificates of TPPs end by which a signature has verified, those first that end first; at most 30.";
    }
    "Revocation, if it is checked" {
        REVOCATION_FETCHES = Counter "portvakt_revocation_fetches_total" [Fetch]
            "CRLs and OCSP answers fetched, by how it ended.";
        REVOCATION_LET_PASS = Counter "portvakt_revocation_let_pass_total" []
            "Requests admitted although the revocation status of their certificate was unknown.";
        REVOCATION_SOURCES = Gauge "portvakt_revocation_sources" []
            "OCSP responses and CRLs in use.";
        REVOCATION_OVERDUE = Gauge "portvakt_revocation_overdue_seconds" []
            "Seconds since the nextUpdate of the most overdue of them.";
        REVOCATION_MAX_OVERDUE = Gauge "portvakt_revocation_max_overdue_seconds" []
            "How long after its nextUpdate an answer is still used (revocation.stale).";
        CRL_NEXT_UPDATE = Gauge "portvakt_crl_next_update_timestamp_seconds" [Issuer, Source]
            "When a CRL of a file, or a fetched one that requests rest on, is to be replaced, by its issuer and where it is from; at most 50.";
    }
    "Registers, if they are checked" {
        REGISTER_STALE_PASSED = Counter "portvakt_register_stale_passed_total" []
            "Requests admitted by a register past its maximum age.";
        REGISTER_IDENTITIES = Gauge "portvakt_register_identities" [Register]
            "Identities that a register has an entry for.";
        REGISTER_AS_OF = Gauge "portvakt_register_as_of_timestamp_seconds" [Register]
            "The date of a register's content.";
        REGISTER_AGE = Gauge "portvakt_register_age_seconds" [Register]
            "The age of a register's content, by the gateway's clock.";
        REGISTER_MAX_AGE = Gauge "portvakt_register_max_age_seconds" [Register]
            "The age from which a register is stale (max_age).";
    }
    "TPPs and what the registers say of them" {
        REGISTRATIONS = Counter "portvakt_tpp_registration_total" [Registration]
            "TPPs whose signature verified for the first time in 30 days, and those among the known ones that lost a role by a reload of the registers.";
    }
    "SCA and quota" {
        QUOTA_CALLS = Counter "portvakt_quota_calls_total" [Quota]
            "Calls without the PSU: taken of a quota, refused because it was used up, given back.";
        SCA_EVENTS = Counter "portvakt_sca_total" [Sca]
            "SCAs: links made, links that the bank's service has read, SCAs that it completed and failed, and its calls with an expired link.";
        BOUND_ELSEWHERE = Counter "portvakt_psu_bound_elsewhere_total" [BoundBy]
            "PSU-IDs of one TPP that were to be bound to another, by who asked for it.";
        SESSIONS = Gauge "portvakt_sessions" []
            "Valid sessions of PSUs, as housekeeping last counted them.";
        TOKEN_SEALS = Gauge "portvakt_sca_token_seals" [Key]
            "Tokens that a key of SCA links has sealed, by the key's id; rounded up at each start.";
        TOKEN_SEALS_ALERT = Gauge "portvakt_sca_token_seals_alert" []
            "Tokens of one key at which the keys are to be rotated.";
        TOKEN_SEALS_LIMIT = Gauge "portvakt_sca_token_seals_limit" []
            "Tokens of one key at which it seals no more.";
    }
    "Events for the bank's services" {
        EVENT_POLLS = Counter "portvakt_event_polls_total" [Poll]
            "Calls of /events, by how they ended.";
        EVENTS_LOST = Counter "portvakt_events_lost_total" []
            "What this gateway observed of TPPs and lost, because 10 000 observations waited for the state already: there is no event of it.";
        EVENT_CONSUMER_WAITING = Gauge "portvakt_event_consumer_waiting_seconds" [Consumer]
            "The age of the oldest event after the cursor that a consumer sent to this gateway last; 0 if there is none. Where consumers call several gateways, the least of them is the number.";
    }
    "The state" {
        STATE_BATCH_SECONDS = Histogram(Counters::SECONDS) "portvakt_state_batch_seconds" []
            "The time of a transaction of the store, with one that failed.";
        STATE_BATCH_CHANGES = Histogram(Counters::CHANGES) "portvakt_state_batch_changes" []
            "The changes in a transaction of the store, its own housekeeping included.";
        STATE_BATCHES_FAILED = Counter "portvakt_state_batches_failed_total" []
            "Transactions of the store that failed; the requests in them were answered with 503.";
        STATE_COMMITS_UNCLEAR = Counter "portvakt_state_commits_unclear_total" []
            "Commits that a lost connection to PostgreSQL, or other settings of it, left unknown, so that the gateway asked for each before it answered.";
        STATE_ROWS = Gauge "portvakt_state_rows" [Table]
            "Rows of the store by table, as housekeeping last counted them.";
        STATE_CLOCK_STEPPED_BACK = Gauge "portvakt_state_clock_stepped_back" []
            "Whether requests are refused because the clock stepped back (REP-1).";
        CLOCK_STEPS = Counter "portvakt_clock_backward_steps_total" []
            "Times that the gateway's clock went back by more than two seconds.";
        CLOCK = Gauge "portvakt_clock_timestamp_seconds" []
            "The gateway's clock at the scrape, to be compared with Prometheus' own.";
        CLOCK_BEHIND = Gauge "portvakt_clock_behind_seconds" []
            "How far the gateway's clock is behind the latest time that the state knows.";
    }
    "Keys in an HSM" {
        HSM_SIGN_SECONDS = Histogram(&hsm::BOUNDS) "portvakt_hsm_sign_seconds" [KeyPurpose]
            "The time that a handshake or an answer waited for a signature of an HSM.";
        HSM_ERRORS = Counter "portvakt_hsm_errors_total" [KeyPurpose, HsmCause]
            "Signatures that an HSM did not make, so that the handshake or the answer failed: too many callers waited (busy), no answer within the timeout, the HSM is known to be unavailable, or it returned an error (refused).";
    }
    "The process" {
        READY = Gauge "portvakt_ready" []
            "Whether /readyz answers 200.";
        NOT_READY = Gauge "portvakt_not_ready" [Condition]
            "Whether this condition of /readyz fails.";
        DEGRADED = Gauge "portvakt_degraded" [Degraded]
            "Whether /readyz names this fault under degraded: requests are served nevertheless.";
        WRITE_FAULT = Gauge "portvakt_write_fault" [Written, Why]
            "Whether a log or the audit cannot be written, and why. /readyz has the whole sentence.";
        EXPIRING = Gauge "portvakt_expiring" [ExpiringKind]
            "What ends or fills, by the worst of its kind: 1 if it ends or is full soon, or has ended without an effect on requests; 2 if requests fail; otherwise 0. The log has a line about each once a day, and `check` warns of it.";
        RELOADS = Counter "portvakt_reloads_total" [Reload]
            "Reloads of the configuration, by whether it was taken into use.";
        LAST_RELOAD_SUCCESSFUL = Gauge "portvakt_last_reload_successful" []
            "Whether the last reload was taken into use; 1 before the first.";
        LAST_RELOAD = Gauge "portvakt_last_reload_timestamp_seconds" []
            "When a reload was last tried; the start before the first.";
        PENDING_RESTART = Gauge "portvakt_pending_restart" []
            "Changed keys of the configuration that need a restart, at the last reload that was taken into use.";
        CONFIGURATION_SINCE = Gauge "portvakt_configuration_timestamp_seconds" []
            "When the configuration in use was taken into use.";
        CONFIGURATION_INFO = Gauge "portvakt_configuration_info" [Hash, Files]
            "Always 1: which configuration the file says, also where a key of it needs a restart. No series if the configuration did not come from a file.";
        CHECKS_OBSERVED = Gauge "portvakt_checks_observed" [Proven]
            "Checks that the configuration only observes, for every caller or for one TPP; identity: those that prove the sender.";
        ACCESS_LINES = Counter "portvakt_access_lines_total" [Lines]
            "Lines of the access log: written, dropped because the log could not keep up, or failed because its destination refused them.";
        EVENT_LINES = Counter "portvakt_event_lines_total" [Lines]
            "Lines of the log of events: written, dropped because the log could not keep up, or failed because its destination refused them.";
        TRACE_SPANS = Counter "portvakt_trace_spans_total" [Lines]
            "Spans of requests: written to the collector, dropped because the queue was full, or failed because the collector did not take them.";
        UPGRADES = Counter "portvakt_upgrades_total" [Upgrade]
            "Upgrades at SIGUSR2: that this process took the sockets over, or that its successor did not start.";
        AUDIT_RECORDS = Counter "portvakt_audit_records_total" [Lines]
            "Records of the audit: written and durable, failed because the disk refused them at first (they may be written later), or dropped and lost, because too many waited.";
        DISK_FREE = Gauge "portvakt_disk_free_bytes" [Folder]
            "Bytes that are free for the gateway on the disk of each folder that it writes to: of the state where it is a file, of the audit, of logs that are files (the least, where they are in two folders), and of copies of revocation answers.";
        DISK_SIZE = Gauge "portvakt_disk_size_bytes" [Folder]
            "The size of that disk in bytes, with what only root may use.";
        BUILD_INFO = Gauge "portvakt_build_info" [Build, Commit]
            "Always 1: the version, and the commit that it was built from.";
        ENVIRONMENT_INFO = Gauge "portvakt_environment_info" [Environment]
            "Always 1: the environment of the interface.";
        PROCESS_CPU = Counter "process_cpu_seconds_total" []
            "Processor time of the process, user and system.";
        PROCESS_RESIDENT = Gauge "process_resident_memory_bytes" []
            "Resident memory.";
        PROCESS_VIRTUAL = Gauge "process_virtual_memory_bytes" []
            "Virtual memory.";
        PROCESS_FDS = Gauge "process_open_fds" []
            "Open file descriptors.";
        PROCESS_MAX_FDS = Gauge "process_max_fds" []
            "The most file descriptors that may be open.";
        PROCESS_THREADS = Gauge "process_threads" []
            "Threads.";
        PROCESS_START = Gauge "process_start_time_seconds" []
            "When the process started.";
    }
}
