//! The ids in the path of an operation (HTTP-10, SCA-12).

use crate::path;

/// The parameter of a path that holds the name of a payment product, and nothing else (HTTP-3).
pub(super) const PRODUCT_PARAMETER: &str = "{payment-product}";

/// The parameters whose names say what they are. The meaning of an id is never taken from its position (QUO-16).
const NAMED: [(&str, PathId); 4] = [
    (PRODUCT_PARAMETER, PathId::Product),
    ("{account-id}", PathId::Account),
    ("{payment-id}", PathId::Payment),
    ("{basket-id}", PathId::Basket),
];

/// The interface's own paths up to an id, whatever the id is called.
const OWN: [(&str, PathId); 4] = [
    ("/v1/accounts", PathId::Account),
    ("/v1/signing-baskets", PathId::Basket),
    ("/v1/sandbox/accounts", PathId::Account),
    ("/v1/sandbox/card-accounts", PathId::Account),
];

/// The interface's own path of payments: the next segment is the product, and the one after it the payment.
const PAYMENTS: &str = "/v1/payments/";

/// The meaning of an id in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathId {
    /// The name of a payment product.
    Product,
    /// The id of an account: consent and quota are kept by it, so its characters are the bank's (HTTP-10).
    Account,
    /// The id of a payment, which an SCA signs (SCA-12).
    Payment,
    /// The id of a signing basket, which an SCA signs.
    Basket,
    /// An id after a segment such as `card-accounts`, which no name calls the account's: nothing is kept by it, but it has only the
    /// characters of accounts.
    AccountLike,
    /// The id of anything else.
    Other,
}

impl PathId {
    /// The ids in a path: by their names, or by the interface's own paths.
    pub fn all_in(path: &str) -> Vec<Self> {
        walk(path, |segment, before| {
            match by_name(segment).or_else(|| by_own_path(before)) {
                Some(id) => id,
                None if before.ends_with("accounts") => Self::AccountLike,
                None => Self::Other,
            }
        })
    }

    /// The name of the parameter, where the name says what it is.
    pub(super) fn name(self) -> Option<&'static str> {
        let mut all = NAMED.iter();
        all.find(|(_, id)| *id == self).map(|(name, _)| *name)
    }

    /// What the id is of, for faults.
    pub(super) const fn noun(self) -> &'static str {
        match self {
            Self::Product => "payment product",
            Self::Account | Self::AccountLike => "account",
            Self::Payment => "payment",
            Self::Basket => "basket",
            Self::Other => "other id",
        }
    }
}

/// The first fault of the names in a path, with the path that would do.
pub(super) fn fault_of_names(path: &str) -> Option<String> {
    let faults = walk(path, |segment, before| {
        let named = by_name(segment);
        if let (Some(own), Some(named)) = (by_own_path(before), named)
            && own != named
        {
            let (is, own) = (own.noun(), own.name().unwrap_or_default());
            return Some(format!(
                "after {before} the interface has the id of the {is}: write {own}"
            ));
        }
        let resembled = NAMED
            .iter()
            .find(|(name, _)| named.is_none() && folded(name) == folded(segment));
        resembled.map(|(name, _)| {
            let corrected = path.replacen(segment, name, 1);
            format!("{segment} says nothing about what it is: write {corrected}")
        })
    });
    faults.into_iter().flatten().next().or_else(|| twice(path))
}

/// The fault of a path with two ids of an account, a payment or a basket: only one of them would be judged.
fn twice(path: &str) -> Option<String> {
    let ids = walk(path, |segment, before| {
        let own = by_own_path(before).map(|id| (id, Some(before.to_owned())));
        let named = by_name(segment).map(|id| (id, None));
        own.or(named).map(|(id, own)| (id, segment.to_owned(), own))
    });
    let ids: Vec<_> = ids.into_iter().flatten().collect();
    for (index, (id, segment, own)) in ids.iter().enumerate() {
        let rest = ids.get(index.saturating_add(1)..).unwrap_or_default();
        let Some((_, other, _)) = rest.iter().find(|(other, ..)| other == id) else {
            continue;
        };
        let (name, noun) = (id.name().unwrap_or_default(), id.noun());
        return match (id, own) {
            (PathId::Product, _) => None,
            (_, Some(before)) if segment != name => Some(format!(
                "below {before} the interface has the id of the {noun}, so {segment} would be judged and {other} would not: choose a path that does not begin with {before}"
            )),
            _ => Some(format!(
                "{path} has {name} twice: give the one that is judged this name, and the other one another"
            )),
        };
    }
    None
}

/// The path with this id: the parameter that is most likely meant has the name, or it stands at the end.
pub(super) fn corrected(path: &str, wanted: PathId) -> String {
    let name = wanted.name().unwrap_or_default();
    let noun = wanted.noun();
    let unnamed = walk(path, |segment, before| {
        let free = by_name(segment).is_none() && by_own_path(before).is_none();
        let last = before.rsplit('/').next().unwrap_or_default();
        let likely = last.contains(noun);
        free.then(|| (likely, segment.to_owned()))
    });
    let unnamed: Vec<_> = unnamed.into_iter().flatten().collect();
    let likely = unnamed.iter().find(|(likely, _)| *likely);
    match likely.or(unnamed.first()) {
        Some((_, segment)) => path.replacen(segment.as_str(), name, 1),
        None => format!("{}/{name}", path.trim_end_matches('/')),
    }
}

/// Calls a function for each parameter of a path, with the path before it.
fn walk<T>(path: &str, mut of: impl FnMut(&str, &str) -> T) -> Vec<T> {
    let mut found = Vec::new();
    let mut before = String::new();
    for segment in path::segments(path) {
        if is_parameter(segment) {
            found.push(of(segment, &before));
        }
        before.push('/');
        before.push_str(segment);
    }
    found
}

fn by_name(segment: &str) -> Option<PathId> {
    let mut all = NAMED.iter();
    all.find(|(name, _)| *name == segment).map(|(_, id)| *id)
}

fn by_own_path(before: &str) -> Option<PathId> {
    if let Some(product) = before.strip_prefix(PAYMENTS)
        && !product.contains('/')
    {
        return Some(PathId::Payment);
    }
    let mut all = OWN.iter();
    all.find(|(path, _)| *path == before).map(|(_, id)| *id)
}

/// A parameter's name without what people spell in other ways: `{accountId}` resembles `{account-id}`.
fn folded(segment: &str) -> String {
    let kept = segment.chars().filter(char::is_ascii_alphanumeric);
    kept.map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether a segment of a path stands for an id.
pub(super) fn is_parameter(segment: &str) -> bool {
    segment.starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::{About, Operation, Role, builtin};
    use http::Method;

    #[test]
    fn the_ids_of_a_path() {
        use PathId::{Account, AccountLike, Basket, Other, Payment, Product};
        for (name, expected) in [
            ("account-list", &[][..]),
            ("balance-list", &[Account]),
            ("transaction-details", &[Account, Other]),
            ("payment-create", &[Product]),
            ("payment-status", &[Product, Payment]),
            ("basket-read", &[Basket]),
            ("sandbox-balance-update", &[Account]),
            ("sandbox-card-balance-update", &[Account]),
        ] {
            let mut operations = builtin().into_iter();
            let operation = operations.find(|operation| operation.name == name);
            assert_eq!(operation.unwrap().path_ids, expected, "{name}");
        }
        for (path, expected) in [
            ("/v1/{a}/{b}", &[Other, Other][..]),
            ("/v2/{customer}/{account-id}", &[Other, Account]),
            ("/v2/accounts/{id}/{account-id}", &[AccountLike, Account]),
            ("/v1/accounts/{id}/cards", &[Account]),
            ("/v1/payments/sepa/{id}/status", &[Payment]),
            ("/v2/payments/{payment-id}/{basket-id}", &[Payment, Basket]),
        ] {
            assert_eq!(PathId::all_in(path), expected, "{path}");
        }
    }

    //= QUO-16 refused
    #[test]
    fn names_that_say_nothing_or_two_things() {
        for (path, fault) in [
            ("/v2/{accountId}", "write /v2/{account-id}"),
            ("/v2/{Account_ID}/x", "write /v2/{account-id}/x"),
            ("/v2/{paymentId}", "write /v2/{payment-id}"),
            ("/v2/{basket_id}", "write /v2/{basket-id}"),
            ("/v2/{paymentProduct}", "write /v2/{payment-product}"),
            ("/v1/accounts/{payment-id}", "the id of the account"),
            ("/v1/payments/sepa/{account-id}", "the id of the payment"),
            ("/v2/{account-id}/{account-id}", "twice"),
            ("/v2/{account-id}/x/{account-id}", "twice"),
            (
                "/v1/accounts/{customer}/{account-id}/balances",
                "{customer} would be judged",
            ),
            (
                "/v1/accounts/{customer}/saldo/{account-id}",
                "does not begin with /v1/accounts",
            ),
            (
                "/v1/signing-baskets/{a}/x/{basket-id}",
                "{a} would be judged",
            ),
            (
                "/v1/payments/{payment-product}/{a}/x/{payment-id}",
                "{a} would be judged",
            ),
        ] {
            let found = fault_of_names(path).unwrap();
            assert!(found.contains(fault), "{path}: {found}");
        }
        for path in [
            "/v1/accounts/{id}",
            "/v1/accounts/{account-id}/cards",
            "/v2/{customer}/accounts/{account-id}",
            "/v1/payments/{payment-product}/{payment-id}",
            "/v1/users",
        ] {
            assert_eq!(fault_of_names(path), None, "{path}");
        }
    }

    #[test]
    fn the_corrected_path() {
        for (path, wanted, expected) in [
            (
                "/customers/{customer}/accounts/{id}",
                PathId::Account,
                "/customers/{customer}/accounts/{account-id}",
            ),
            ("/v1/balances", PathId::Account, "/v1/balances/{account-id}"),
            ("/v2/{a}/{b}", PathId::Account, "/v2/{account-id}/{b}"),
            (
                "/v2/{customer}/payments/{payment-product}/{id}/start",
                PathId::Payment,
                "/v2/{customer}/payments/{payment-product}/{payment-id}/start",
            ),
            (
                "/v2/{customer}/payments/{id}/start",
                PathId::Payment,
                "/v2/{customer}/payments/{payment-id}/start",
            ),
        ] {
            assert_eq!(corrected(path, wanted), expected, "{path}");
        }
    }

    //= SCA-12 accepted
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
        // QUO-16: by name, in any position.
        let added = |path, about| {
            Operation::added("x", Method::POST, path, "g", Role::PaymentInitiation).about(about)
        };
        let moved = "/v2/{customer}/{basket-id}/{payment-id}/start/{step}";
        let path = "/v2/c/b/p/start/1";
        for (about, expected) in [
            (About::Payment, Some("/v2/c/b/p")),
            (About::Basket, Some("/v2/c/b")),
            (About::Other, None),
        ] {
            assert_eq!(added(moved, about).resource(path), expected, "{about:?}");
        }
    }
}
