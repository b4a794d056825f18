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
#[cfg(test)]
mod weakened;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use self::added::read_added;
use self::built_in::read_built_in;
use self::entry::{EntryOrigin, OperationEntry};
use self::keys::name_or_group;
use self::products::{own_operations, read_products};
use super::document::Document;
use super::fault::{FilePosition, nearest};
use super::inspection::Inspection;
use super::pem;
use super::section::Section;
use super::value::Value;
use crate::interface::operations::{
    self, Catalogue, Environment, Environments, Operation, PAYMENT_PRODUCTS, PathId, Role,
    cross_border,
};

/// Reserved for the sandbox's own operations (HTTP-1).
const SANDBOX_PATHS: &str = "/v1/sandbox";

/// The interface's own paths of payments and of baskets.
const PAYMENT_PATHS: [&str; 2] = ["/v1/payments", "/v1/signing-baskets"];

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
        warn_of_place(entry, inspection);
        if entry.origin == EntryOrigin::Added {
            check_role(entry, &names, inspection);
        }
    }
    let mut places: Vec<_> = entries.iter().map(|entry| entry.place.clone()).collect();
    let first = untouched.len();
    untouched.extend(entries.into_iter().map(|entry| entry.operation));
    for (operation, place) in own_operations(&products, &untouched, inspection) {
        untouched.push(operation);
        places.push(place);
    }
    for (general, operation) in cross_border(&untouched) {
        let place = general.checked_sub(first).and_then(|at| places.get(at));
        places.push(
            place
                .cloned()
                .unwrap_or_else(|| FilePosition::start_of(file)),
        );
        untouched.push(operation);
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
    if is_below(&operation.path, SANDBOX_PATHS) && operation.environments == Environments::Both {
        inspection.report(
            entry.place.clone(),
            format!(
                "{} exists in production, where paths below {SANDBOX_PATHS} are not allowed (HTTP-1)",
                operation.name
            ),
        );
    }
}

/// Whether a path is this one, or begins with its segments.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Warns of an operation at a path, in whatever letters, that the interface has for another one: its callers get this one there.
fn warn_of_place(entry: &OperationEntry, inspection: &Inspection) {
    let own = &entry.operation;
    let all = operations::builtin();
    let taken = all.iter().find(|other| {
        other.name != own.name && other.method == own.method && has_form_of(&own.path, &other.path)
    });
    if let Some(other) = taken {
        inspection.warn(
            entry.place.clone(),
            format!(
                "the interface has {} here, {} {}: callers of that get {}, with its role, sca and quota",
                other.name, other.method, other.path, own.name
            ),
        );
    }
}

/// Whether two paths differ in nothing but the names of their parameters and the case of letters.
fn has_form_of(path: &str, other: &str) -> bool {
    let form = |path: &str| {
        let segments = path
            .split('/')
            .map(|segment| match segment.starts_with('{') {
                true => "{}".to_owned(),
                false => segment.to_ascii_lowercase(),
            });
        segments.collect::<Vec<_>>()
    };
    form(path) == form(other)
}

/// CRT-5: an operation about payments and baskets needs the role of payments, whatever its file calls it.
fn check_role(entry: &OperationEntry, products: &[&str], inspection: &Inspection) {
    let own = &entry.operation;
    let ids = own.path_ids.iter();
    let mut segments = own.path.split('/');
    let is_about = ids
        .copied()
        .any(|id| matches!(id, PathId::Product | PathId::Payment | PathId::Basket))
        || segments
            .any(|segment| PAYMENT_PRODUCTS.contains(&segment) || products.contains(&segment))
        || PAYMENT_PATHS.iter().any(|path| is_below(&own.path, path));
    if is_about && own.role != Role::PaymentInitiation {
        inspection.report(
            entry.place.clone(),
            format!(
                "{} is about payments or baskets by its path, so its role is PSP_PI (CRT-5)",
                own.name
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
    if entry.origin != EntryOrigin::Added {
        return;
    }
    let own = &entry.operation;
    let products = [&PAYMENT_PRODUCTS, products].concat();
    let changed = entries
        .iter()
        .filter(|other| other.origin != EntryOrigin::Added);
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

/// An entry with a path alone moves an operation of the interface: says which one may be meant.
fn suggest(name: &Value<'_>, text: &str) {
    let all = operations::builtin();
    if let Some(meant) = nearest(text, all.iter().map(|one| one.name.as_str())) {
        name.fault(format!(
            "the interface has no operation of this name; did you mean \"{meant}\"? An operation of the bank's own needs method and role"
        ));
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
            None => {
                let is_move = !section.has("method") && !section.has("role");
                if let (Some(name), Some(text), true) = (&name, text, is_move) {
                    suggest(name, text);
                }
                read_added(&mut section, text)
            }
        };
        section.finish();
        entries.extend(entry);
    }
    entries
}
