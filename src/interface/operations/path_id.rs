//! The ids in the path of an operation (HTTP-10, SCA-12).

use crate::interface::path;

/// The parameter of a path that holds the name of a payment product, and nothing else (HTTP-3).
pub(super) const PRODUCT_PARAMETER: &str = "{payment-product}";

/// The meaning of an id in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathId {
    /// The name of a payment product.
    Product,
    /// The id of an account: consent and quota are kept by it, so its characters are the bank's (HTTP-10).
    Account,
    /// The id of anything else.
    Other,
}

impl PathId {
    /// The ids in a path. An id after a segment such as `accounts` or `card-accounts` is an account's; so is the first
    /// one where `first_is_account`, whatever the path is.
    pub(super) fn all_in(path: &str, first_is_account: bool) -> Vec<Self> {
        let mut ids = Vec::new();
        let mut before = "";
        for segment in path::segments(path) {
            if is_parameter(segment) {
                let is_account = first_is_account && ids.is_empty() || before.ends_with("accounts");
                ids.push(match segment {
                    _ if is_account => Self::Account,
                    PRODUCT_PARAMETER => Self::Product,
                    _ => Self::Other,
                });
            }
            before = segment;
        }
        ids
    }
}

/// Whether a segment of a path stands for an id.
pub(super) fn is_parameter(segment: &str) -> bool {
    segment.starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::operations::{About, Operation, Quota, Role, Sca, builtin};
    use http::Method;

    #[test]
    fn the_ids_of_a_path() {
        use PathId::{Account, Other, Product};
        for (name, expected) in [
            ("account-list", &[][..]),
            ("balance-list", &[Account]),
            ("transaction-details", &[Account, Other]),
            ("payment-create", &[Product]),
            ("payment-status", &[Product, Other]),
            ("basket-read", &[Other]),
            ("sandbox-balance-update", &[Account]),
            ("sandbox-card-balance-update", &[Account]),
        ] {
            let mut operations = builtin().into_iter();
            let operation = operations.find(|operation| operation.name == name);
            assert_eq!(operation.unwrap().path_ids, expected, "{name}");
        }
        let plain = Operation::added("x", Method::GET, "/v1/{a}/{b}", "g", Role::Either);
        assert_eq!(plain.path_ids, [Other, Other]);
        let consented = Operation {
            sca: Sca::Consent,
            ..plain.clone()
        };
        assert_eq!(consented.at("/v2/{a}/{b}").path_ids, [Account, Other]);
        let counted = Operation {
            quota: Quota::FourInADay,
            ..plain
        };
        assert_eq!(counted.at("/v2/{a}").path_ids, [Account]);
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
        let moved = Operation::added(
            "x",
            Method::POST,
            "/v2/{payment-product}/{id}/start/{step}",
            "g",
            Role::Either,
        )
        .about(About::Payment);
        assert_eq!(moved.resource("/v2/p/7/start/1"), Some("/v2/p/7"));
    }
}
