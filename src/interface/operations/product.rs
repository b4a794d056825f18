//! Payment products that a deployment adds, or whose shape it knows (HTTP-3, HTTP-11).
//!
//! Invariant: a product only adds to what an initiation requires. Its initiation has the headers of HDR-5 and a known PSU (SCA-8), whatever
//! the product says. A product with a shape or headers of its own gets an operation of its own for each initiation, at a literal path, so
//! that requests of other products are found as before. The cross-border product of the interface is such a product at every path but its own:
//! wherever an initiation takes the name of a product, that one keeps its headers, its query and its members (HDR-1, HDR-2, PAY-3).

use super::{Answer, Member, Operation, Required, Schema, builtin, path_id::PRODUCT_PARAMETER};

/// The operation of the interface with headers, a query and a schema that no other product has.
const CROSS_BORDER: &str = "cross-border-payment-create";

/// The product of that operation.
const CROSS_BORDER_PRODUCT: &str = "norwegian-cross-border-credit-transfers";

/// What the cross-border product needs besides the operations `all`: one for each initiation that takes its name at a path where none is its
/// own. Each with the index of that initiation.
pub fn cross_border(all: &[Operation]) -> Vec<(usize, Operation)> {
    let own = all.iter().find(|one| one.name == CROSS_BORDER);
    let Some(own) = own.cloned().or_else(|| {
        let mut all = builtin().into_iter();
        all.find(|one| one.name == CROSS_BORDER)
    }) else {
        return Vec::new();
    };
    let mut missing = Vec::new();
    for (index, general) in all.iter().enumerate() {
        let path = general
            .path
            .replace(PRODUCT_PARAMETER, CROSS_BORDER_PRODUCT);
        let is_there = |one: &Operation| one.method == general.method && one.path == path;
        if !general.initiates || !general.takes_product() || all.iter().any(is_there) {
            continue;
        }
        let mut operation = general.clone().at(&path);
        operation.name = format!("{}-cross-border", general.name);
        operation.product_of = Some(general.name.clone());
        operation.required.clone_from(&own.required);
        for parameter in &own.query {
            if operation.query.iter().all(|one| one.name != parameter.name) {
                operation.query.push(parameter.clone());
            }
        }
        // Another schema is the deployment's: it is not judged as one payment.
        if general.schema == Schema::Payment {
            operation.schema = Schema::CrossBorderPayment;
        }
        missing.push((index, operation));
    }
    missing
}

/// A payment product of a deployment.
#[derive(Clone, Debug)]
pub struct Product {
    /// Its name in paths.
    pub name: String,
    /// The shape of its payments: of every payment, or of a cross-border payment.
    pub schema: Schema,
    /// The members that it requires or adds.
    pub members: Vec<Member>,
    /// The headers that its initiation requires besides those of HDR-5.
    pub required: Vec<Required>,
    /// The core's answer to its initiation, for the description only.
    pub answer: Option<Answer>,
}

impl Product {
    /// The operations of this product alone: its initiation, at each path that takes the name of a product.
    pub fn operations(&self, all: &[Operation]) -> Vec<Operation> {
        let is_plain = self.schema == Schema::Payment
            && self.members.is_empty()
            && self.required.is_empty()
            && self.answer.is_none();
        let initiations = all.iter();
        let initiations = initiations.filter(|one| one.initiates && one.takes_product());
        if is_plain {
            return Vec::new();
        }
        initiations.map(|operation| self.own(operation)).collect()
    }

    /// An operation with a schema of the deployment's keeps it: it is not judged as a payment.
    fn own(&self, general: &Operation) -> Operation {
        let mut operation = general
            .clone()
            .at(&general.path.replace(PRODUCT_PARAMETER, &self.name));
        operation.name = format!("{}-{}", general.name, self.name);
        operation.product_of = Some(general.name.clone());
        operation.required.extend_from_slice(&self.required);
        if general.schema == Schema::Payment {
            operation.schema = self.schema;
            operation.members.clone_from(&self.members);
        }
        if self.answer.is_some() {
            operation.answer.clone_from(&self.answer);
        }
        operation
    }
}
