//! The catalogue (HTTP-11): every operation of the interface as data.
//!
//! An [`Operation`] declares its path, the role that it needs, its headers and body, its requirements on the PSU, and
//! who answers it. The checks read these fields; none of them knows a path or a group. A deployment may change paths and add
//! operations in a file (`config` reads it); the rules for those are enforced by [`Catalogue::new`].

// The terms in which an operation is declared.
mod member;
mod named;
mod parameter;
mod path_id;
mod vocabulary;

// One operation, and what it cannot carry.
mod carried;
mod operation;

// The operations of the interface.
mod builtin;
// Payment products that a deployment adds.
mod product;

// How an operation is found.
mod catalogue;
mod lookup;
mod tree;

pub use builtin::{PAYMENT_PRODUCTS, operations as builtin};
pub use carried::Uncarried;
pub use catalogue::{Catalogue, CatalogueFault};
pub use lookup::Lookup;
pub use member::{Member, MemberKind};
pub use operation::{Answer, Deprecated, Operation};
pub use parameter::{Parameter, ParameterKind};
pub use path_id::PathId;
pub use product::{Product, cross_border};
pub use vocabulary::{
    About, Agreement, AnsweredBy, Body, Environment, Environments, Quota, Required, Role, Sca,
    Schema, Signs, Takes, Transactions,
};
