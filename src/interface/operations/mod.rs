//! The catalogue (HTTP-11): every operation of the interface as data.
//!
//! An [`Operation`] says where it stands, who may call it, which headers and body it takes, what it needs of the PSU
//! and who answers it. The checks read this; none of them knows a path. A deployment may change paths and add
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

mod builtin;
mod parameter;
mod tree;

pub use builtin::{PAYMENT_PRODUCTS, operations as builtin};

pub use parameter::{Parameter, ParameterKind};

use super::{
    headers::Header,
    path::{self, AccountIds, Target},
};
use http::Method;
use jiff::civil::Date;
use std::{borrow::Cow, collections::HashMap, sync::Arc};
use tree::Tree;

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
    /// What body it takes (HTTP-8).
    pub body: Body,
    /// What a JSON body is judged by (PAY-1 to PAY-14).
    pub schema: Schema,
    /// What it needs of the PSU (SCA-8).
    pub sca: Sca,
    /// Whether calls without the PSU are limited (QUO-1 to QUO-3).
    pub quota: Quota,
    /// What it shows of an account's transactions.
    pub transactions: Transactions,
    /// Whether a request in a corporate context must name the agreement (HDR-14).
    pub agreement: Agreement,
    /// What it is about: its SCA, its headers and its errors go by that.
    pub about: About,
    /// The group by which it is routed (FWD-3). Nothing else goes by it.
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

/// The environments of the interface (§What the service does). One process serves one (CRT-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// Real PSU data and real transactions.
    Production,
    /// Fake users and simulated transactions.
    Sandbox,
}

impl Environment {
    /// The name in the configuration, in answers and upstream.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Production => "production",
            Self::Sandbox => "sandbox",
        }
    }
}

named! {
    /// Where an operation exists.
    Environments {
        /// In both environments.
        Both = "both",
        /// In the sandbox only: mock data.
        SandboxOnly = "sandbox",
    }
}

named! {
    /// The PSD2 role that an operation needs (CRT-5).
    Role {
        /// PSP_AI
        AccountInformation = "PSP_AI",
        /// PSP_PI
        PaymentInitiation = "PSP_PI",
        /// PSP_AI or PSP_PI
        Either = "either",
    }
}

named! {
    /// Which headers of the table an operation takes.
    Takes {
        /// All of them.
        Whole = "whole",
        /// Content negotiation, Host, X-Request-ID and the signature's only; others are dropped (HDR-3).
        Signing = "signing",
    }
}

named! {
    /// What body an operation takes (HTTP-8).
    Body {
        /// None; an empty JSON object passes.
        None = "none",
        /// JSON, with a Digest (DIG-2).
        Json = "json",
        /// Any, and none of it is looked at.
        Ignored = "ignored",
    }
}

named! {
    /// What a JSON body is judged by.
    Schema {
        /// That it is JSON (PAY-1).
        Any = "any",
        /// §Payment creation request, the cross-border payment (PAY-3 to PAY-12).
        CrossBorderPayment = "cross-border-payment",
        /// What all payments share, where it stands (PAY-14).
        Payment = "payment",
        /// §Signing basket request (PAY-13).
        Basket = "basket",
    }
}

named! {
    /// What an operation needs of the PSU (SCA-8).
    Sca {
        /// Nothing.
        None = "none",
        /// A PSU-ID bound to the TPP, or X-PSU-IDENTITY on initiation.
        Identified = "identified",
        /// A live consent, and a session where the PSU is present and old history is asked for.
        Consent = "consent",
    }
}

named! {
    /// What an operation is about: which headers it requires (HDR-5, HDR-12), what its SCA signs (SCA-12), whether its errors
    /// carry tppMessages (ERR-1). It is no group's matter: a deployment may route an operation with another group.
    About {
        /// Neither a payment nor a basket.
        Other = "other",
        /// A payment that was made, or what there is to know of them.
        Payment = "payment",
        /// A payment to be made.
        Initiation = "payment-initiation",
        /// A signing basket.
        Basket = "basket",
    }
}

/// Whether a request in a corporate context must name the corporate agreement (HDR-14). It is no group's matter: a
/// deployment may route an operation with another group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// It must.
    Named,
    /// It need not: agreements, registration and consent are where the PSU chooses one.
    Open,
}

named! {
    /// Whether calls without the PSU are limited.
    Quota {
        /// They are not.
        None = "none",
        /// Four in 24 hours for each TPP, PSU and account (QUO-1 to QUO-3).
        FourInADay = "four-in-a-day",
    }
}

named! {
    /// What an operation shows of an account's transactions: how far back it may reach depends on the PSU
    /// (SCA-8, QUO-8 to QUO-10).
    Transactions {
        /// Nothing.
        None = "none",
        /// The list, from a date on.
        List = "list",
        /// The details of one.
        Details = "details",
    }
}

named! {
    /// Who answers an operation.
    AnsweredBy {
        /// The core.
        Upstream = "upstream",
        /// The gateway itself (SCA-20).
        Gateway = "gateway",
    }
}

/// Headers that an operation requires: all of these, or one of two.
#[derive(Clone, Copy, Debug)]
pub enum Required {
    /// This header.
    One(&'static Header),
    /// One of the two (HDR-1: on B X-PSU-IDENTITY may stand for PSU-ID).
    Either(&'static Header, &'static Header),
}

impl Operation {
    /// Whether SCA that it starts is about consent to account information (SCA-18).
    pub fn asks_consent(&self) -> bool {
        self.sca == Sca::Consent
            || self.answered_by == AnsweredBy::Gateway && self.role == Role::AccountInformation
    }

    /// The ids in a path that is this operation's, decoded, in their order: HTTP-10 keys by those. Accounts' ids are made of
    /// `account_ids`, the others of what a path may hold.
    ///
    /// # Errors
    /// What is wrong with an id, as a sentence for the caller.
    pub fn ids<'a>(
        &self,
        target: &Target<'a>,
        account_ids: &AccountIds,
    ) -> Result<Vec<Cow<'a, str>>, &'static str> {
        let mut ids = Vec::new();
        if !self.path.contains('{') {
            return Ok(ids);
        }
        // The first id of an operation that a consent or the quota judges is the account, whatever its path is.
        let mut is_account = self.sca == Sca::Consent || self.quota != Quota::None;
        let mut before = "";
        for (name, id) in path::segments(&self.path).zip(target.segments()) {
            if name.starts_with('{') {
                let id = path::decode(id);
                if (is_account || before.ends_with("accounts")) && !account_ids.include(&id) {
                    return Err(
                        "an account's id has 1 to 128 characters of those that this bank uses",
                    );
                }
                if id.len() > path::MAX_ID {
                    return Err("an id in the path has more than 256 characters");
                }
                is_account = false;
                ids.push(id);
            }
            before = name;
        }
        Ok(ids)
    }

    /// Whether it initiates a payment: only there X-PSU-IDENTITY may stand for PSU-ID (HDR-12).
    pub fn is_initiation(&self) -> bool {
        self.about == About::Initiation
    }

    /// Whether its errors carry tppMessages (ERR-1): those of payments and baskets do.
    pub fn has_messages(&self) -> bool {
        self.about != About::Other
    }

    /// The path of the payment or the basket that a request of this path is about, whatever it asks of it: what the PSU
    /// signs (SCA-12). It ends with the first id; a payment product is none.
    pub fn resource<'p>(&self, path: &'p str) -> Option<&'p str> {
        let is_id = |part: &str| part.starts_with('{') && part != "{payment-product}";
        let id = self.path.split('/').position(is_id)?;
        let end = path.match_indices('/').nth(id).map(|(end, _)| end);
        let resource = end.map_or(Some(path), |end| path.get(..end));
        resource.filter(|_| self.has_messages())
    }
}

/// What the catalogue says to a method and a path.
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

/// The operations of one environment, found by method and path.
#[derive(Debug)]
pub struct Catalogue {
    operations: Vec<Arc<Operation>>,
    tree: Tree,
}

/// Why an operation cannot stand in a catalogue. It names the operation by its place in the list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct CatalogueFault {
    /// Which of the operations given to [`Catalogue::new`].
    pub index: usize,
    /// What is wrong, and what would pass.
    pub text: String,
}

impl Catalogue {
    /// Builds the catalogue of an environment: operations that it does not have are left out (HTTP-1).
    ///
    /// # Errors
    /// Every operation that cannot stand: a name or a method and path that another has, a path that cannot be read.
    pub fn new(
        environment: Environment,
        operations: Vec<Operation>,
    ) -> Result<Self, Vec<CatalogueFault>> {
        let mut catalogue = Self {
            operations: Vec::new(),
            tree: Tree::default(),
        };
        let mut faults = successors(&operations);
        let mut names = HashMap::new();
        for (index, operation) in operations.into_iter().enumerate() {
            if names.insert(operation.name.clone(), index).is_some() {
                faults.push(CatalogueFault {
                    index,
                    text: format!(
                        "an operation named {} stands in the catalogue already",
                        operation.name
                    ),
                });
            } else if let Err(text) = catalogue.insert(environment, operation) {
                faults.push(CatalogueFault { index, text });
            }
        }
        if faults.is_empty() {
            Ok(catalogue)
        } else {
            Err(faults)
        }
    }

    /// Finds the operation of a method and a path. Literal segments win over parameters, segment by segment.
    pub fn find(&self, method: &Method, target: &Target<'_>) -> Lookup<'_> {
        self.tree.find(method, target).resolve(&self.operations)
    }

    /// The operation of a name.
    pub fn named(&self, name: &str) -> Option<&Arc<Operation>> {
        self.operations
            .iter()
            .find(|operation| operation.name == name)
    }

    /// Every operation.
    pub fn operations(&self) -> &[Arc<Operation>] {
        &self.operations
    }

    fn insert(&mut self, environment: Environment, operation: Operation) -> Result<(), String> {
        let exists =
            environment == Environment::Sandbox || operation.environments == Environments::Both;
        // An operation of another environment is checked all the same: a file that is wrong is wrong everywhere.
        let index = exists.then_some(self.operations.len());
        self.tree
            .insert(&operation.method, &operation.path, index)?;
        if exists {
            self.operations.push(Arc::new(operation));
        }
        Ok(())
    }
}

/// FWD-5: what takes the place of a deprecated operation can be linked to.
fn successors(operations: &[Operation]) -> Vec<CatalogueFault> {
    let mut faults = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        let deprecated = operation.deprecated.as_ref();
        let Some(name) = deprecated.and_then(|deprecated| deprecated.successor.as_ref()) else {
            continue;
        };
        let successor = operations.iter().find(|other| other.name == *name);
        if successor.is_none_or(|successor| successor.path.contains('{')) {
            let text = format!(
                "the successor of {} is {name}: expected an operation of the catalogue whose path has no parameter",
                operation.name
            );
            faults.push(CatalogueFault { index, text });
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(environment: Environment, method: &str, path: &str) -> String {
        let catalogue = Catalogue::new(environment, builtin()).unwrap();
        let target = Target::parse(path.as_bytes()).unwrap();
        match catalogue.find(&method.parse().unwrap(), &target) {
            Lookup::Found(operation) => operation.name.clone(),
            Lookup::OtherMethods(allow) => format!("405 {allow}"),
            Lookup::UnknownProduct => "product".into(),
            Lookup::Unknown => "404".into(),
        }
    }

    #[test]
    fn operations_are_found() {
        let table = [
            ("GET", "/v1/accounts", "account-list"),
            ("GET", "/v1/accounts?x=y", "account-list"),
            ("GET", "/v1/accounts/42/transactions", "transaction-list"),
            (
                "GET",
                "/v1/accounts/42/transactions/a%40b",
                "transaction-details",
            ),
            (
                "POST",
                "/v1/payments/norwegian-cross-border-credit-transfers",
                "cross-border-payment-create",
            ),
            (
                "POST",
                "/v1/payments/norwegian-domestic-credit-transfers",
                "payment-create",
            ),
            (
                "GET",
                "/v1/payments/norwegian-cross-border-credit-transfers/7/status",
                "payment-status",
            ),
            (
                "GET",
                "/v1/payments/instant-norwegian-credit-transfers-straks/fee-information",
                "fee-information",
            ),
            (
                "GET",
                "/v1/payments/norwegian-domestic-credit-transfers/fee-information",
                "payment-read",
            ),
            (
                "POST",
                "/v1/payments/norwegian-domestic-credit-transfers/7/authorisations",
                "payment-authorise",
            ),
            ("POST", "/v1/payments/gold-bars", "product"),
            ("GET", "/v1/payments/gold-bars/7/status", "product"),
            ("DELETE", "/v1/accounts", "405 GET"),
            (
                "GET",
                "/v1/payments/norwegian-cross-border-credit-transfers",
                "405 POST",
            ),
            (
                "PUT",
                "/v1/sandbox/accounts/1/transactions",
                "405 GET, POST",
            ),
            (
                "GET",
                "/v1/sandbox/accounts/1/transactions",
                "sandbox-transaction-list",
            ),
            ("GET", "/v1/Accounts", "404"),
            ("GET", "/v2/accounts", "404"),
            ("GET", "/v1/accounts/42/transactions/7/8", "404"),
        ];
        for (method, path, expected) in table {
            assert_eq!(
                find(Environment::Sandbox, method, path),
                expected,
                "{method} {path}"
            );
        }
    }

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
            names(Operation::is_initiation),
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

    #[test]
    fn the_resource_is_the_payment_or_the_basket() {
        let table = [
            (
                "payment-authorise",
                "/v1/payments/p/7/authorisations",
                Some("/v1/payments/p/7"),
            ),
            (
                "payment-status",
                "/v1/payments/p/7/status",
                Some("/v1/payments/p/7"),
            ),
            ("payment-read", "/v1/payments/p/7", Some("/v1/payments/p/7")),
            (
                "basket-authorise",
                "/v1/signing-baskets/7/authorisations",
                Some("/v1/signing-baskets/7"),
            ),
            ("payment-create", "/v1/payments/p", None),
            ("basket-create", "/v1/signing-baskets", None),
            ("transaction-list", "/v1/accounts/7/transactions", None),
        ];
        for (name, path, expected) in table {
            let mut operations = builtin().into_iter();
            let operation = operations.find(|operation| operation.name == name);
            let mut operation = operation.unwrap();
            assert_eq!(operation.resource(path), expected, "{name}");
            operation.group = "other".into();
            assert_eq!(operation.resource(path), expected, "{name}");
        }
        let moved = Operation {
            about: About::Payment,
            ..Operation::added(
                "x",
                Method::POST,
                "/v2/{payment-product}/{id}/start/{step}",
                "g",
                Role::Either,
            )
        };
        assert_eq!(moved.resource("/v2/p/7/start/1"), Some("/v2/p/7"));
    }

    /// HTTP-1: a sandbox path does not exist in production.
    #[test]
    fn production_has_no_sandbox() {
        for operation in builtin()
            .iter()
            .filter(|operation| operation.path.starts_with("/v1/sandbox"))
        {
            let path = operation.path.replace(['{', '}'], "");
            assert_eq!(
                find(Environment::Production, operation.method.as_str(), &path),
                "404"
            );
        }
        assert_eq!(
            find(Environment::Production, "GET", "/v1/accounts"),
            "account-list"
        );
    }

    #[test]
    fn wrong_operations_are_all_reported() {
        let mut operations = builtin();
        let count = operations.len();
        let mut add = |name: &str, path: &str| {
            let mut operation = operations[0].clone();
            operation.name = name.into();
            operation.path = path.into();
            operations.push(operation);
        };
        add("account-list", "/v1/new");
        add("same-place", "/v1/users");
        add("open-brace", "/v1/{id");
        add("trailing", "/v1/a/");
        add("relative", "v1");
        add("encoded", "/v1/%61");
        add("other-parameter-name", "/v1/accounts/{other}/cards");
        operations[count + 1].method = Method::GET;
        let faults = Catalogue::new(Environment::Production, operations).unwrap_err();
        let indices: Vec<_> = faults.iter().map(|fault| fault.index - count).collect();
        assert_eq!(indices, [0, 1, 2, 3, 4, 5], "{faults:?}");
    }
}
