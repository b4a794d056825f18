//! Keys in an HSM, by PKCS#11: the only crate that links `cryptoki`.
//!
//! Invariants: a private key never leaves its token; a signature is given out only after it has verified by the certificate; a PIN that a token
//! refused is not tried again in the process; the number of calls that run or wait is bounded for each key, and each caller waits for at most the
//! key's timeout. Deliberately not here: the
//! configuration's keys, and where a signature is used.

// What the configuration says, and what can go wrong.
mod fault;
mod settings;

// Which bytes a token signs, and their form in TLS.
mod algorithm;

// The library of the vendor: loaded and initialised once for the process.
mod leave;
mod library;
mod module;
mod state;

// A key: the calls of its token, its threads, its probe.
mod counts;
mod key;
mod token;

// The key as rustls asks for it.
mod signer;

pub use counts::{BOUNDS, PurposeCounts, counts};
pub use fault::{Cause, LoadFault, Part, Purpose};
pub use key::unavailable;
pub use leave::{END_WITHIN, leave};
pub use settings::{Pin, Pkcs11Settings};
pub use signer::open;
