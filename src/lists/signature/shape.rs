//! The shape of a signature: which elements must stand in an element, and that no others do.

use crate::{fault::Refusal, tree::Element};

/// The namespace of XML signatures.
pub(super) const DS: &str = "http://www.w3.org/2000/09/xmldsig#";

/// The elements in an element, which must be these in this order.
///
/// # Errors
/// One is missing, or another is there.
pub(super) fn exactly<'a, const N: usize>(
    parent: Element<'a>,
    names: [(&str, &str); N],
) -> Result<[Element<'a>; N], Refusal> {
    let mut found = Vec::with_capacity(N);
    let mut children = parent.children();
    for (namespace, local) in names {
        match children.next() {
            Some(child) if child.is(namespace, local) => found.push(child),
            Some(other) => {
                return Err(other.refuse(format_args!(
                    "{} where {} has {local}",
                    other.local(),
                    parent.local()
                )));
            }
            None => {
                return Err(parent.refuse(format_args!("no {local} in {}", parent.local())));
            }
        }
    }
    if let Some(other) = children.next() {
        return Err(other.refuse(format_args!(
            "{} in {}, which this profile has not",
            other.local(),
            parent.local()
        )));
    }
    <[Element<'a>; N]>::try_from(found).map_err(|_| parent.refuse("other elements than expected"))
}

/// The only element in an element, if there is one.
///
/// # Errors
/// There is more than one.
pub(super) fn only_child<'a>(parent: Element<'a>) -> Result<Option<Element<'a>>, Refusal> {
    let mut children = parent.children();
    let first = children.next();
    match children.next() {
        None => Ok(first),
        Some(other) => Err(other.refuse(format_args!("a second element in {}", parent.local()))),
    }
}

/// The elements in an element, each of one of these namespaces and at most once.
///
/// # Errors
/// One is of another namespace, or doubled.
pub(super) fn children<'a>(
    parent: Element<'a>,
    namespaces: &[&str],
) -> Result<Vec<Element<'a>>, Refusal> {
    let mut found: Vec<Element<'a>> = Vec::new();
    for child in parent.children() {
        if !namespaces.contains(&child.namespace()) {
            return Err(child.refuse(format_args!("{} of another namespace", child.local())));
        }
        if found.iter().any(|other| other.local() == child.local()) {
            return Err(child.refuse(format_args!("a second {}", child.local())));
        }
        found.push(child);
    }
    Ok(found)
}

/// Checks that no element stands in an element: the methods of this profile have no parameters.
///
/// # Errors
/// One does.
pub(super) fn none_in(parent: Element<'_>) -> Result<(), Refusal> {
    match parent.children().next() {
        None => Ok(()),
        Some(child) => Err(child.refuse(format_args!(
            "{} in {}, which may have no parameters",
            child.local(),
            parent.local()
        ))),
    }
}
