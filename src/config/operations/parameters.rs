//! The query parameters of an added operation (QRY-4).

use crate::config::section::Section;
use crate::config::value::Value;
use crate::interface::operations::{Parameter, ParameterKind};
use crate::interface::query;

/// The query parameters of an added operation (QRY-4).
pub(super) fn read_parameters(section: &mut Section<'_>) -> Vec<Parameter> {
    let mut all: Vec<Parameter> = Vec::new();
    for value in section.optional_list("query").unwrap_or_default() {
        let mut entry = value.as_section();
        let name = entry
            .required("name")
            .and_then(|name| parameter_name(&name));
        let kind = entry.required("kind");
        let kind = kind.and_then(|kind| kind.one_of(ParameterKind::NAMES));
        let required = entry.optional("required");
        let required = required.and_then(|value| value.boolean()) == Some(true);
        if let Some((name, kind)) = name.zip(kind) {
            if all
                .iter()
                .any(|known| known.name.eq_ignore_ascii_case(name))
            {
                entry.fault(
                    "name",
                    "this list already contains this parameter, perhaps in another letter case",
                );
            } else if kind.is_single() && all.iter().any(|known| known.kind == kind) {
                entry.fault(
                    "kind",
                    format!("another parameter is this operation's {}", kind.name()),
                );
            } else {
                let parameter = Parameter::new(name, kind);
                all.push(Parameter {
                    required,
                    ..parameter
                });
            }
        }
        entry.finish();
    }
    all
}

fn parameter_name<'a>(value: &Value<'a>) -> Option<&'a str> {
    let text = value.as_str()?;
    if query::is_parameter_name(text) {
        return Some(text);
    }
    value.refuse(
        "a name of at most 64 letters, digits, hyphens, underscores and dots, such as dateFrom",
    )
}
