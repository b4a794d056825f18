//! The facts and the shared parts that every section of a description is made of.

use crate::{
    headers::identity::IdentityForm,
    operations::Environment,
    payload::{Ibans, describe::reference},
};
use serde_json::{Map, Value, json};

/// The facts of a deployment that a description shows, besides its catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The environment that is described.
    pub environment: Environment,
    /// `system` of every error body (ERR-1).
    pub system: &'a str,
    /// Where TPPs call: host and port, as in `localhost:8443`.
    pub authority: &'a str,
    /// How X-PSU-IDENTITY is written (HDR-12).
    pub identity: IdentityForm,
    /// The most bytes that a body may have (HTTP-6).
    pub body_limit: usize,
    /// The countries whose IBANs are accepted (PAY-6).
    pub ibans: &'a Ibans,
}

/// The parts that operations refer to: each once, and only those that are referred to.
pub(super) struct Components<'a> {
    pub(super) setting: &'a Setting<'a>,
    pub(super) schemas: Map<String, Value>,
    pub(super) parameters: Map<String, Value>,
    pub(super) headers: Map<String, Value>,
    pub(super) responses: Map<String, Value>,
    pub(super) security: Map<String, Value>,
}

impl<'a> Components<'a> {
    pub(super) fn new(setting: &'a Setting<'a>) -> Self {
        Self {
            setting,
            schemas: Map::new(),
            parameters: Map::new(),
            headers: Map::new(),
            responses: Map::new(),
            security: Map::new(),
        }
    }

    /// A schema, created at the first reference.
    pub(super) fn schema(&mut self, name: &str, make: impl FnOnce() -> Value) -> Value {
        self.schemas.entry(name).or_insert_with(make);
        reference(name)
    }

    /// Several schemas that refer to each other.
    pub(super) fn schemas(&mut self, schemas: Map<String, Value>) {
        for (name, schema) in schemas {
            self.schemas.entry(name).or_insert(schema);
        }
    }

    pub(super) fn into_value(self) -> Value {
        let Self {
            mut schemas,
            parameters,
            headers,
            responses,
            security,
            setting: _,
        } = self;
        schemas.sort_keys();
        json!({ "schemas": schemas, "parameters": parameters, "headers": headers, "responses": responses, "securitySchemes": security })
    }
}
