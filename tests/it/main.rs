//! The gateway from outside: real TLS on one side, a real upstream that records what it saw on the other.
//!
//! Every test that shows a rule says so above itself, `//= HTTP-1 accepted` or `//= HTTP-1 refused`; a table of rules, code and tests
//! is kept from those lines. A refused request is always shown together with an upstream that saw nothing of it, and every request
//! goes over HTTP/1.1 and over HTTP/2 unless one of them cannot express it.
//!
//! Deliberately not here: what a value decides by itself (spellings of names, forms of headers). Unit tests beside the code do that.

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

/// The world around a gateway: PKI, upstream, clients, and the assertions on what passed between them.
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

/// SCA-*.
mod sca;

/// QUO-*.
mod quota;

/// SIGTERM.
mod stopping;

/// CRT-8.
mod reload;
/// REP-1.
mod replay;

/// ERR-*.
mod errors;

/// FWD-*.
mod forwarding;

/// A core that answers what no core should.
mod hostile_core;

/// The configuration of the comparison.
mod compared;

/// What holds of every operation.
mod catalogue;

/// What the core is told, as its document says.
mod contract;

/// The programs in examples/.
mod examples;

/// QUO-*, REP-1, SCA-*: what is kept.
mod state;

/// ERR-4, QUO-5, REP-1: a disk that is full, or away.
mod disk;

/// QUO-*, REP-1, SCA-12: killed under load, again and again.
mod soak;

/// SCA-*: the bank's side of it.
mod control;

/// SBX-9: every flow, gateway and simulated bank together.
mod demo;

/// CRT-12, QUO-12: strangers in numbers.
mod flood;

/// What operators see, and what nobody may.
mod telemetry;

/// The interface as OpenAPI, and what tools make of it.
mod openapi;

/// The table of rules, code and tests.
mod rules;

/// The threats, and the tests that try them.
mod threats;

/// Links, and the names in ARCHITECTURE.md.
mod pages;

/// Layers, circles, pingora, sizes.
mod architecture;

/// What a request may allocate.
mod allocations;

/// Every parser of outside bytes.
mod properties;

/// Names, as others print them.
mod names;

/// Headers that are parsed once.
mod parsed_once;

/// Other people's signers.
mod signers;

/// NIST's PKITS, and a second opinion on chains.
mod pkits;

/// Wycheproof's vectors.
mod wycheproof;

/// What needs other programs, or more than seconds: `make test-systems`.
mod systems;
