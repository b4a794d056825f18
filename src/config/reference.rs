//! The reference of all keys: config/gateway.yaml, whose commented-out keys show the defaults (a test compares them with the program).

use std::collections::BTreeMap;

/// The file. `system: portvakt` with a `#` before it shows a default; prose has a space after its `#`.
pub(super) const REFERENCE: &str = include_str!("../../config/gateway.yaml");

/// The text with every key that is commented out.
pub(super) fn uncommented(text: &str) -> String {
    let uncomment = |line: &str| {
        let rest = line.trim_start();
        let indent = " ".repeat(line.len().saturating_sub(rest.len()));
        match rest.strip_prefix('#').filter(|key| is_key(key)) {
            Some(key) => format!("{indent}{key}\n"),
            None => format!("{line}\n"),
        }
    };
    text.lines().map(uncomment).collect()
}

/// `key: value`, `- key: value`, or a line below such an item, two columns further in.
pub(super) fn is_key(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase() || c == '-') || text.starts_with("  ")
}

/// The prose before each key, by the path of the key: `listener.address`.
pub(super) fn descriptions() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let (mut section, mut prose) = (String::new(), String::new());
    for line in REFERENCE.lines() {
        let rest = line.trim_start();
        let is_inner = rest.len() < line.len();
        if let Some(text) = rest.strip_prefix("# ") {
            prose = format!("{prose} {text}").trim_start().to_owned();
            continue;
        }
        let key = rest.trim_start_matches('#').split_once(':');
        if let Some((key, _)) = key.filter(|(key, _)| is_key(key)) {
            let path = if is_inner {
                format!("{section}.{key}")
            } else {
                section = key.to_owned();
                key.to_owned()
            };
            if !prose.is_empty() {
                found.insert(path, prose.clone());
            }
        }
        prose.clear();
    }
    found
}
