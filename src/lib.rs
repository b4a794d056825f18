//! Portvakt: a reverse-proxy security gateway for a bank's PSD2 interface.
//!
//! Portvakt terminates TLS, authenticates TPPs, checks what each may do, and forwards admitted requests to the core. The library uses the
//! crates `portvakt_base`, `portvakt_hsm`, `portvakt_interface`, `portvakt_trust` and `portvakt_state`, none of which uses it. Its modules are listed in the
//! order of their dependencies: each uses only modules above it. The simulated bank uses this library, never the other way round:
//!
//! ```compile_fail,E0432
//! use portvakt_sandbox::run;
//! ```
//!
//! Invariants:
//! - an upstream receives only requests that [`admission::authorise`] admitted: forwarding takes an
//!   [`admission::Admitted`], which only `authorise` constructs, and `authorise` requires the store;
//! - one [`admission::Snapshot`] judges a request, never parts of two;
//! - of all modules, only `gateway` and `upstreams` depend on pingora;
//! - input never causes a panic, and no log, metric or error contains personal data.

// The crates below, by the names that the modules use.
pub use portvakt_base::{
    causes, clock, csv_row, hex, network, private_file, terminal, way, write_fault,
};
pub use portvakt_hsm as hsm;
pub use portvakt_interface as interface;
pub use portvakt_state as state;
pub use portvakt_trust as trust;

// Pending SCA: link, token, redirect.
pub mod sca;

// The gateway's own signatures: the assertion to the core, answers to TPPs.
pub mod signing;

// The certificates by which requests were signed within 30 days, for who would lose trust by other anchors.
pub mod seen;

// The pipeline: one file per check, and evidence types that only a check can construct.
pub mod admission;

// What ends or fills: the one list behind warnings, the log's line a day, metrics and alerts.
pub mod expiring;

// The configuration file, its faults, and the objects built from it.
pub mod config;

// The audit: records in files that are chained by hashes.
pub mod audit;

// Metrics, the access log and events.
pub mod telemetry;

// The core as it is reached now: endpoints, connections, health.
pub mod upstreams;

// The current configuration as one value, which a reload replaces.
pub mod in_use;

// The control listener: metrics, liveness, readiness, the bank's calls.
pub mod control;

// The public listener and the upstream client, on pingora.
pub mod gateway;

// Command-line tools: the TPP's side of the interface, and diagnosis.
pub mod tools;

// The command line.
pub mod cli;
