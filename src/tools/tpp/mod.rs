//! `portvakt tpp sign | call | verify`: a TPP on the command line, and the signing that tests and benchmarks use.
//!
//! Invariant: what is signed is what is sent, byte for byte; where a client would rewrite it, it is refused instead.
//! Deliberately not here: anything that the gateway judges by. This is the other side, and it can be told to do wrong (`--sign-only`).

mod call;
mod command;
mod curl;
mod fault;
mod identity;
mod sign;
mod verify;

pub use self::call::{CallOptions, TppAnswer, call};
pub use self::command::{CallArgs, RequestArgs, TppCommand, run};
pub use self::fault::TppFault;
pub use self::identity::TppIdentity;
pub(in crate::tools) use self::identity::in_ascii;
pub use self::sign::{SIGNED_HEADERS, SignOptions, SignedRequest, Unsigned, sign};
pub use self::verify::VerifyArgs;

#[cfg(all(test, feature = "sandbox"))]
mod tests;
