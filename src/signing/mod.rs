//! The signatures of the gateway: the assertion to the core (FWD-1), and Digest and Signature of answers to TPPs (SIG-12).
//! Both are off unless the configuration names a key.
//!
//! Invariants: a signer has a usable key; `Debug` shows no key. Deliberately not here: the claims of an assertion and the
//! buffering of answers, both in `gateway`.

// The key of the assertion: its file, its public key, its thumbprint.
mod key;

// The assertion to the core.
mod assertion;

// Digest and Signature of an answer.
mod answer;

pub use answer::{AnswerKeyFault, AnswerSigner, AnswerSigning};
pub use assertion::{AssertionSettings, AssertionSigner};
pub use key::{AssertionKey, AssertionKeyFault};
