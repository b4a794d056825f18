//! The commands of docs/operations.md, "The first production gateway", as they stand there.

use crate::harness::free_address;
use std::{
    fs,
    path::Path,
    process::{Command, Output},
};
use tempfile::TempDir;

/// The folders and ports of the page, which a test replaces by its own.
const FOLDERS: [(&str, &str); 2] = [("/etc/portvakt", "etc"), ("/var/lib/portvakt", "lib")];
const PORTS: [&str; 3] = ["8443", "9100", "8080"];

/// The page, in a folder with a copy of config/production.yaml.
pub(crate) struct Page {
    pub(crate) folder: TempDir,
    replaced: Vec<(String, String)>,
}

impl Page {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let own = |(name, own): (&str, &str)| {
            let own = folder.path().join(own).to_str().unwrap().to_owned();
            (name.to_owned(), own)
        };
        let port = |name: &str| {
            // No port may look like another one's name.
            let mut ports = std::iter::repeat_with(|| free_address().port().to_string());
            let port = ports.find(|port| !PORTS.iter().any(|name| port.contains(name)));
            (name.to_owned(), port.unwrap())
        };
        let replaced = FOLDERS
            .into_iter()
            .map(own)
            .chain(PORTS.into_iter().map(port))
            .collect();
        let page = Self { folder, replaced };
        fs::create_dir(page.folder.path().join("config")).unwrap();
        let example = page.replace(&read("config/production.yaml"));
        fs::write(page.folder.path().join("config/production.yaml"), example).unwrap();
        page
    }

    fn replace(&self, text: &str) -> String {
        let replace = |text: String, (name, own): &(String, String)| text.replace(name, own);
        self.replaced.iter().fold(text.to_owned(), replace)
    }

    /// Runs the commands of the page up to the step before `end`, in one shell. Programs that still run are ended.
    pub(crate) fn run(&self, end: &str) -> Output {
        let text = read("docs/operations.md");
        let (_, text) = text
            .split_once("## The first production gateway\n")
            .unwrap();
        let (text, _) = text.split_once(end).unwrap();
        let blocks: Vec<_> = text
            .split("```sh\n")
            .skip(1)
            .map(|rest| rest.split("```").next().unwrap())
            .collect();
        let script = format!(
            "set -eu\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n{}",
            blocks.concat()
        );
        let program = Path::new(env!("CARGO_BIN_EXE_portvakt")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        Command::new("bash")
            .args(["-c", &self.replace(&script)])
            .env("PATH", path)
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }
}

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// config/production.yaml, with the files that the page makes, starts without a warning but of the trial CA.
#[test]
fn the_example_of_production_is_good_but_for_the_trial() {
    let page = Page::new();
    let done = page.run("**5. The core.**");
    let [out, errors] = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(done.status.success(), "{out}{errors}");
    assert!(
        out.contains("no fault") && out.contains("gateway.yaml: good"),
        "{out}"
    );
    let said: Vec<_> = errors
        .lines()
        .filter(|line| line.contains("gateway.yaml:"))
        .collect();
    assert!(
        matches!(said[..], [line] if line.contains("trust.anchors: ") && line.contains("a CA for trials")),
        "{said:?}"
    );
    let sizing = read("docs/sizing.md");
    for line in out
        .lines()
        .filter(|line| line.contains(" MiB of memory: ") || line.starts_with("at most "))
    {
        assert!(sizing.contains(line), "docs/sizing.md has not: {line}");
    }
}
