//! Payment products that a deployment adds, or whose shape it knows (HTTP-3, HTTP-11).
//!
//! Invariant: a product only adds to what an initiation requires. Its initiation has the headers of HDR-5 and a known PSU (SCA-8), whatever
//! the product says. A product with a shape or headers of its own gets an operation of its own for each initiation, at a literal path, so
//! that requests of other products are found as before.

use super::{Answer, Member, Operation, Required, Schema, path_id::PRODUCT_PARAMETER};

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
