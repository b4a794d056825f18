//! The configuration in effect as YAML: the operator's file, with the defaults of all keys that it leaves out.
//!
//! Invariants: the text reads as the same configuration, from the same folder; it holds no secret, because the file holds none: secrets are
//! in files of their own. The defaults are those of the reference, and those that depend on other keys are made here.

use super::amount::show_duration;
use super::document::Document;
use super::fault::{ConfigFault, ConfigFaults, FilePosition};
use super::named_file::{NamedFile, hash};
use super::reference::{REFERENCE, uncommented};
use super::settings::{Settings, Shown};
use super::state_folder;
use super::tree::{Content, Node};
use super::value::is_whole;
use crate::{hex, interface::operations::Environment};
use serde_yaml::{Mapping, Value};
use sha2::{Digest, Sha256};
use std::path::Path;

/// Writes the configuration of a document, whose settings and files these are.
pub(super) fn shown(
    own: &Document,
    settings: &Settings,
    files: &[NamedFile],
    base: &Path,
) -> Result<Shown, ConfigFaults> {
    let text = text(own, settings, base)?;
    Ok(Shown {
        hash: hex::encode(&Sha256::digest(&text)),
        files_hash: hash(files),
        text,
    })
}

/// Reads a configuration and writes it with its defaults.
///
/// # Errors
/// The faults of the configuration.
pub fn show(path: &Path) -> Result<String, ConfigFaults> {
    let settings = Settings::load(path)?;
    let shown = settings.reloadable.files.shown;
    Ok(shown.map(|shown| shown.text).unwrap_or_default())
}

fn text(own: &Document, settings: &Settings, base: &Path) -> Result<String, ConfigFaults> {
    let (all, plain) = (uncommented(REFERENCE), REFERENCE);
    let (all, plain) = (Document::read("", &all)?, Document::read("", plain)?);
    let merged = merged(Some(own.node()), all.node(), Some(plain.node()));
    let mut merged = merged.unwrap_or(Value::Null);
    show_groups(&mut merged, own.node(), [all.node(), plain.node()]);
    depend(&mut merged, own.node(), settings.fixed.environment, base);
    set_times(&mut merged, settings);
    serde_yaml::to_string(&merged).map_err(|error| {
        let place = FilePosition::start_of("");
        let text = error.to_string();
        ConfigFault { place, text }.into()
    })
}

/// The operator's value with the defaults below it, or the default; `None` without either. `plain` is the reference without its
/// commented-out keys: a key that it has is an example and no default.
fn merged(own: Option<&Node>, all: &Node, plain: Option<&Node>) -> Option<Value> {
    let keys = entries(all);
    let is_section =
        own.is_none_or(|own| matches!(own.content, Content::Null | Content::Mapping(_)));
    if keys.is_empty() || !is_section {
        return match own {
            Some(own) => Some(value_of(own)),
            None => plain.is_none().then(|| value_of(all)),
        };
    }
    let mut section = Mapping::new();
    for (key, all) in &keys {
        let own = own.and_then(|own| find(own, key));
        let plain = plain.and_then(|plain| find(plain, key));
        if let Some(value) = merged(own, all, plain) {
            section.insert(Value::from(*key), value);
        }
    }
    for (key, value) in own.map(entries).unwrap_or_default() {
        if !keys.iter().any(|(known, _)| *known == key) {
            section.insert(Value::from(key), value_of(value));
        }
    }
    (own.is_some() || !section.is_empty()).then(|| Value::Mapping(section))
}

/// The defaults that depend on other keys.
fn depend(shown: &mut Value, own: &Node, environment: Environment, base: &Path) {
    let folder = state_folder::default(base, environment);
    let written = |section: &str, key: &str| {
        let value = find(own, section).and_then(|node| find(node, key))?;
        Some(value_of(value).as_str().unwrap_or_default().to_owned())
    };
    let mut set = |section: &str, key: &str, default: String| match written(section, key) {
        Some(written) => written,
        None => {
            let section = shown.get_mut(section).and_then(Value::as_mapping_mut);
            if let Some(section) = section {
                section.insert(Value::from(key), Value::from(default.as_str()));
            }
            default
        }
    };
    let below = |name: &str| format!("{folder}/{name}");
    let file = set("state", "file", below(state_folder::FILE));
    set("state", "hash_key", below(state_folder::HASH_KEY));
    let keys = set("sca", "token_keys", below(state_folder::TOKEN_KEYS));
    set("sca", "token_seals", format!("{keys}.seals"));
    let copies = Path::new(&file).with_file_name("revocation");
    set("revocation", "copies", copies.display().to_string());
    let audit = Path::new(&file).with_file_name("audit");
    set("audit", "folder", audit.display().to_string());
    if environment == Environment::Production {
        set("audit", "write", "on".to_owned());
        set("revocation", "unreachable", "closed".to_owned());
    }
    // Groups take the place of the one upstream.
    if find(own, "upstreams").is_some()
        && let Some(root) = shown.as_mapping_mut()
    {
        root.remove("upstream");
    }
    // A control listener on a socket has no address.
    if written("control", "socket").is_some()
        && let Some(control) = shown.get_mut("control").and_then(Value::as_mapping_mut)
    {
        control.remove("address");
    }
}

/// The groups of `upstreams`, each with the defaults of `upstream` in the reference.
fn show_groups(shown: &mut Value, own: &Node, [all, plain]: [&Node; 2]) {
    let Some((own, all)) = find(own, "upstreams").zip(find(all, "upstream")) else {
        return;
    };
    let groups = entries(own).into_iter().filter_map(|(name, group)| {
        let group = merged(Some(group), all, find(plain, "upstream"))?;
        Some((Value::from(name), group))
    });
    if let Some(root) = shown.as_mapping_mut() {
        root.insert("upstreams".into(), Value::Mapping(groups.collect()));
    }
}

/// The times whose defaults depend on several other keys.
fn set_times(shown: &mut Value, settings: &Settings) {
    let (fixed, upstreams) = (&settings.fixed, &settings.reloadable.upstreams);
    let finish = fixed.shutdown.finish(&fixed.listener, upstreams.longest());
    let mut set = |path: &[&str], key: &str, time| {
        let place = path
            .iter()
            .try_fold(&mut *shown, |place, key| place.get_mut(*key));
        if let Some(place) = place.and_then(Value::as_mapping_mut) {
            place.insert(key.into(), show_duration(time).into());
        }
    };
    set(&["shutdown"], "finish", finish);
    for group in upstreams.groups() {
        for path in [&["upstream"][..], &["upstreams", &group.name]] {
            set(path, "timeout", group.timeout);
        }
    }
}

fn entries(node: &Node) -> Vec<(&str, &Node)> {
    let Content::Mapping(entries) = &node.content else {
        return Vec::new();
    };
    let named = entries.iter();
    named
        .filter_map(|entry| Some((entry.name()?, &entry.value)))
        .collect()
}

fn find<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    let found = entries(node).into_iter().find(|(name, _)| *name == key);
    found.map(|(_, value)| value)
}

fn value_of(node: &Node) -> Value {
    match &node.content {
        Content::Null => Value::Null,
        Content::Typed(text) if text == "true" || text == "false" => Value::Bool(text == "true"),
        Content::Typed(text) | Content::Text(text) => match text.parse::<i64>() {
            Ok(number) if is_whole(node) => Value::from(number),
            _ => Value::from(text.as_str()),
        },
        Content::List(items) => Value::Sequence(items.iter().map(value_of).collect()),
        Content::Mapping(_) => {
            let pairs = entries(node).into_iter();
            Value::Mapping(
                pairs
                    .map(|(key, value)| (Value::from(key), value_of(value)))
                    .collect(),
            )
        }
    }
}
