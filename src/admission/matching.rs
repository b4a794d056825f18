//! The operation of a path and a method (HTTP-1 to HTTP-3, HTTP-10).

use super::{Head, Snapshot};
use crate::interface::{
    Fault, Reason, Refusal,
    operations::{Catalogue, Lookup, Operation},
    path::Target,
};
use std::{borrow::Cow, sync::Arc};

/// The operation, the target, and the decoded ids in the path.
pub(super) type Matched<'a> = (Arc<Operation>, (Target<'a>, Vec<Cow<'a, str>>));

pub(super) fn find<'a>(head: &Head<'a>, snapshot: &Snapshot) -> Result<Matched<'a>, Refusal> {
    // HTTP-7 comes first: nothing may be read from a request that two servers could interpret differently.
    if let Some(fault) = head.ambiguity() {
        return Err(fault.into());
    }
    let malformed = |text: &str| Fault::request(Reason::MalformedRequest, text);
    let target = Target::parse(head.target).map_err(|fault| malformed(&fault.to_string()))?;
    match snapshot.catalogue.find(head.method, &target) {
        Lookup::Found(operation) => {
            let ids = operation.ids(&target, &snapshot.policy.account_ids);
            let ids = ids.map_err(|fault| {
                let refusal = Refusal::from(malformed(&fault.to_string()));
                match fault.for_operator() {
                    Some(text) => refusal.for_operator(text),
                    None => refusal,
                }
            })?;
            Ok((Arc::clone(operation), (target, ids)))
        }
        Lookup::OtherMethods(allow) => {
            let text = other_methods(head.method.as_str(), &allow);
            let fault = Fault::request(Reason::MethodNotAllowed, text);
            Err(Refusal::from(fault).allowing(allow))
        }
        Lookup::UnknownProduct => {
            let products = snapshot.catalogue.products().join(", ");
            let text = format!("the path has the name of no payment product; there are {products}");
            Err(Fault::request(Reason::ProductUnknown, text).into())
        }
        // Its text is written with the answer ([`unknown_path`]): most of these requests are no TPP's, and a description of the interface
        // is found by them too.
        Lookup::Unknown => Err(Refusal::new(Reason::OperationUnknown)),
    }
}

/// The refusal of a path that is no operation, with the path of the interface that is nearest to it (HTTP-1, ERR-10).
pub fn unknown_path(target: &[u8], catalogue: &Catalogue) -> Refusal {
    let nearest = Target::parse(target).ok();
    let nearest = nearest.and_then(|target| catalogue.nearest(&target));
    let text = match nearest {
        Some(operation) => format!(
            "the path is that of no operation; the nearest that is one is {}",
            operation.path
        ),
        None => "the path is that of no operation, nor near to one".to_owned(),
    };
    Fault::request(Reason::OperationUnknown, text).into()
}

/// HTTP-2: the methods of the path.
fn other_methods(method: &str, allow: &str) -> String {
    let mut known = allow.split(", ");
    match known.find(|known| known.eq_ignore_ascii_case(method)) {
        Some(known) => format!("a method stands in capitals: write {known}"),
        None => format!("the path has another method than that of the request: it has {allow}"),
    }
}
