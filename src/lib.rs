//! Portvakt: a reverse-proxy security gateway for a bank's PSD2 interface.
//!
//! It terminates TLS, proves who is calling and that they may, and hands the core only requests that hold. The
//! modules below stand in the order in which they build on each other; dependencies point upwards only:
//! `gateway`, `control` and `tools` use `config`, which uses `admission`, which uses `sca`, `signing`, `trust` and
//! `state`, which use `interface`.
//!
//! What always holds:
//! - nothing reaches an upstream that [`admission::authorise`] did not admit: forwarding takes an
//!   [`admission::Admitted`], only `authorise` makes one, and it cannot be called without the store;
//! - a request is judged by one [`admission::Snapshot`], never by a mixture of two;
//! - `interface` does no I/O, reads no clock and does not know pingora, and only `gateway` knows pingora;
//! - bytes from outside never panic, and no personal data is logged, counted or repeated in an error.

// Time as a value: the only place that reads the machine's clocks.
pub mod clock;
// Files of keys and of state: the only place that makes them, for their owner's eyes.
pub mod private_file;
// The interface as data and pure rules.
pub mod interface;

// Certificate to TPP: decoding, names, chain, QcStatements, revocation.
pub mod trust;

// What outlives a request.
pub mod state;

// An SCA under way: its link, its token, its redirect.
pub mod sca;

// What the gateway signs itself: the assertion to the core, answers to TPPs.
pub mod signing;

// The pipeline: one file per check, evidence that cannot be forged.
pub mod admission;

// The configuration file as written, its faults, and the ready objects.
pub mod config;

// The configuration in use: everything that a reload replaces, as one value.
pub mod in_use;

// The listener and the way to the upstream: the only place that knows pingora.
pub mod gateway;

// The internal listener: metrics, liveness, readiness.
pub mod control;
// Takes records of requests; gives metrics and the access log.
pub mod telemetry;

// What a person runs by hand: a TPP's side of the interface.
pub mod tools;

// The command line.
pub mod cli;

// The development PKI: for the sandbox, tests and benchmarks, and never part of a gateway that is deployed.
#[cfg(feature = "sandbox")]
pub mod development_pki;
