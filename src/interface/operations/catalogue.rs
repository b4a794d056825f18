//! The operations of one environment, found by method and path.

use super::{
    Environment, Environments, Lookup, Operation, PAYMENT_PRODUCTS, path_id::is_parameter,
    tree::PathTree,
};
use crate::path::{self, Target};
use http::Method;
use std::{collections::HashMap, sync::Arc};

/// The operations of one environment, found by method and path.
#[derive(Debug)]
pub struct Catalogue {
    operations: Vec<Arc<Operation>>,
    products: Vec<String>,
    tree: PathTree,
}

/// The reason why an operation cannot stand in a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct CatalogueFault {
    /// Which of the operations given to [`Catalogue::new`].
    pub index: usize,
    /// The fault, and the accepted form.
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
        Self::with_products(environment, operations, &[])
    }

    /// The same, with payment products besides those of the interface (HTTP-3).
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_products(
        environment: Environment,
        operations: Vec<Operation>,
        added: &[&str],
    ) -> Result<Self, Vec<CatalogueFault>> {
        let mut products = PAYMENT_PRODUCTS.to_vec();
        products.extend(added.iter().filter(|name| !PAYMENT_PRODUCTS.contains(name)));
        let mut catalogue = Self {
            operations: Vec::new(),
            products: products.into_iter().map(str::to_owned).collect(),
            tree: PathTree::default(),
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
        let search = self.tree.find(method, target, &self.products);
        search.resolve(&self.operations)
    }

    /// An operation whose path is near to that of a target that has no operation; `None` if there is none.
    pub fn nearest(&self, target: &Target<'_>) -> Option<&Arc<Operation>> {
        let segments: Vec<&str> = target.segments().collect();
        let place = self.tree.nearest(&segments, &self.products)?;
        self.operations.get(place)
    }

    /// The names of the payment products, those of the interface first.
    pub fn products(&self) -> &[String] {
        &self.products
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
        let parameters = path::segments(&operation.path).filter(|segment| is_parameter(segment));
        if parameters.count() != operation.path_ids.len() {
            return Err(format!("not every id in {} is declared", operation.path));
        }
        let exists =
            environment == Environment::Sandbox || operation.environments == Environments::Both;
        // An operation of another environment is checked all the same: a file that is wrong is wrong everywhere.
        let index = exists.then_some(self.operations.len());
        self.tree
            .insert(&operation.method, &operation.path, index)?;
        // QUO-16. An operation that is read from a file has none of these faults.
        if let Some(fault) = operation.uncarried().into_iter().next() {
            return Err(fault.text);
        }
        if exists {
            self.operations.push(Arc::new(operation));
        }
        Ok(())
    }
}

/// FWD-5: an answer can link to the successor of a deprecated operation.
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
    use crate::operations::builtin;

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

    #[test]
    fn the_nearest_path() {
        let nearest = |environment, path: &str| {
            let catalogue = Catalogue::new(environment, builtin()).unwrap();
            let target = Target::parse(path.as_bytes()).unwrap();
            let nearest = catalogue.nearest(&target);
            nearest.map_or_else(String::new, |operation| operation.path.clone())
        };
        let transactions = "/v1/accounts/{id}/transactions";
        for (path, expected) in [
            ("/v1/Accounts", "/v1/accounts"),
            ("/v1/acounts?x=y", "/v1/accounts"),
            ("/v2/accounts", "/v1/accounts"),
            ("/v2/acounts", "/v1/accounts"),
            ("/accounts", "/v1/accounts"),
            ("/psd2/v1/accounts", "/v1/accounts"),
            ("/v1/accounts/42/transaction", transactions),
            ("/v1/account/42/Transactions", transactions),
            ("/v1/signing-basket", "/v1/signing-baskets"),
            (
                "/v1/accounts/42/transactions/7/8",
                "/v1/accounts/{id}/transactions/{transactionId}",
            ),
            (
                "/v1/payments/norwegian-domestic-credit-transfers/7/authorizations",
                "/v1/payments/{payment-product}/{payment-id}/authorisations",
            ),
            ("/favicon.ico", ""),
            ("/wp-admin/setup.php", ""),
            ("/a/b/c/d/e/f/g/h/i/j/k/l/m", ""),
        ] {
            assert_eq!(nearest(Environment::Sandbox, path), expected, "{path}");
        }
        let sandbox = "/v1/sandbox/accounts/1/transaction";
        assert!(nearest(Environment::Sandbox, sandbox).starts_with("/v1/sandbox/"));
        assert!(!nearest(Environment::Production, sandbox).contains("sandbox"));
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
            let mut operation = operations[0].clone().at(path);
            operation.name = name.into();
            operations.push(operation);
        };
        add("account-list", "/v1/new");
        add("same-place", "/v1/users");
        add("open-brace", "/v1/{id");
        add("trailing", "/v1/a/");
        add("relative", "v1");
        add("encoded", "/v1/%61");
        add("other-parameter-name", "/v1/accounts/{other}/cards");
        add("undeclared-id", "/v1/{one}/{two}");
        operations[count + 1].method = Method::GET;
        operations[count + 7].path_ids.pop();
        let faults = Catalogue::new(Environment::Production, operations).unwrap_err();
        let indices: Vec<_> = faults.iter().map(|fault| fault.index - count).collect();
        assert_eq!(indices, [0, 1, 2, 3, 4, 5, 7], "{faults:?}");
    }
}
