//! Query parameters (QRY-1 to QRY-4). Parameters that are not listed are forwarded unchanged.

use crate::{
    operations::{Operation, Parameter, ParameterKind},
    payload::describe::day,
    query::BOOKING_STATUSES,
};
use serde_json::{Value, json};

pub(super) fn parameters(operation: &Operation) -> impl Iterator<Item = Value> {
    operation.query.iter().map(describe)
}

fn describe(parameter: &Parameter) -> Value {
    let (schema, text) = schema(parameter.kind);
    json!({
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": text,
        "schema": schema,
    })
}

fn schema(kind: ParameterKind) -> (Value, &'static str) {
    let number = |least: i32| json!({ "type": "integer", "format": "int32", "minimum": least, "maximum": i32::MAX });
    match kind {
        ParameterKind::Date => (day(), "A day."),
        ParameterKind::DateFrom => (
            day(),
            "The first day of the period; not after its last one.",
        ),
        ParameterKind::DateTo => (day(), "The last day of the period."),
        ParameterKind::Offset => (number(0), "How many entries are skipped."),
        ParameterKind::Limit => (number(1), "How many entries are returned at most."),
        ParameterKind::Boolean => (json!({ "type": "boolean" }), "true or false."),
        ParameterKind::BookingStatus => (
            json!({ "type": "string", "enum": BOOKING_STATUSES }),
            "Which transactions are wanted.",
        ),
        ParameterKind::Text => (json!({ "type": "string" }), "Any text."),
    }
}
