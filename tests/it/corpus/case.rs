//! The cases of tests/edge as data: one file for each class, in groups that share a template.

use serde::{Deserialize, de::DeserializeOwned};
use std::{collections::BTreeMap, fs, path::PathBuf};

/// One case.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The names of group and case: the beginning of each X-Request-ID.
    pub(crate) name: String,
    pub(super) is_http2: bool,
    /// The bytes to send, with placeholders; over HTTP/2, frames.
    pub(super) exchange: Vec<String>,
    pub(super) signs: Signs,
    pub(super) answer: String,
    /// The answer that the gateway gives instead. docs/status.md has a line on each.
    pub(super) differs: Option<String>,
    /// The key of the sentence in rfc.yaml.
    pub(super) rfc: String,
    pub(super) core: Core,
    /// The method that decides whether the first answer has a body.
    pub(super) method: String,
    /// Over HTTP/2: the stream that the answer is for.
    pub(super) stream: u32,
    /// Over HTTP/2: whether preface and SETTINGS come before the exchange.
    pub(super) opens: bool,
}

/// The request whose signed headers `${signed}` stands for.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub(super) enum Signs {
    #[default]
    Get,
    Payment,
}

/// The requests of a case that the core sees.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Core {
    /// As many as were answered with 200.
    #[default]
    Answered,
    /// Any of them: the fault comes after a valid request, which the gateway may have forwarded already.
    Any,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    group: String,
    #[serde(default)]
    signs: Signs,
    #[serde(default)]
    exchange: Vec<String>,
    answer: Option<String>,
    differs: Option<String>,
    rfc: Option<String>,
    #[serde(default)]
    core: Core,
    #[serde(default = "first")]
    stream: u32,
    #[serde(default = "yes")]
    opens: bool,
    cases: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    send: Option<String>,
    exchange: Option<Vec<String>>,
    answer: Option<String>,
    differs: Option<String>,
    rfc: Option<String>,
    core: Option<Core>,
    #[serde(default = "get")]
    method: String,
    stream: Option<u32>,
}

const fn first() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

fn get() -> String {
    "GET".into()
}

/// The cases of tests/edge/http1.
pub(super) fn http1() -> Vec<Case> {
    all("http1")
}

/// The cases of tests/edge/http2.
pub(super) fn http2() -> Vec<Case> {
    all("http2")
}

/// The sentences that cases rest on, by key.
pub(super) fn sentences() -> BTreeMap<String, String> {
    read(folder().join("rfc.yaml"))
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/edge")
}

fn read<T: DeserializeOwned>(path: PathBuf) -> T {
    let text = fs::read_to_string(&path).unwrap();
    serde_yaml::from_str(&text).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}

fn all(folder: &str) -> Vec<Case> {
    let files = fs::read_dir(self::folder().join(folder)).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    let groups = files.into_iter().flat_map(read::<Vec<Group>>);
    groups.flat_map(|group| cases(group, folder)).collect()
}

fn cases(group: Group, folder: &str) -> Vec<Case> {
    let named = |entry: &Entry| format!("{}/{}", group.group, entry.name);
    let stated = |entry: &Entry, own: &Option<String>, shared: &Option<String>, what: &str| {
        let stated = own.clone().or_else(|| shared.clone());
        stated.unwrap_or_else(|| panic!("{}: no {what}", named(entry)))
    };
    let entries = group.cases.iter().map(|entry| {
        let send = entry.send.clone().unwrap_or_default();
        let template = entry.exchange.as_ref().unwrap_or(&group.exchange);
        assert!(!template.is_empty(), "{}: no exchange", named(entry));
        Case {
            name: named(entry),
            is_http2: folder == "http2",
            exchange: template
                .iter()
                .map(|part| part.replace("${case}", &send))
                .collect(),
            signs: group.signs,
            answer: stated(entry, &entry.answer, &group.answer, "answer"),
            differs: entry.differs.clone().or_else(|| group.differs.clone()),
            rfc: stated(entry, &entry.rfc, &group.rfc, "rfc"),
            core: entry.core.unwrap_or(group.core),
            method: entry.method.clone(),
            stream: entry.stream.unwrap_or(group.stream),
            opens: group.opens,
        }
    });
    entries.collect()
}
