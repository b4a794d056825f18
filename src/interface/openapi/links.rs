//! Links in answers.

use super::components::Components;
use crate::payload::describe::reference;
use serde_json::{Value, json};

/// §Link and links map.
pub(super) fn links(components: &mut Components<'_>) -> Value {
    components.schema("Link", || {
        json!({
            "type": "object",
            "required": ["href", "verbs"],
            "properties": {
                "href": { "type": "string", "description": "The address of the linked operation." },
                "verbs": { "type": "array", "items": { "type": "string", "enum": ["GET", "PUT", "POST", "DELETE"] } },
            },
        })
    });
    components.schema("Links", || {
        json!({
            "type": "object",
            "description": "Links by their names, such as scaRedirect, self, startAuthorisation and status.",
            "additionalProperties": reference("Link"),
        })
    })
}
