//! Paths as a tree of segments: a lookup takes one step for each segment, independent of the number of operations.

// The nearest path to one that is none.
mod nearest;

use super::{
    Lookup, Operation,
    path_id::{PRODUCT_PARAMETER, is_parameter},
};
use crate::path::{self, Target};
use http::Method;
use std::sync::Arc;

/// A node represents the path that leads to it.
#[derive(Debug, Default)]
pub(super) struct PathTree {
    literals: Vec<(String, PathTree)>,
    product: Option<Box<PathTree>>,
    parameter: Option<Box<PathTree>>,
    /// The methods that end here, with the operation's place; none for an operation of another environment.
    methods: Vec<(Method, Option<usize>)>,
}

/// The result of a walk through the tree.
#[derive(Debug)]
pub(super) struct PathSearch<'a> {
    products: &'a [String],
    found: Option<usize>,
    allowed: Vec<&'a Method>,
    unknown_product: bool,
}

impl PathTree {
    /// Adds an operation.
    pub(super) fn insert(
        &mut self,
        method: &Method,
        template: &str,
        operation: Option<usize>,
    ) -> Result<(), String> {
        check_template(template)?;
        let node = path::segments(template).fold(self, Self::child);
        if node.methods.iter().any(|(known, _)| known == method) {
            return Err(format!(
                "{method} {template} stands in the catalogue already"
            ));
        }
        node.methods.push((method.clone(), operation));
        Ok(())
    }

    pub(super) fn find<'a>(
        &'a self,
        method: &Method,
        target: &Target<'_>,
        products: &'a [String],
    ) -> PathSearch<'a> {
        let segments: Vec<&str> = target.segments().collect();
        let mut search = PathSearch::new(products);
        self.walk(method, &segments, &mut search);
        search
    }

    fn child(&mut self, segment: &str) -> &mut Self {
        if segment == PRODUCT_PARAMETER {
            return self.product.get_or_insert_default();
        }
        if is_parameter(segment) {
            return self.parameter.get_or_insert_default();
        }
        let at = self
            .literals
            .iter()
            .position(|(literal, _)| literal == segment)
            .unwrap_or_else(|| {
                self.literals.push((segment.to_owned(), Self::default()));
                self.literals.len().saturating_sub(1)
            });
        #[allow(
            clippy::indexing_slicing,
            reason = "the position was just found or made"
        )]
        &mut self.literals[at].1
    }

    /// Follows the rest of a path through literals first, then products, then any parameter. Few segments of a path have more than one
    /// branch, so the cost of backtracking is negligible.
    fn walk<'a>(&'a self, method: &Method, segments: &[&str], search: &mut PathSearch<'a>) {
        let [segment, rest @ ..] = segments else {
            return self.end(method, search);
        };
        let literal = self
            .literals
            .iter()
            .find(|(literal, _)| literal == *segment)
            .map(|(_, node)| node);
        let products = self.product.as_deref();
        let is_known = |segment: &str| search.products.iter().any(|known| known == segment);
        let product = products.filter(|_| is_known(segment));
        for node in [literal, product, self.parameter.as_deref()]
            .into_iter()
            .flatten()
        {
            node.walk(method, rest, search);
            if search.found.is_some() {
                return;
            }
        }
        search.unknown_product |= product.is_none()
            && products.is_some_and(|node| node.leads_somewhere(rest, search.products));
    }

    fn end<'a>(&'a self, method: &Method, search: &mut PathSearch<'a>) {
        for (known, operation) in &self.methods {
            let Some(operation) = operation else { continue };
            if known == method {
                search.found = Some(*operation);
            }
            search.allowed.push(known);
        }
    }

    /// Whether an operation with any method is at the end of a path.
    fn leads_somewhere(&self, rest: &[&str], products: &[String]) -> bool {
        let mut search = PathSearch::new(products);
        self.walk(&Method::TRACE, rest, &mut search);
        !search.allowed.is_empty()
    }
}

impl<'s> PathSearch<'s> {
    const fn new(products: &'s [String]) -> Self {
        Self {
            products,
            found: None,
            allowed: Vec::new(),
            unknown_product: false,
        }
    }

    pub(super) fn resolve(self, operations: &[Arc<Operation>]) -> Lookup<'_> {
        if let Some(operation) = self.found.and_then(|index| operations.get(index)) {
            return Lookup::Found(operation);
        }
        if self.unknown_product {
            return Lookup::UnknownProduct;
        }
        if self.allowed.is_empty() {
            return Lookup::Unknown;
        }
        let mut methods: Vec<_> = self.allowed.iter().map(|method| method.as_str()).collect();
        methods.sort_unstable();
        methods.dedup();
        Lookup::OtherMethods(methods.join(", "))
    }
}

/// A template is a path as a request may have it, with whole segments in braces for parameters.
fn check_template(template: &str) -> Result<(), String> {
    let wrong = |why: &str| {
        Err(format!(
            "the path {template} is not one that a request could have: {why}"
        ))
    };
    let mut plain = String::with_capacity(template.len());
    for segment in template.split('/') {
        let parameter = segment
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        let literal = parameter.unwrap_or(segment);
        if literal.contains(['{', '}', '?']) || parameter == Some("") {
            return wrong("a parameter is a whole segment, as in /v1/accounts/{id}");
        }
        if parameter.is_none() && segment.contains('%') {
            return wrong("write it without percent-encoding");
        }
        plain.push_str(literal);
        plain.push('/');
    }
    plain.pop();
    let parsed = Target::parse(plain.as_bytes()).map(|_| ());
    parsed.or_else(|fault| wrong(fault.what()))
}
