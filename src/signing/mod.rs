//! What the gateway signs itself: the assertion that the core gets with a request (FWD-1), and its answers to TPPs
//! (SIG-12). Both are off unless the configuration names a key.
//!
//! Invariant: a signer that exists can sign; `Debug` shows no key. Deliberately not here: which facts are told (`gateway`
//! takes them from the head that goes upstream) and when an answer is held (`gateway` too).

// The key of the assertion: its file, its public half, its thumbprint.
mod key;

// The assertion to the core.
mod assertion;

// Digest and Signature of an answer.
mod answer;

pub use answer::{AnswerKeyFault, AnswerSigner, AnswerSigning};
pub use assertion::{AssertionSettings, AssertionSigner};
pub use key::{AssertionKey, AssertionKeyFault};
