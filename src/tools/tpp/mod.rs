//! `portvakt tpp sign | call | verify`: a TPP on the command line, and the signing that tests and benchmarks use.
//!
//! Invariant: the bytes that are signed are the bytes that are sent; if a client would rewrite them, the request is refused
//! instead.
//! Deliberately not here: any code of the gateway's decisions, but for `verify`, which verifies by them. This is the TPP's side, and it can
//! produce faulty requests (`--sign-only`).

mod call;
mod command;
mod curl;
mod fault;
mod identity;
mod sign;
mod signer;
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
#[cfg(all(test, feature = "sandbox"))]
mod verify_tests;
