//! Access control: credentials, Host and Origin; and `Cache-Control` of answers (ERR-7).
//!
//! A browser on the machine can reach a loopback address, and a page can resolve its own name to that address (DNS rebinding).
//! Calls that change or reveal a PSU's data therefore require one of the listener's hosts, and no foreign origin. /livez,
//! /readyz and the public keys need neither: a kubelet or a load balancer uses any host and has no token, and these answers
//! reveal no TPP and no PSU. TLS verifies client certificates before a request is read; their names give them roles here.

use super::{context::ControlContext, fault::ApiFault, running::RunningCalls};
use crate::audit::{AuditEvent, AuditKind};
use crate::config::{Authority, ClientCa, ClientRoles, ControlAccess, ControlRole, Host, Secret};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    middleware::Next,
    response::Response,
};
use openssl::x509::X509;
use rustls::pki_types::CertificateDer;
use std::{net::SocketAddr, sync::Arc};

/// Paths without access control, unless readiness has a token.
const OPEN: [&str; 3] = ["/livez", "/readyz", "/.well-known/jwks.json"];

/// The OpenAPI description is not secret: it needs a token, but accepts any host.
const OPENAPI: &str = "/openapi.json";

/// Prometheus uses any host, with a credential.
const METRICS: &str = "/metrics";

/// So does a balancer, if readiness has a credential.
const READINESS: &str = "/readyz";

/// The stream of events, with a role of its own. The audit has the changes themselves, and no record of each poll.
pub(super) const EVENTS: &str = "/events";

/// The calls that change or reveal something, which the audit has records of, and the role that each needs. A test names the others, and why
/// they have none.
const AUDITED: [(&str, ControlRole); 21] = [
    ("/sca/read", ControlRole::Calls),
    ("/sca/complete", ControlRole::Calls),
    ("/sca/fail", ControlRole::Calls),
    ("/psu/read", ControlRole::Calls),
    ("/psu/list", ControlRole::Calls),
    ("/psu/bind", ControlRole::Calls),
    ("/psu/withdraw", ControlRole::Calls),
    ("/psu/unbind", ControlRole::Calls),
    ("/psu/forget", ControlRole::Calls),
    ("/reload", ControlRole::Calls),
    ("/tpp/block", ControlRole::Operate),
    ("/tpp/unblock", ControlRole::Operate),
    ("/tpp/blocks", ControlRole::Operate),
    ("/tpp/move", ControlRole::Operate),
    ("/tpp/moves", ControlRole::Operate),
    ("/endpoint/drain", ControlRole::Operate),
    ("/endpoint/restore", ControlRole::Operate),
    ("/config", ControlRole::Operate),
    ("/connections", ControlRole::Operate),
    ("/log", ControlRole::Operate),
    ("/top", ControlRole::Operate),
];

/// The role that a path needs.
fn role_of(path: &str) -> ControlRole {
    let mut audited = AUDITED.iter();
    match path {
        METRICS => ControlRole::Metrics,
        READINESS => ControlRole::Readiness,
        EVENTS => ControlRole::Events,
        _ => audited
            .find(|(call, _)| *call == path)
            .map_or(ControlRole::Calls, |(_, role)| *role),
    }
}

/// The name of the caller of `/events`, by which its position is counted: the listed name of its client certificate, or else the way it came.
pub(super) fn consumer<'a>(
    access: &ControlAccess,
    arrival: Option<&Arrival>,
    names: Option<&'a ClientNames>,
) -> &'a str {
    let clients = access.tls.as_ref().and_then(|tls| tls.clients.as_ref());
    let name = clients
        .zip(names)
        .and_then(|(clients, names)| clients.consumer(&names.0));
    let by_socket = arrival.is_some_and(|arrival| arrival.local.is_none());
    let other = if by_socket { "socket" } else { "token" };
    name.unwrap_or(other)
}

/// The connection of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// The local address of the connection; `None` for a Unix socket.
    pub(super) local: Option<SocketAddr>,
    /// The caller's address; `None` for a Unix socket.
    pub(super) caller: Option<SocketAddr>,
    /// Whether the connection is encrypted.
    pub(super) tls: bool,
    /// The CAs that verified the client certificate; `None` without a certificate.
    pub(super) client_ca: Option<ClientCa>,
}

/// The DNS names in the client certificate of a connection, in lower case.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientNames(Arc<[String]>);

impl ClientNames {
    /// The names of the certificate that was shown; none without a certificate.
    pub(super) fn shown(chain: Option<&[CertificateDer<'_>]>) -> Self {
        let leaf = chain.and_then(<[_]>::first);
        let leaf = leaf.and_then(|leaf| X509::from_der(leaf).ok());
        let names = leaf.and_then(|leaf| leaf.subject_alt_names());
        let names = names.iter().flatten();
        let names = names.filter_map(|name| name.dnsname().map(str::to_ascii_lowercase));
        Self(names.collect())
    }
}

/// Guards every route. The route uses the same configuration as the guard.
pub(super) async fn admit(
    State((context, running)): State<(Arc<ControlContext>, RunningCalls)>,
    mut request: Request,
    next: Next,
) -> Response {
    let in_use = context.current.load_full();
    let mut calls = AUDITED.iter().map(|(call, _)| *call);
    let call = calls.find(|call| *call == request.uri().path());
    let names = request.extensions().get::<ClientNames>().cloned();
    let record = |credential| {
        call.map(|call| CallRecord {
            call,
            credential,
            names,
        })
    };
    let mut answer = match judge(&in_use.control, &request) {
        Ok(()) => {
            let record = record(shown_credential(&in_use.control, &request));
            request.extensions_mut().insert(in_use);
            match record {
                Some(record) => answer_recorded(context, &running, record, request, next).await,
                None => next.run(request).await,
            }
        }
        Err(fault) => {
            let answer = fault.answer(&context);
            if let Some(record) = record("none") {
                let event = || record.event(&context, &answer);
                let arrival = request.extensions().get::<Arrival>();
                let caller = arrival.and_then(|arrival| arrival.caller);
                context
                    .telemetry
                    .refused_call(caller.map(|caller| caller.ip()), event);
            }
            answer
        }
    };
    let no_store = HeaderValue::from_static("no-store");
    answer.headers_mut().insert(header::CACHE_CONTROL, no_store);
    answer
}

/// Answers a permitted call and records it, also if its caller disconnects before the answer: its change may have been made by then.
async fn answer_recorded(
    context: Arc<ControlContext>,
    running: &RunningCalls,
    record: CallRecord,
    request: Request,
    next: Next,
) -> Response {
    let own = Arc::clone(&context);
    let answered = running.run(async move {
        let answer = next.run(request).await;
        let event = record.event(&own, &answer);
        own.telemetry.audit().record(event);
        answer
    });
    let answered = answered.await;
    answered.unwrap_or_else(|_| ApiFault::Unavailable.answer(&context))
}

/// The members of a call's record, but its status.
struct CallRecord {
    call: &'static str,
    credential: &'static str,
    names: Option<ClientNames>,
}

impl CallRecord {
    fn event(self, context: &ControlContext, answer: &Response) -> AuditEvent {
        let names = self.names.filter(|names| !names.0.is_empty());
        let event = context.telemetry.audit().event(AuditKind::Call);
        let event = event.with("call", self.call);
        let event = event.with("credential", self.credential);
        let event = event.with_some("caller", names.map(|names| names.0.to_vec()));
        event.with("status", answer.status().as_u16())
    }
}

/// The kind of credential that a permitted call has shown.
fn shown_credential(access: &ControlAccess, request: &Request) -> &'static str {
    let arrival = request.extensions().get::<Arrival>();
    let has_certificate = arrival.is_some_and(|arrival| arrival.client_ca.is_some());
    let is_operate = role_of(request.uri().path()) == ControlRole::Operate;
    let by_tcp = arrival.is_some_and(|arrival| arrival.local.is_some());
    let has_token = match (is_operate, by_tcp) {
        (true, true) => access.operate_token.is_some(),
        (true, false) => access.token.is_some() || access.operate_token.is_some(),
        (false, _) => access.token.is_some(),
    };
    match (has_certificate, has_token) {
        (true, true) => "certificate and token",
        (true, false) => "certificate",
        (false, true) => "token",
        (false, false) => "none",
    }
}

fn judge(access: &ControlAccess, request: &Request) -> Result<(), ApiFault> {
    let path = request.uri().path();
    let clients = access.tls.as_ref().and_then(|tls| tls.clients.as_ref());
    let role = role_of(path);
    let guards_readiness = role == ControlRole::Readiness
        && (access.readiness_token.is_some() || clients.is_some_and(ClientRoles::guard_readiness));
    if OPEN.contains(&path) && !guards_readiness {
        return Ok(());
    }
    let arrival = request.extensions().get::<Arrival>();
    let arrival = arrival.ok_or(ApiFault::ForeignHost)?;
    // A connection from before a reload may lack a certificate, or have one of a CA that is no longer configured.
    let client_ca = access.tls.as_ref().and_then(|tls| tls.client_ca);
    if client_ca.is_some() && client_ca != arrival.client_ca {
        return Err(ApiFault::OldConnection);
    }
    let names = request.extensions().get::<ClientNames>();
    let names = names.map_or(&[][..], |names| &names.0);
    if clients.is_some_and(|clients| !clients.permit(role, names)) {
        return Err(ApiFault::OtherRole);
    }
    let own = match role {
        ControlRole::Operate => access.operate_token.as_ref(),
        ControlRole::Events => access.events_token.as_ref(),
        ControlRole::Calls | ControlRole::Metrics | ControlRole::Readiness => None,
    };
    let is_special = matches!(role, ControlRole::Operate | ControlRole::Events);
    if is_special && own.is_none() && !gives_without_token(access, arrival) {
        return Err(ApiFault::OtherRole);
    }
    let token = match role {
        ControlRole::Calls => access.token.as_ref(),
        ControlRole::Metrics => access.metrics_token.as_ref().or(access.token.as_ref()),
        ControlRole::Readiness => access.readiness_token.as_ref(),
        // The owner of a Unix socket has every role, with the token of calls too.
        ControlRole::Operate | ControlRole::Events if arrival.local.is_none() => {
            access.token.as_ref().or(own)
        }
        ControlRole::Operate | ControlRole::Events => own,
    };
    let guards_metrics = path == METRICS && (token.is_some() || client_ca.is_some());
    let any_host = path == OPENAPI || guards_readiness || guards_metrics;
    if !any_host {
        judge_source(access, request, arrival)?;
    }
    let is_shown = |token| is_shown(token, request.headers());
    match token {
        Some(token) if !is_shown(token) && !own.is_some_and(is_shown) => {
            Err(ApiFault::Unauthorized)
        }
        _ => Ok(()),
    }
}

/// CTL-2, CTL-3: whether the configuration gives a role of its own without a token of its own to somebody who may come by this connection: by
/// a certificate, or as the owner of a Unix socket. A listener without any credential, in the sandbox on loopback, answers every caller.
fn gives_without_token(access: &ControlAccess, arrival: &Arrival) -> bool {
    let tls = access.tls.as_ref();
    let by_certificate = tls.is_some_and(|tls| tls.clients.is_some());
    let is_open = access.token.is_none() && tls.is_none_or(|tls| tls.client_ca.is_none());
    arrival.local.is_none() || by_certificate || is_open
}

/// Checks that Host is the listener's own, and also Origin if a browser sent one.
fn judge_source(
    access: &ControlAccess,
    request: &Request,
    arrival: &Arrival,
) -> Result<(), ApiFault> {
    let headers = request.headers();
    let host = only(headers, &header::HOST).and_then(Authority::parse);
    let host = host.filter(|host| is_own(host, access.hosts.as_deref(), arrival));
    let host = host.ok_or(ApiFault::ForeignHost)?;
    // RFC 9112, section 3.2.2: an authority in the target takes precedence over Host.
    if let Some(named) = request.uri().authority()
        && Authority::parse(named.as_str()).as_ref() != Some(&host)
    {
        return Err(ApiFault::ForeignHost);
    }
    if !headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let scheme = if arrival.tls { "https://" } else { "http://" };
    let origin = only(headers, &header::ORIGIN)
        .and_then(|origin| origin.strip_prefix(scheme))
        .and_then(Authority::parse);
    match origin {
        Some(origin) if origin == host => Ok(()),
        _ => Err(ApiFault::ForeignOrigin),
    }
}

/// Whether a host is one of `control.hosts`, or by default the connection's local address or localhost. A port must be the one
/// configured with the host, or else the listener's own.
fn is_own(host: &Authority, hosts: Option<&[Authority]>, arrival: &Arrival) -> bool {
    let own_port = arrival.local.map(|address| address.port());
    let is_own_port = host.port.is_none() || host.port == own_port;
    match hosts {
        Some(hosts) => hosts.iter().any(|own| {
            own.host == host.host
                && match own.port {
                    None => is_own_port,
                    port => host.port == port,
                }
        }),
        None => is_own_port && is_default(&host.host, arrival),
    }
}

fn is_default(host: &Host, arrival: &Arrival) -> bool {
    match host {
        Host::Name(name) => name == "localhost",
        Host::Address(address) => arrival
            .local
            .is_some_and(|local| local.ip().to_canonical() == *address),
    }
}

/// The value of a header that occurs once, as text.
pub(super) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Whether the request contains this bearer token (RFC 6750, section 2.1).
fn is_shown(token: &Secret, headers: &HeaderMap) -> bool {
    let expected = token.text().unwrap_or_default().as_bytes();
    shown(headers).is_some_and(|shown| {
        aws_lc_rs::constant_time::verify_slices_are_equal(shown, expected).is_ok()
    })
}

/// The bearer token of a request.
fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let (scheme, token) = value.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls that the audit has no records of: they change nothing, and tell of no TPP and no PSU but `/events`.
    const NOT_AUDITED: [(&str, &str); 6] = [
        ("/livez", "that the process runs"),
        (
            EVENTS,
            "changes that the audit has records of, every few seconds",
        ),
        ("/readyz", "readiness and its causes, every few seconds"),
        ("/metrics", "numbers, every few seconds"),
        (
            "/openapi.json",
            "the published description of the interface",
        ),
        ("/.well-known/jwks.json", "public keys"),
    ];

    /// docs/sca.md says what the role of operators opens.
    #[test]
    fn every_call_of_operators_is_in_the_manual() {
        let manual = include_str!("../../docs/sca.md");
        let (_, opened) = manual.split_once("**Operate.**").unwrap();
        let (opened, _) = opened.split_once("No other credential").unwrap();
        for (call, _) in AUDITED
            .iter()
            .filter(|(_, role)| *role == ControlRole::Operate)
        {
            let first = call.split('/').nth(1).unwrap();
            assert!(opened.contains(&format!("`/{first}")), "{call}");
        }
    }

    /// A route is audited, or stands in the list above with what it tells.
    #[test]
    fn every_call_is_audited_or_tells_nothing() {
        let routes = include_str!("mod.rs").split(".route(\"").skip(1);
        let mut routes: Vec<_> = routes.map(|rest| rest.split('"').next()).collect();
        let listed = NOT_AUDITED.iter().map(|(call, _)| call);
        let audited = AUDITED.iter().map(|(call, _)| call);
        let mut listed: Vec<_> = audited.chain(listed).copied().map(Some).collect();
        routes.sort_unstable();
        listed.sort_unstable();
        assert_eq!(routes, listed);
        // A route that is written in another way would not be found.
        assert_eq!(
            include_str!("mod.rs").matches(".route").count(),
            routes.len()
        );
    }
}
