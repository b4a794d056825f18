//! The operation of a path and a method (HTTP-1 to HTTP-3, HTTP-10).

use super::{Head, Snapshot};
use crate::interface::{
    Fault, Reason, Refusal,
    operations::{Lookup, Operation},
    path::Target,
};
use std::{borrow::Cow, sync::Arc};

/// The operation, the target, and the decoded ids in the path.
pub(super) type Matched<'a> = (Arc<Operation>, (Target<'a>, Vec<Cow<'a, str>>));

pub(super) fn find<'a>(head: &Head<'a>, world: &Snapshot) -> Result<Matched<'a>, Refusal> {
    // HTTP-7 comes first: nothing may be read from a request that two servers could interpret differently.
    if let Some(fault) = head.ambiguity() {
        return Err(fault.into());
    }
    let malformed = |text: &str| Fault::request(Reason::MalformedRequest, text);
    let target = Target::parse(head.target).map_err(|fault| malformed(&fault.to_string()))?;
    match world.catalogue.find(head.method, &target) {
        Lookup::Found(operation) => {
            let ids = operation.ids(&target, &world.policy.account_ids);
            let ids = ids.map_err(|fault| {
                let refusal = Refusal::from(malformed(&fault.to_string()));
                match fault.for_operator() {
                    Some(text) => refusal.for_operator(text),
                    None => refusal,
                }
            })?;
            Ok((Arc::clone(operation), (target, ids)))
        }
        Lookup::OtherMethods(allow) => Err(Refusal::new(Reason::MethodNotAllowed).allowing(allow)),
        Lookup::UnknownProduct => {
            let products = world.catalogue.products().join(", ");
            let text = format!("the path has the name of no payment product; there are {products}");
            Err(Fault::request(Reason::ProductUnknown, text).into())
        }
        Lookup::Unknown => Err(Refusal::new(Reason::OperationUnknown)),
    }
}
