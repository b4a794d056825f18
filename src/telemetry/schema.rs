//! Compares the members of lines with their table in docs/logs.md.

use serde_json::Value;
use std::collections::BTreeSet;

/// The lines have the members of the table below this heading, with their types, and each member stands in a line, except `rare` ones.
pub(crate) fn check(document: &str, heading: &str, lines: &[Value], rare: &[&str]) {
    let marker = format!("\n## {heading}\n");
    let (_, section) = document.split_once(&marker).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows: Vec<(&str, &str)> = rows
        .map(|row| {
            let (name, rest) = row.split_once("` | ").unwrap();
            (name, rest.split(" | ").next().unwrap())
        })
        .collect();
    let mut seen = BTreeSet::new();
    for line in lines {
        for (name, value) in line.as_object().unwrap() {
            let row = rows.iter().find(|(known, _)| known == name);
            let (_, types) = row.unwrap_or_else(|| panic!("{heading}: {name} is not documented"));
            let own = match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "list",
                Value::Object(_) => "object",
            };
            let allowed: Vec<_> = types.split(" or ").collect();
            assert!(allowed.contains(&own), "{heading}: {name} is {own}");
            seen.insert(name.as_str());
        }
    }
    for (name, _) in rows {
        let is_known = seen.contains(name) || rare.contains(&name);
        assert!(is_known, "{heading}: no line has {name}");
    }
}
