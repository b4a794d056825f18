//! The environment of a gateway in a test.
//!
//! A test starts a [`Gate`] (gateway and upstream, each on its own port), makes a [`Call`] (a recipe of a request, signed each time it
//! is sent) and passes both to [`accepted`] or [`refused`], which check both sides of the gateway.

/// Ports of this process.
mod address;
/// Bundles of trust anchors.
pub(crate) mod bundle;
/// Requests as recipes.
mod call;
/// TLS clients with OpenSSL.
mod connector;
/// Pseudo-random numbers.
mod dice;
/// Certificates that no CA should issue, made by editing good ones.
mod forge;
/// A client that sends single HTTP/2 frames.
mod frames;
/// A gateway with an upstream behind it.
mod gate;
/// A client for HTTP/1.1 over TLS that can send any byte.
mod h1;
/// A client for HTTP/2 over TLS.
mod h2;
/// Assertions on the response and on the upstream.
mod judge;
/// PostgreSQL servers.
mod postgres;
/// Processes, their signals and their logs.
mod program;
/// CRLs, OCSP responders, and HTTP servers with given answers.
mod revocation;
/// Certificates of servers behind the gateway.
mod server_pki;
/// TLS in front of an upstream.
mod tls_front;
/// The recording upstream.
mod upstream;
/// Waits with a limit.
mod waiting;
/// A reader of HTTP/1.1 messages.
mod wire;
/// CAs and TPPs.
mod world;

use std::io::Write;

pub(crate) use address::free_address;
pub(crate) use call::{Call, Protocol, Sealed};
pub(crate) use connector::{Connector, Tls};
pub(crate) use dice::Dice;
pub(crate) use forge::{Forged, identified, resigned};
pub(crate) use frames::{Frames, block, field, frame, string};
pub(crate) use gate::{Gate, GateBuilder};
pub(crate) use h1::{
    Connection, chunk, chunked, connect_plainly, render, render_head, until_closed,
};
pub(crate) use h2::{
    Manner, connect as connect_h2, connector as h2_connector, converse, exchange_as, exchange_by,
};
pub(crate) use judge::{Passage, accepted, check_error, needs_sca, refused};
pub(crate) use portvakt_development_pki as pki;
pub(crate) use postgres::{
    Lost, Postgres, Proxy, command as postgres_command, postgres, programs as postgres_programs,
    write_of_owner,
};
pub(crate) use program::{Lines, Program, signal_to, to_files};
pub(crate) use revocation::{Crl, Responder, Said, Source, ocsp_answer, ocsp_answer_for};
pub(crate) use server_pki::server_pki;
pub(crate) use tls_front::{TlsFront, ca, client_certificate, tls_server};
pub(crate) use upstream::{Latch, Reply, Seen, Upstream};
pub(crate) use waiting::{
    LIMIT, Over, RAN_OUT, ended, eventually, eventually_async, eventually_is, eventually_within,
    happens, let_pass, let_pass_async, outcome, received,
};
pub(crate) use wire::{Answer, Wire};
pub(crate) use world::{Tpp, World, issuing_spec, rsa_key, world, write_private};

/// Reports that a test is skipped because a tool is missing that .ci/needs.sh installs or that comes from PyPI or npm. On CI
/// (`CI=true`) the test fails instead: nobody would notice a skipped test there.
pub(crate) fn missing(what: &str) {
    let is_ci = std::env::var("CI").as_deref() == Ok("true");
    assert!(
        !is_ci,
        "{what}; CI=true, so that no suite is skipped: .ci/needs.sh tests installs it, or says what to run"
    );
    skipped(what);
}

/// Reports that a test is skipped because this machine lacks something. The message bypasses the output capture of passing tests,
/// so that a skipped test does not look like a passed one.
pub(crate) fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
