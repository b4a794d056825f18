//! The interface as data and pure rules: what a request must look like, which operations there are, and what a breach
//! is answered.
//!
//! Nothing here does I/O, reads a clock or knows the proxy; every function can be tested with a value.

// The closed vocabulary of error codes.
pub mod code;
// Every reason for a refusal.
pub mod reason;
// A refused request, with its faults.
pub mod refusal;
// The meaning of each reason, and its remedy.
pub mod guide;

// The catalogue of operations.
pub mod operations;
// Paths: what may stand in one, and how one is found in the catalogue.
pub mod path;

// Names that some server reads as another.
pub mod fold;
// Days as queries and bodies write them.
pub mod day;
// Query parameters, read by what an operation declares.
pub mod query;
// Bodies, read once and judged by the schema of the operation.
pub mod payload;

// The interface's header table, and one file per header with rules of its own.
pub mod headers;

// All of it as an OpenAPI description.
pub mod openapi;

pub use code::Code;
pub use reason::Reason;
pub use refusal::{Fault, FaultPlace, QuotaLeft, Refusal};
