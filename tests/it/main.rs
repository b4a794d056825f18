//! Black-box tests of the gateway: real TLS on one side, a real upstream that records its requests on the other.
//!
//! Every test of a rule has an annotation, `//= HTTP-1 accepted` or `//= HTTP-1 refused`; docs/rules.md is made from these lines. Every
//! test of a refusal also checks that the upstream received nothing. Every request is sent over HTTP/1.1 and over HTTP/2, unless one of
//! them cannot express the request.
//!
//! Not here: checks of single values (spellings of names, forms of headers). Unit tests beside the code have them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::as_conversions,
    clippy::too_many_lines,
    clippy::print_stdout,
    reason = "the whole crate is a test: a panic is how it fails, and a table is as long as its cases"
)]

/// The environment of a gateway: PKI, upstream, clients, and the assertions on both sides.
mod harness;

/// TLS-*, HTTP-*.
mod transport;

/// HDR-*.
mod headers;

/// QRY-*.
mod query;

/// SIG-*, DAT-*, DIG-*.
mod signing;

/// PAY-*.
mod payload;

/// CRT-*.
mod certificate;

/// SBX-*: the simulated bank as a process.
mod bank;

/// SCA-*.
mod sca;

/// CTL-2.
mod blocks;

/// QUO-*.
mod quota;

/// Signals, above all SIGTERM.
mod stopping;

/// SIGUSR2, and sockets of systemd.
mod upgrade;

/// CRT-8.
mod reload;

/// `portvakt check` and `portvakt serve`.
mod check;

/// REP-1.
mod replay;

/// FWD-6.
mod observe;

/// FWD-3, FWD-4: groups of endpoints.
mod upstreams;

/// ERR-*.
mod errors;

/// ERR-4: known TPPs before strangers.
mod overload;

/// FWD-*.
mod forwarding;

/// A core that breaks the protocol.
mod hostile_core;

/// The configuration of the comparison.
mod compared;

/// HTTP-7, HTTP-9, HTTP-10, ERR-8: raw requests and exchanges as data.
mod corpus;

/// `portvakt-sandbox probe`.
mod probe;

/// docs/tpp/questions.md.
mod questions;

/// Properties of every operation.
mod catalogue;

/// docs/upstream-contract.md.
mod contract;

/// The programs in examples/.
mod examples;

/// QUO-*, REP-1, SCA-*: the state store.
mod state;

/// ERR-4, QUO-5, REP-1: a full or unavailable disk.
mod disk;

/// QUO-*, REP-1, SCA-12: repeated kills under load.
mod soak;

/// SCA-*: the control listener.
mod control;

/// SBX-9: the demo, every flow through the gateway to the simulated bank.
mod demo;

/// CRT-12, QUO-12: floods of unauthenticated requests.
mod flood;

/// The access log and the metrics, without personal data.
mod telemetry;

/// docs/audit.md.
mod audit;

/// FWD-8: the evidence of each subject.
mod evidence;

/// `portvakt report`.
mod report;

/// `portvakt explain` beside the gateway, on every form of a saved request.
mod explain;

/// docs/logs.md: a line for each answer, files, failures, traces.
mod logs;

/// dashboards/.
mod dashboards;

/// The OpenAPI description, checked by other tools.
mod openapi;

/// The table of rules, code and tests.
mod rules;

/// The threat model and its tests.
mod threats;

/// Links in the documents, and the names in ARCHITECTURE.md.
mod pages;

/// The order of the layers, circular imports, pingora, sizes.
mod architecture;

/// The heap allocations of a request.
mod allocations;

/// Property tests of every parser of outside bytes.
mod properties;

/// TPPs that changed their identity.
mod moves;

/// Distinguished names as other programs print them.
mod names;

/// Packages, images, manifests, and examples of what stands in front.
mod packages;

/// The files of a release, and what verifies them.
mod release;

/// docs/compatibility.md.
mod compatibility;

/// Headers are parsed once.
mod parsed_once;

/// Signers of other vendors.
mod signers;

/// The lists of what must be signed.
mod signed_headers;

/// NIST's PKITS, and a comparison with rustls-webpki.
mod pkits;

/// Wycheproof's test vectors.
mod wycheproof;

/// Tests that need other programs or more than seconds: `make test-systems`.
mod systems;
