//! Portvakt: a reverse-proxy security gateway for a bank's PSD2 interface.
//!
//! Portvakt terminates TLS, authenticates TPPs, checks what each may do, and forwards admitted requests to the core. The crates
//! below know nothing of this one: `portvakt_interface`, then `portvakt_trust` and `portvakt_state`. The modules stand in the order of their
//! dependencies, which point upwards only: `gateway`, `control` and `tools` use `config`, which uses `admission`, which uses `sca` and
//! `signing`. The simulated bank stands above:
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
pub use portvakt_base::{clock, private_file, terminal};
pub use portvakt_interface as interface;
pub use portvakt_state as state;
pub use portvakt_trust as trust;

// Pending SCA: link, token, redirect.
pub mod sca;

// The gateway's own signatures: the assertion to the core, answers to TPPs.
pub mod signing;

// The pipeline: one file per check, and evidence types that only a check can construct.
pub mod admission;

// The configuration file, its faults, and the objects built from it.
pub mod config;

// The audit: records in files that are chained by hashes.
pub mod audit;

// The core as it is reached now: endpoints, connections, health.
pub mod upstreams;

// The current configuration as one value, which a reload replaces.
pub mod in_use;

// The public listener and the upstream client, on pingora.
pub mod gateway;

// The control listener: metrics, liveness, readiness, the bank's calls.
pub mod control;
// Metrics and the access log.
pub mod telemetry;

// Command-line tools: the TPP's side of the interface, and diagnosis.
pub mod tools;

// The command line.
pub mod cli;
