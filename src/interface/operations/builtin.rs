//! The operations that the interface names; HTTP-11 defines the paths that the interface does not show.

use super::{
    About, Agreement, AnsweredBy, Body, Deprecated, Environments, Operation, Parameter,
    ParameterKind, Quota, Required, Role, Sca, Schema, Signs, Takes, Transactions,
};
use crate::headers::{
    DIGEST, Header, PSU_ID, PSU_IP_ADDRESS, TPP_REDIRECT_URI, TPP_SESSION_ID, X_ACCEPT_FIX,
    X_PSU_IDENTITY, X_REQUEST_ID,
};
use http::Method;
use jiff::civil::Date;

/// The payment products (§Other operations mentioned).
pub const PAYMENT_PRODUCTS: [&str; 3] = [
    "norwegian-domestic-credit-transfers",
    "norwegian-cross-border-credit-transfers",
    "instant-norwegian-credit-transfers-straks",
];

/// HDR-5: the headers that every operation requires.
const COMMON: &[Required] = &[one(&X_REQUEST_ID), one(&TPP_REDIRECT_URI)];
/// HDR-1, signing basket creation (A).
const A: &[Required] = &[
    one(&X_ACCEPT_FIX),
    one(&X_REQUEST_ID),
    one(&TPP_SESSION_ID),
    one(&TPP_REDIRECT_URI),
    one(&PSU_IP_ADDRESS),
    one(&PSU_ID),
];
/// HDR-1 and HDR-2, cross-border payment creation (B).
const B: &[Required] = &[
    one(&X_ACCEPT_FIX),
    one(&X_REQUEST_ID),
    one(&TPP_SESSION_ID),
    one(&TPP_REDIRECT_URI),
    one(&PSU_IP_ADDRESS),
    Required::Either(&PSU_ID, &X_PSU_IDENTITY),
    one(&DIGEST),
];
/// HDR-5, payment initiation of the other products.
const INITIATION: &[Required] = &[
    one(&X_REQUEST_ID),
    one(&TPP_REDIRECT_URI),
    one(&PSU_IP_ADDRESS),
    Required::Either(&PSU_ID, &X_PSU_IDENTITY),
];
/// HDR-4: transaction details (C) require nothing but a signature.
const C: &[Required] = &[];
/// HDR-3: sandbox operations (D).
const D: &[Required] = &[one(&X_REQUEST_ID)];

/// §Versioning 3: the date since which POST /v1/consents is replaced (FWD-5). The interface names no end, and the rule requires a Sunset:
/// it is the same date, because a date in the past means "at any time" (RFC 8594, section 3). A bank with an exact date configures it in
/// its file of operations.
const REPLACED: Date = Date::constant(2024, 2, 5);

/// §Other operations mentioned, transaction list.
const TRANSACTION_LIST: [(&str, ParameterKind); 5] = [
    ("bookingStatus", ParameterKind::BookingStatus),
    ("dateFrom", ParameterKind::DateFrom),
    ("dateTo", ParameterKind::DateTo),
    ("offset", ParameterKind::Offset),
    ("limit", ParameterKind::Limit),
];
/// §D.
const MOCK_TRANSACTION_LIST: [(&str, ParameterKind); 4] = [
    ("fromDate", ParameterKind::DateFrom),
    ("toDate", ParameterKind::DateTo),
    ("offset", ParameterKind::Offset),
    ("limit", ParameterKind::Limit),
];

/// No parameter of the interface is required (QRY-4).
fn parameters(all: &[(&str, ParameterKind)]) -> Vec<Parameter> {
    let named = all.iter().map(|(name, kind)| Parameter::new(name, *kind));
    named.collect()
}

const fn one(header: &'static Header) -> Required {
    Required::One(header)
}

/// Every operation of the interface, in its order.
pub fn operations() -> Vec<Operation> {
    let mut all = accounts();
    all.extend(payments());
    all.extend(baskets());
    all.extend(psu());
    all.extend(sandbox());
    all
}

fn accounts() -> Vec<Operation> {
    let account = |name, path| Operation {
        sca: Sca::Consent,
        ..get(name, path, "accounts", Role::AccountInformation)
    };
    let limited = |operation| Operation {
        quota: Quota::FourInADay,
        ..operation
    };
    vec![
        account("account-list", "/v1/accounts"),
        limited(account("balance-list", "/v1/accounts/{id}/balances")),
        Operation {
            transactions: Transactions::List,
            query: parameters(&TRANSACTION_LIST),
            ..limited(account(
                "transaction-list",
                "/v1/accounts/{id}/transactions",
            ))
        },
        Operation {
            required: C.to_vec(),
            transactions: Transactions::Details,
            ..limited(account(
                "transaction-details",
                "/v1/accounts/{id}/transactions/{transactionId}",
            ))
        },
    ]
}

fn payments() -> Vec<Operation> {
    let payment = |operation: Operation| operation.about(About::Payment);
    let read = |name, path| payment(get(name, path, "payments", Role::PaymentInitiation));
    let create = |name, path, required: &[Required]| Operation {
        required: required.to_vec(),
        body: Body::Json,
        schema: Schema::Payment,
        ..post(name, path, "payments", Role::PaymentInitiation).about(About::Initiation)
    };
    vec![
        Operation {
            query: parameters(&[("allowLogicalDuplicate", ParameterKind::Boolean)]),
            schema: Schema::CrossBorderPayment,
            ..create(
                "cross-border-payment-create",
                "/v1/payments/norwegian-cross-border-credit-transfers",
                B,
            )
        },
        create(
            "payment-create",
            "/v1/payments/{payment-product}",
            INITIATION,
        ),
        read(
            "fee-information",
            "/v1/payments/instant-norwegian-credit-transfers-straks/fee-information",
        ),
        read(
            "payment-read",
            "/v1/payments/{payment-product}/{payment-id}",
        ),
        read(
            "payment-status",
            "/v1/payments/{payment-product}/{payment-id}/status",
        ),
        payment(post(
            "payment-authorise",
            "/v1/payments/{payment-product}/{payment-id}/authorisations",
            "payments",
            Role::PaymentInitiation,
        )),
    ]
}

fn baskets() -> Vec<Operation> {
    let basket = |operation: Operation| operation.about(About::Basket);
    let read = |name, path| basket(get(name, path, "signing-baskets", Role::PaymentInitiation));
    vec![
        Operation {
            required: A.to_vec(),
            body: Body::Json,
            schema: Schema::Basket,
            sca: Sca::Identified,
            ..basket(post(
                "basket-create",
                "/v1/signing-baskets",
                "signing-baskets",
                Role::PaymentInitiation,
            ))
        },
        read("basket-read", "/v1/signing-baskets/{basket-id}"),
        read("basket-status", "/v1/signing-baskets/{basket-id}/status"),
        basket(post(
            "basket-authorise",
            "/v1/signing-baskets/{basket-id}/authorisations",
            "signing-baskets",
            Role::PaymentInitiation,
        )),
    ]
}

/// The PSU's registration, agreements and consent, and the TPP's own contact address, for which the interface names
/// operations but shows no path.
fn psu() -> Vec<Operation> {
    let consent = |name, path| Operation {
        body: Body::Ignored,
        agreement: Agreement::Open,
        answered_by: AnsweredBy::Gateway,
        ..post(name, path, "consents", Role::AccountInformation)
    };
    let contact = |name, method, body| Operation {
        method,
        body,
        ..get(name, "/v1/tpp/contact", "tpp", Role::Either)
    };
    vec![
        Operation {
            agreement: Agreement::Open,
            answered_by: AnsweredBy::Gateway,
            ..get(
                "user-register",
                "/v1/users",
                "users",
                Role::PaymentInitiation,
            )
        },
        Operation {
            sca: Sca::Identified,
            agreement: Agreement::Open,
            ..get(
                "agreement-list",
                "/v1/agreements",
                "agreements",
                Role::Either,
            )
        },
        Operation {
            deprecated: Some(Deprecated {
                since: REPLACED,
                sunset: Some(REPLACED),
                successor: Some("bank-offered-consent-create".into()),
            }),
            ..consent("consent-create", "/v1/consents")
        },
        consent("bank-offered-consent-create", "/v1/bank-offered-consents"),
        contact("tpp-contact-read", Method::GET, Body::None),
        contact("tpp-contact-write", Method::PUT, Body::Json),
    ]
}

fn sandbox() -> Vec<Operation> {
    let mock = |operation: Operation| Operation {
        environments: Environments::SandboxOnly,
        required: D.to_vec(),
        takes: Takes::Signing,
        role: Role::Either,
        group: "sandbox".into(),
        ..operation
    };
    let read = |name, path| mock(get(name, path, "sandbox", Role::Either));
    let write = |name, method, path| {
        mock(Operation {
            method,
            body: Body::Json,
            ..get(name, path, "sandbox", Role::Either)
        })
    };
    vec![
        mock(post(
            "sandbox-initialise",
            "/v1/sandbox/initialisation",
            "sandbox",
            Role::Either,
        )),
        read("sandbox-customer-list", "/v1/sandbox/customers"),
        write(
            "sandbox-account-create",
            Method::POST,
            "/v1/sandbox/accounts",
        ),
        Operation {
            query: parameters(&MOCK_TRANSACTION_LIST),
            ..read(
                "sandbox-transaction-list",
                "/v1/sandbox/accounts/{mockAccountId}/transactions",
            )
        },
        write(
            "sandbox-card-transaction-create",
            Method::POST,
            "/v1/sandbox/accounts/{mockCardAccountId}/transactions",
        ),
        write(
            "sandbox-balance-update",
            Method::PUT,
            "/v1/sandbox/accounts/{mockAccountId}/balances",
        ),
        write(
            "sandbox-card-balance-update",
            Method::PUT,
            "/v1/sandbox/card-accounts/{mockCardAccountId}/balances",
        ),
    ]
}

fn get(name: &str, path: &str, group: &str, role: Role) -> Operation {
    Operation::added(name, Method::GET, path, group, role)
}

fn post(name: &str, path: &str, group: &str, role: Role) -> Operation {
    Operation::added(name, Method::POST, path, group, role)
}

impl Operation {
    /// An operation with the defaults of every field: the headers of HDR-5 and a signature, which an operator's own
    /// operations cannot switch off (HTTP-11). The operation exists in both environments, takes no body, needs no PSU,
    /// has no quota, and is answered by the core.
    pub fn added(name: &str, method: Method, path: &str, group: &str, role: Role) -> Self {
        Self {
            name: name.into(),
            product_of: None,
            method,
            path: String::new(),
            environments: Environments::Both,
            role,
            required: COMMON.to_vec(),
            takes: Takes::Whole,
            query: Vec::new(),
            body: Body::None,
            schema: Schema::Any,
            members: Vec::new(),
            sca: Sca::None,
            quota: Quota::None,
            transactions: Transactions::None,
            agreement: Agreement::Named,
            path_ids: Vec::new(),
            signs: Signs::Nothing,
            initiates: false,
            tpp_messages: false,
            group: group.into(),
            answered_by: AnsweredBy::Upstream,
            deprecated: None,
            answer: None,
        }
        .at(path)
    }

    /// The same operation about this subject. The errors of payments and baskets carry tppMessages (ERR-1), and an SCA
    /// signs them (SCA-12). An initiation of any product also requires the headers of HDR-5 and a PSU who is known
    /// (SCA-8).
    pub fn about(self, about: About) -> Self {
        let common = Self {
            signs: match about {
                About::Other => Signs::Nothing,
                About::Payment | About::Initiation => Signs::Payment,
                About::Basket => Signs::Basket,
            },
            tpp_messages: about != About::Other,
            ..self
        };
        match about {
            About::Initiation => Self {
                initiates: true,
                required: INITIATION.to_vec(),
                sca: Sca::Identified,
                ..common
            },
            About::Other | About::Payment | About::Basket => common,
        }
    }
}
