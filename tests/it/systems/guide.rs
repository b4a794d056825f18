//! docs/tpp/operations.md: every example is run against a gateway with the simulated bank, in the order of the page, and prints the text
//! that the page shows. An operation of the interface without an example fails.
//!
//! One bash runs all curl examples, and one Python all others, each with a bank of its own. Only addresses differ from the page: those of
//! the gateway and of the bank, and that of the bank's page, since the configuration of tests names another one.
//!
//! Not here: docs/tpp/README.md (`clients`).

use crate::{
    bank::Bank,
    harness::{Gate, missing, world, write_private},
    signers::{found, python_with},
};
use portvakt::interface::operations::builtin;
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};
use tempfile::TempDir;

/// The page, and the folder of the interceptors that it names.
const PAGE: &str = "docs/tpp/operations.md";
const SIGNING: &str = "docs/tpp/signing";

/// The addresses of the page.
const GATEWAY: &str = "https://localhost:8443";
const CORE: &str = "http://127.0.0.1:8080";

/// The line that a script prints behind each block.
const END: &str = "<end of a block>\n";

/// A block of the page, under its heading.
struct Block {
    heading: String,
    kind: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn blocks() -> Vec<Block> {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let (mut blocks, mut heading) = (Vec::new(), String::new());
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(kind)) => {
                open = Some(Block {
                    heading: heading.clone(),
                    kind: kind.to_owned(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text.push_str(&format!("{line}\n")),
            (None, None) if line.starts_with('#') => {
                heading = line.trim_start_matches('#').trim().to_owned();
            }
            (None, None) => {}
        }
    }
    blocks
}

/// The blocks of a language, each with the text that it prints: the text under the same heading, and nothing where there is none.
fn examples(kind: &str) -> Vec<(Block, String)> {
    let (texts, code): (Vec<_>, Vec<_>) =
        blocks().into_iter().partition(|block| block.kind == "text");
    let code = code.into_iter().filter(|block| block.kind == kind);
    code.map(|block| {
        let text = texts.iter().find(|text| text.heading == block.heading);
        let text = text.map_or_else(String::new, |text| text.text.clone());
        (block, text)
    })
    .collect()
}

/// A gateway with its bank, and the folder of `make demo`.
struct Stage {
    gate: Gate,
    bank: Bank,
    folder: TempDir,
}

impl Stage {
    fn start() -> Self {
        let (gate, bank) = Bank::behind_a_gate();
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for made in ["certs", "bin", SIGNING] {
            fs::create_dir_all(at(made)).unwrap();
        }
        let tpp = &world().both.issued;
        fs::write(at("certs/server-ca.pem"), world().tls_ca.pem()).unwrap();
        fs::write(at("certs/tpp-both.pem"), &tpp.pem).unwrap();
        write_private(&at("certs/tpp-both.key"), tpp.key_pem.as_bytes());
        for name in ["tpp_signature.sh", "tpp_signature.py"] {
            let file = Path::new(SIGNING).join(name);
            fs::copy(root().join(&file), folder.path().join(file)).unwrap();
        }
        // approve LINK --identity DIGITS, at the bank's own page.
        let script = format!(
            "#!/bin/sh\nexec '{}' \"$1\" \"http://{}/sca?${{2#*\\?}}\" \"$3\" \"$4\"\n",
            env!("CARGO_BIN_EXE_portvakt-sandbox"),
            bank.address
        );
        let approve = at("bin/portvakt-sandbox");
        fs::write(&approve, script).unwrap();
        fs::set_permissions(&approve, fs::Permissions::from_mode(0o755)).unwrap();
        Self { gate, bank, folder }
    }

    /// Runs all blocks in one process, as one script.
    fn run(&self, program: &mut Command, examples: &[(Block, String)], print_end: &str) -> Output {
        let gateway = format!("https://localhost:{}", self.gate.address().port());
        let core = format!("http://{}", self.bank.address);
        let code = examples.iter().map(|(block, _)| {
            let code = block.text.replace(GATEWAY, &gateway).replace(CORE, &core);
            format!("{code}\n{print_end}\n")
        });
        let script = self.folder.path().join("script");
        fs::write(&script, code.collect::<String>()).unwrap();
        let own = self.folder.path().join("bin");
        let path = std::env::var("PATH").unwrap();
        let program = program.arg(&script).current_dir(self.folder.path());
        program
            .env("PATH", format!("{}:{path}", own.display()))
            .env("PYTHONUTF8", "1")
            .output()
            .unwrap()
    }

    /// The blocks of a language print what the page shows, and reach every operation with success.
    fn follows(&self, program: &mut Command, kind: &str, print_end: &str) {
        let examples = examples(kind);
        let output = self.run(program, &examples, print_end);
        let printed = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let mut printed = printed.split(END);
        for (block, expected) in &examples {
            let found = printed.next().unwrap_or("nothing: the script has ended");
            assert_eq!(
                found, expected,
                "{PAGE}, {kind} under {}:\n{errors}",
                block.heading
            );
        }
        assert!(output.status.success(), "{errors}");
        assert_eq!(errors, "", "{kind}");
        self.gate.metric_at_rest("portvakt_requests_total", &[]);
        let succeeded = |name: &str| {
            let operation = format!("operation=\"{name}\"");
            let labels = [operation.as_str(), "status=\"2xx\""];
            self.gate.metric_now("portvakt_requests_total", &labels) > 0.0
        };
        let operations = builtin().into_iter().map(|operation| operation.name);
        let not_called: Vec<_> = operations.filter(|name| !succeeded(name)).collect();
        assert_eq!(not_called, [""; 0], "{kind}");
    }
}

#[test]
#[ignore = "make test-systems"]
fn every_curl_example_answers_as_the_page_says() {
    for tool in ["bash", "curl", "jq", "openssl"] {
        if found(tool).is_none() {
            return missing(&format!("{PAGE} is not followed: {tool} is missing"));
        }
    }
    let end = format!("echo '{}'", END.trim_end());
    Stage::start().follows(Command::new("bash").arg("-u"), "sh", &end);
}

#[test]
#[ignore = "make test-systems"]
fn every_python_example_answers_as_the_page_says() {
    let packages = ["httpx<1", "cryptography"];
    let Some(mut python) = python_with("guide-python", "httpx, cryptography", &packages) else {
        return missing(&format!(
            "{PAGE} is not followed: Python with httpx and cryptography is missing"
        ));
    };
    let end = format!("print('{}')", END.trim_end());
    Stage::start().follows(&mut python, "python", &end);
}

/// The headings with a method are the catalogue, and each heading with an example has it for both languages, with what it prints.
#[test]
fn the_page_has_every_operation() {
    let blocks = blocks();
    let methods = ["GET ", "POST ", "PUT ", "DELETE "];
    let is_operation = |heading: &&str| methods.iter().any(|method| heading.starts_with(method));
    let headings: BTreeSet<_> = blocks.iter().map(|block| &*block.heading).collect();
    let shown: BTreeSet<_> = headings.iter().copied().filter(is_operation).collect();
    let operations = builtin();
    let named = operations
        .iter()
        .map(|operation| format!("{} {}", operation.method, operation.path));
    let named: Vec<String> = named.collect();
    let named: BTreeSet<&str> = named.iter().map(String::as_str).collect();
    assert_eq!(shown, named);
    let mut beginnings = 0;
    for heading in headings {
        let under = blocks.iter().filter(|block| block.heading == heading);
        let kinds: Vec<_> = under.map(|block| &*block.kind).collect();
        beginnings += usize::from(kinds == ["sh", "python"]);
        assert!(
            kinds == ["sh", "python", "text"] || kinds == ["sh", "python"],
            "{heading}: {kinds:?}"
        );
    }
    assert_eq!(beginnings, 1, "the beginning alone prints nothing");
}
