//! Paths, as OpenAPI distinguishes them: two paths that differ only in the names of parameters are the same, and the catalogue may spell
//! one path in several ways.

use crate::{
    operations::{Catalogue, Lookup, Operation},
    path::{self, MAX_ID, Target},
};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The parameter that takes the names of payment products only (HTTP-3).
const PRODUCT: &str = "payment-product";

/// The spelling of each path, by its shape: the first spelling of a shape is used for all.
#[derive(Default)]
pub(super) struct Spellings {
    known: HashMap<String, Path>,
}

/// A path, and its parameters in their order.
#[derive(Clone)]
pub(super) struct Path {
    pub(super) text: String,
    parameters: Vec<String>,
}

impl Spellings {
    /// The path of an operation. A parameter that occurs twice gets a number, because each needs a unique name.
    ///
    /// A path with `{payment-product}` and a path with another parameter in its place would be the same path to OpenAPI, so the name of the
    /// product distinguishes them.
    pub(super) fn spell(&mut self, operation: &Operation) -> Path {
        let shape = |segment: &str| match parameter(segment) {
            Some(PRODUCT) | None => segment.to_owned(),
            Some(_) => "{}".to_owned(),
        };
        let shape: Vec<_> = path::segments(&operation.path).map(shape).collect();
        let known = self.known.entry(shape.join("/"));
        known.or_insert_with(|| Path::of(&operation.path)).clone()
    }
}

impl Path {
    fn of(template: &str) -> Self {
        let (mut text, mut parameters) = (String::new(), Vec::<String>::new());
        for segment in path::segments(template) {
            text.push('/');
            let Some(name) = parameter(segment) else {
                text.push_str(segment);
                continue;
            };
            let mut unique = name.to_owned();
            let mut count = 2_usize;
            while parameters.contains(&unique) {
                unique = format!("{name}-{count}");
                count = count.saturating_add(1);
            }
            text.push_str(&format!("{{{unique}}}"));
            parameters.push(unique);
        }
        Self { text, parameters }
    }

    /// Whether the path names a resource by an id.
    pub(super) fn has_ids(&self) -> bool {
        self.parameters.iter().any(|name| name != PRODUCT)
    }

    /// Whether the path names a payment product.
    pub(super) fn has_product(&self) -> bool {
        self.parameters.iter().any(|name| name == PRODUCT)
    }

    /// The path parameters of an operation. The description of one says where the operation has another name for it.
    pub(super) fn parameters(&self, operation: &Operation, catalogue: &Catalogue) -> Vec<Value> {
        let own = Self::of(&operation.path).parameters;
        let described = self.parameters.iter().zip(own).map(|(name, own)| {
            let (schema, mut text) = if name == PRODUCT {
                let products = products(operation, catalogue);
                (json!({ "type": "string", "enum": products }), "The payment product.".to_owned())
            } else {
                let text = "An id, as the bank gave it out; percent-encode what may not stand in a path.";
                (id(), text.to_owned())
            };
            if *name != own {
                text.push_str(&format!(" The interface calls it {own} here; OpenAPI has one name for it in a path."));
            }
            json!({ "name": name, "in": "path", "required": true, "description": text, "schema": schema })
        });
        described.collect()
    }
}

/// HTTP-10: visible ASCII without slash, backslash, percent sign, semicolon, question mark and hash, however it is encoded,
/// and no dot segment. Account ids have fewer characters, by configuration.
fn id() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_ID,
        "pattern": r#"^[!"$&-.0-:<->@-\[\]-~]+$"#,
        "not": { "enum": [".", ".."] },
    })
}

/// The products of this operation: a product may have an operation of its own.
fn products<'a>(operation: &Operation, catalogue: &'a Catalogue) -> Vec<&'a str> {
    let leads_here = |product: &&String| {
        let filled = path::segments(&operation.path).map(|segment| match parameter(segment) {
            Some(PRODUCT) => (*product).clone(),
            Some(_) => "0".to_owned(),
            None => segment.to_owned(),
        });
        let path = format!("/{}", filled.collect::<Vec<_>>().join("/"));
        let target = Target::parse(path.as_bytes());
        target.is_ok_and(|target| {
            matches!(catalogue.find(&operation.method, &target), Lookup::Found(found) if found.name == operation.name)
        })
    };
    let products = catalogue.products().iter().filter(leads_here);
    products.map(String::as_str).collect()
}

fn parameter(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}
