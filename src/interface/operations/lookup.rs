//! The result of a look-up by method and path.

use super::operation::Operation;
use std::sync::Arc;

/// The result of a look-up by method and path.
#[derive(Debug)]
pub enum Lookup<'a> {
    /// The operation.
    Found(&'a Arc<Operation>),
    /// The path is known, the method is not (HTTP-2): the methods that it has, as the value of Allow.
    OtherMethods(String),
    /// The path names a payment product that does not exist (HTTP-3).
    UnknownProduct,
    /// No operation (HTTP-1).
    Unknown,
}
