//! The catalogue (HTTP-11): every operation of the interface as data.
//!
//! An [`Operation`] declares its path, the role that it needs, its headers and body, its requirements on the PSU, and
//! who answers it. The checks read these fields; none of them knows a path or a group. A deployment may change paths and add
//! operations in a file (`config` reads it); the rules for those are enforced by [`Catalogue::new`].

macro_rules! named {
    ($(#[$doc:meta])* $kind:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $kind { $($(#[$vdoc])* $variant),+ }

        impl $kind {
            /// Every variant with its name in a catalogue file.
            pub const NAMES: &'static [(&'static str, Self)] = &[$(($name, Self::$variant)),+];

            /// The name in a catalogue file.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}
use named;

// The terms in which an operation is declared.
mod parameter;
mod path_id;
mod vocabulary;

// The operations of the interface.
mod builtin;

// How an operation is found.
mod catalogue;
mod tree;

pub use builtin::{PAYMENT_PRODUCTS, operations as builtin};
pub use catalogue::{Catalogue, CatalogueFault, Lookup};
pub use parameter::{Parameter, ParameterKind};
pub use path_id::PathId;
pub use vocabulary::{
    About, Agreement, AnsweredBy, Body, Environment, Environments, Quota, Required, Role, Sca,
    Schema, Signs, Takes, Transactions,
};

use http::Method;
use jiff::civil::Date;

/// One operation of the interface.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The stable name: the metric label, the log field, Gateway-Operation.
    pub name: String,
    /// The method.
    pub method: Method,
    /// The path with its parameters in braces, as in `/v1/accounts/{id}/balances`.
    pub path: String,
    /// Where it exists (HTTP-1).
    pub environments: Environments,
    /// The PSD2 role that it needs (CRT-5).
    pub role: Role,
    /// The headers that it requires, Date, TPP-Signature-Certificate and Signature apart, which all do.
    pub required: Vec<Required>,
    /// Which headers reach the core (HDR-3).
    pub takes: Takes,
    /// The query parameters that it has (QRY-1); others are forwarded as they are.
    pub query: Vec<Parameter>,
    /// The body that it takes (HTTP-8).
    pub body: Body,
    /// The schema of a JSON body (PAY-1 to PAY-14).
    pub schema: Schema,
    /// Its requirement on the PSU (SCA-8).
    pub sca: Sca,
    /// Whether calls without the PSU are limited (QUO-1 to QUO-3).
    pub quota: Quota,
    /// The part of an account's transactions that it shows.
    pub transactions: Transactions,
    /// Whether a request in a corporate context must name the agreement (HDR-14).
    pub agreement: Agreement,
    /// The ids in its path, in their order (HTTP-10).
    pub path_ids: Vec<PathId>,
    /// The object that a PSU signs in an SCA that it starts (SCA-12).
    pub signs: Signs,
    /// Whether it initiates a payment: only there X-PSU-IDENTITY may stand for PSU-ID (HDR-12).
    pub initiates: bool,
    /// Whether its errors carry tppMessages (ERR-1): those of payments and baskets do.
    pub tpp_messages: bool,
    /// The group by which it is routed and documented (FWD-3), and by which settings of a deployment select operations.
    /// No rule of the interface depends on it.
    pub group: String,
    /// Who answers it (SCA-20).
    pub answered_by: AnsweredBy,
    /// That another operation takes its place (FWD-5). None where it is to stay.
    pub deprecated: Option<Deprecated>,
}

/// That an operation is about to go (FWD-5, §Versioning).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deprecated {
    /// Since when one should not use it any more: the beginning of this day in UTC.
    pub since: Date,
    /// From when on it may not be there any more, likewise.
    pub sunset: Option<Date>,
    /// The name of the operation that takes its place. Its path has no parameters.
    pub successor: Option<String>,
}

impl Operation {
    /// Whether SCA that it starts is about consent to account information (SCA-18).
    pub fn asks_consent(&self) -> bool {
        self.sca == Sca::Consent
            || self.answered_by == AnsweredBy::Gateway && self.role == Role::AccountInformation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HDR-12, HDR-14.
    #[test]
    fn what_initiates_payments_and_where_no_agreement_is_named() {
        let names = |holds: fn(&Operation) -> bool| {
            let operations = builtin().into_iter();
            operations
                .filter(holds)
                .map(|operation| operation.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(|operation| operation.initiates),
            ["cross-border-payment-create", "payment-create"]
        );
        assert_eq!(
            names(|operation| operation.agreement == Agreement::Open),
            [
                "user-register",
                "agreement-list",
                "consent-create",
                "bank-offered-consent-create"
            ]
        );
    }
}
