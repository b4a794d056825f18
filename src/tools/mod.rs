//! Command-line tools.

// The TPP's side of the interface: sign a request, send it, verify a saved message.
pub mod tpp;

// The gateway's decision on a request, and the meaning of its reasons.
pub mod explain;
// The gateway's decision on a certificate.
pub mod cert;

// The configuration in effect, and the schema.
pub mod config;

// Whether a gateway can serve.
pub mod health;

// The keys of SCA links; the import of PSUs.
pub mod psu;
pub mod sca;

// The faults that are only observed.
pub mod observe;

// Maintenance of the state.
pub mod state;

// Proof and search of the audit; the quarterly figures.
pub mod audit;
pub mod report;

// The content of the EBA's register.
pub mod register;

// Readers of input: files, times, certificates in any encoding, saved requests and answers.
mod input;
mod moment;
mod presented;
mod saved;

// Escapes for bytes that a terminal would hide.
mod visible;
