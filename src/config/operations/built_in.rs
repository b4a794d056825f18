//! An operation of the interface, with the keys that a deployment may change.

use super::entry::{EntryOrigin, OperationEntry};
use super::keys::{name_or_group, read_answer, read_deprecated, refuse_fixed_keys, report};
use crate::config::section::Section;
use crate::config::value::Value;
use crate::interface::operations::{AnsweredBy, Operation};

/// Reads an entry that has the name of a built-in operation.
pub(super) fn read_built_in(section: &mut Section<'_>, operation: Operation) -> OperationEntry {
    let place = section.place_of("name");
    let path = section.optional("path");
    let template = path.as_ref().and_then(Value::as_str);
    let group = section
        .optional("group")
        .and_then(|value| name_or_group(&value));
    let answered_by = section
        .optional("answered_by")
        .and_then(|value| value.one_of(AnsweredBy::NAMES));
    let deprecated = read_deprecated(section, operation.deprecated.as_ref());
    let answer = read_answer(section);
    for key in [
        "method",
        "role",
        "sca",
        "query",
        "body",
        "schema",
        "quota",
        "transactions",
        "environments",
        "about",
    ] {
        if section.has(key) {
            section.fault(
                key,
                format!(
                    "{} is an operation of the interface: only its path, group, answered_by, deprecated and answer can be changed",
                    operation.name
                ),
            );
        }
    }
    refuse_fixed_keys(section);
    let origin = if template.is_some() {
        EntryOrigin::BuiltInMoved
    } else {
        EntryOrigin::BuiltIn
    };
    let own = operation.clone();
    let operation = match template {
        Some(path) => operation.at(path),
        None => operation,
    };
    let operation = Operation {
        group: group.map_or(operation.group, str::to_owned),
        answered_by: answered_by.unwrap_or(operation.answered_by),
        deprecated,
        answer,
        ..operation
    };
    // One fault for an id that is missing, which says which.
    let mut faults = operation.lost_at(&own);
    let others = operation.uncarried().into_iter();
    let is_known = !faults.is_empty();
    faults.extend(others.filter(|fault| !is_known || fault.key != "path"));
    let place = path.map_or(place, |path| path.place().clone());
    // The rest of the file is judged by the interface's own operation then.
    let is_faulty = report(section, faults);
    OperationEntry {
        origin,
        place,
        operation: if is_faulty { own } else { operation },
    }
}
