//! The operator's catalogue file (HTTP-11): paths that differ from the defaults, operations that the interface does not have, and payment
//! products.
//!
//! An entry with the name of a built-in operation changes it; any other name adds one. Invariant: an added operation requires the
//! headers and the signature that every operation requires (HDR-5, SIG-1), and no key takes them away. Deliberately not here: the
//! form of a path, and collisions of operations; [`Catalogue::new`] finds those, and this module finds their line.

// Entries of the file: changed built-in operations, and added operations.
mod added;
mod built_in;
mod entry;

// Payment products.
mod products;

// Values of their keys.
mod keys;
mod parameters;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use self::added::read_added;
use self::built_in::read_built_in;
use self::entry::{OperationEntry, Origin};
use self::keys::name_or_group;
use self::products::{own_operations, read_products};
use super::document::Document;
use super::fault::{FilePosition, Inspection};
use super::pem;
use super::section::Section;
use super::value::Value;
use crate::interface::operations::{
    self, Catalogue, Environment, Environments, Operation, PAYMENT_PRODUCTS,
};

/// Reserved for the sandbox's own operations (HTTP-1).
const SANDBOX_PATHS: &str = "/v1/sandbox";

/// Reads the key `operations`: the catalogue of the interface, with the changes of the operator's file, and that file's path.
pub(super) fn read_catalogue(
    root: &mut Section<'_>,
    environment: Environment,
    inspection: &Inspection,
    base: &Path,
) -> (Option<PathBuf>, Option<Catalogue>) {
    let Some(value) = root.optional("operations") else {
        let catalogue = Catalogue::new(environment, operations::builtin());
        // Unreachable: a test shows that no two built-in operations collide.
        let catalogue = catalogue.map_err(|faults| {
            faults
                .into_iter()
                .for_each(|fault| root.fault("operations", fault.text));
        });
        return (None, catalogue.ok());
    };
    let path = value.path(base);
    let catalogue = path.as_ref().and_then(|path| {
        let text = pem::read_text(path)
            .map_err(|text| value.fault(text))
            .ok()?;
        read(&path.display().to_string(), &text, environment, inspection)
    });
    (path, catalogue)
}

/// Reads a catalogue file: `file` is its name in faults, `text` its content. Returns `None` after a fault.
fn read(
    file: &str,
    text: &str,
    environment: Environment,
    inspection: &Inspection,
) -> Option<Catalogue> {
    let document = Document::read(file, text)
        .map_err(|faults| inspection.absorb(faults))
        .ok()?;
    let mut root = document.root(inspection);
    let values = root.list("operations");
    let products = read_products(&mut root);
    root.finish();
    let mut untouched = operations::builtin();
    let mut entries = read_entries(&values?, &mut untouched);
    entries.sort_by_key(|entry| entry.origin);
    let names: Vec<_> = products.iter().map(|(product, _)| &*product.name).collect();
    for entry in &entries {
        check_environment(entry, inspection);
        check_overlap(entry, &entries, &untouched, &names, inspection);
    }
    let mut places: Vec<_> = entries.iter().map(|entry| entry.place.clone()).collect();
    let first = untouched.len();
    untouched.extend(entries.into_iter().map(|entry| entry.operation));
    for (operation, place) in own_operations(&products, &untouched, inspection) {
        untouched.push(operation);
        places.push(place);
    }
    Catalogue::with_products(environment, untouched, &names)
        .map_err(|faults| {
            for fault in faults {
                let place = fault
                    .index
                    .checked_sub(first)
                    .and_then(|index| places.get(index));
                inspection.report(
                    place
                        .cloned()
                        .unwrap_or_else(|| FilePosition::start_of(file)),
                    fault.text,
                );
            }
        })
        .ok()
}

/// Refuses an operation that would add a path of the sandbox to production (HTTP-1).
fn check_environment(entry: &OperationEntry, inspection: &Inspection) {
    let operation = &entry.operation;
    let below = operation.path.strip_prefix(SANDBOX_PATHS);
    if below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        && operation.environments == Environments::Both
    {
        inspection.report(
            entry.place.clone(),
            format!(
                "{} exists in production, where paths below {SANDBOX_PATHS} are not allowed (HTTP-1)",
                operation.name
            ),
        );
    }
}

/// Refuses an added operation that would take requests of one of the interface, or some that only that one refuses: its role and its
/// checks may be weaker (CRT-5). The same path is left to the catalogue.
fn check_overlap(
    entry: &OperationEntry,
    entries: &[OperationEntry],
    untouched: &[Operation],
    products: &[&str],
    inspection: &Inspection,
) {
    if entry.origin != Origin::Added {
        return;
    }
    let own = &entry.operation;
    let products = [&PAYMENT_PRODUCTS, products].concat();
    let changed = entries.iter().filter(|other| other.origin != Origin::Added);
    let changed = changed.map(|other| &other.operation);
    let mut built_in = untouched.iter().chain(changed);
    let other = built_in.find(|other| other.path != own.path && other.overlaps(own, &products));
    if let Some(other) = other {
        inspection.report(
            entry.place.clone(),
            format!(
                "{} {} overlaps with {}, {}, an operation of the interface: choose a path that no request of that one can have",
                own.method, own.path, other.name, other.path
            ),
        );
    }
}

/// Reads the valid entries of the file. Removes each built-in operation that an entry changes from `untouched`.
fn read_entries(values: &[Value<'_>], untouched: &mut Vec<Operation>) -> Vec<OperationEntry> {
    let mut names = HashSet::new();
    let mut entries = Vec::new();
    for value in values {
        let mut section = value.as_section();
        let name = section.required("name");
        let text = name.as_ref().and_then(name_or_group);
        if let (Some(name), Some(text)) = (&name, text)
            && !names.insert(text)
        {
            name.fault("the file already contains an operation of this name");
            continue;
        }
        let built_in = untouched
            .iter()
            .position(|operation| Some(operation.name.as_str()) == text);
        let entry = match built_in {
            Some(at) => Some(read_built_in(&mut section, untouched.remove(at))),
            None => read_added(&mut section, text),
        };
        section.finish();
        entries.extend(entry);
    }
    entries
}
