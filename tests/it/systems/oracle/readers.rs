//! Other readers: programs that answer lines, and readers within this process.

use super::{
    Kind,
    admitted::{Input, names, paths},
};
use crate::harness::ended;
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

/// The values that a reader found, by name. `fault` is the reason of a refusal.
pub(super) type Reading = BTreeMap<String, Vec<String>>;

/// A program that reads lines.
pub(super) struct Reader(Command);

impl Reader {
    pub(super) fn all() -> [Self; 4] {
        [Self::python(), Self::node(), Self::java(), Self::go()]
    }

    fn python() -> Self {
        Self::new(Command::new("python3"), Some("reader.py"))
    }

    pub(super) fn node() -> Self {
        Self::new(Command::new("node"), Some("reader.js"))
    }

    fn java() -> Self {
        let classes = built("java");
        let jars = [
            "jackson-databind",
            "jackson-core",
            "jackson-annotations",
            "gson",
        ];
        let jars = jars
            .map(|jar| format!("/usr/share/java/{jar}.jar"))
            .join(":");
        succeeds(
            Command::new("javac")
                .arg("-d")
                .arg(&classes)
                .args(["-cp", &jars])
                .arg(source("Reader.java")),
        );
        let mut java = Command::new("java");
        java.args(["-cp", &format!("{jars}:{}", classes.display()), "Reader"]);
        Self::new(java, None)
    }

    fn go() -> Self {
        let folder = built("go");
        let program = folder.join("reader");
        succeeds(
            Command::new("go")
                .env("GO111MODULE", "off")
                .env("GOCACHE", folder.join("cache"))
                .args(["build", "-o"])
                .arg(&program)
                .arg(source("reader.go")),
        );
        Self::new(Command::new(program), None)
    }

    fn new(mut program: Command, script: Option<&str>) -> Self {
        program.args(script.map(source));
        program.args([paths().join(","), names().join(",")]);
        Self(program)
    }

    /// The answers of the program to each line, by reader.
    pub(super) fn ask(mut self, lines: &[String]) -> Vec<Vec<(String, Reading)>> {
        let what = format!("{:?}", self.0);
        let mut child = self
            .0
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|fault| panic!("{what}: {fault}"));
        let mut input = child.stdin.take().unwrap();
        let text = lines.join("\n") + "\n";
        let writing = thread::spawn(move || input.write_all(text.as_bytes()));
        let output = BufReader::new(child.stdout.take().unwrap());
        let answers: Vec<_> = output
            .lines()
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect();
        writing.join().unwrap().unwrap();
        assert!(ended(&mut child).success(), "{what}");
        assert_eq!(answers.len(), lines.len(), "{what}");
        answers
    }
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/systems/oracle")
        .join(name)
}

/// A folder for what is built.
fn built(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("oracle")
        .join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn succeeds(command: &mut Command) {
    let status = command.status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{command:?} failed: .ci/needs.sh systems installs what it needs"
    );
}

/// serde_json's readings: a map, and a struct as a core in Rust has it.
pub(super) fn in_process(inputs: &[Input]) -> Vec<Vec<(String, Reading)>> {
    let read = inputs.iter().map(|input| match input.kind {
        Kind::Body => vec![
            ("serde_json, a map".to_owned(), map(&input.raw)),
            ("serde_json, a struct".to_owned(), of_struct(&input.raw)),
        ],
        _ => Vec::new(),
    });
    read.collect()
}

fn refusal(fault: &serde_json::Error) -> Reading {
    Reading::from([("fault".to_owned(), vec![fault.to_string()])])
}

fn map(raw: &[u8]) -> Reading {
    let value: Value = match serde_json::from_slice(raw) {
        Ok(value) => value,
        Err(fault) => return refusal(&fault),
    };
    let strings = |path: &str| match value.pointer(&format!("/{}", path.replace('.', "/")))? {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(values) if path == "paymentIds" => {
            let texts = values.iter().filter_map(Value::as_str);
            Some(texts.map(str::to_owned).collect())
        }
        _ => None,
    };
    paths()
        .into_iter()
        .filter_map(|path| Some((path.to_owned(), strings(path)?)))
        .collect()
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Payment {
    instructed_amount: BTreeMap<String, Value>,
    creditor_name: Value,
    creditor_account: BTreeMap<String, Value>,
    debtor_account: BTreeMap<String, Value>,
}

/// The members that determine a transfer of money.
fn of_struct(raw: &[u8]) -> Reading {
    let read: Payment = match serde_json::from_slice(raw) {
        Ok(read) => read,
        Err(fault) => return refusal(&fault),
    };
    let mut found = map(raw);
    let objects = [
        ("instructedAmount", read.instructed_amount),
        ("creditorAccount", read.creditor_account),
        ("debtorAccount", read.debtor_account),
    ];
    for (name, members) in objects {
        found.retain(|path, _| !path.starts_with(&format!("{name}.")));
        for (member, value) in members {
            let text = value.as_str().map(|text| vec![text.to_owned()]);
            found.extend(text.map(|text| (format!("{name}.{member}"), text)));
        }
    }
    found.remove("creditorName");
    let name = read
        .creditor_name
        .as_str()
        .map(|text| vec![text.to_owned()]);
    found.extend(name.map(|name| ("creditorName".to_owned(), name)));
    found
}
