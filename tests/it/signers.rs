//! Requests signed by other programs: OpenSSL's command line, Java, Python and npm, each with the issuer's name in its own format,
//! through the real listener (SIG-2 to SIG-10).
//!
//! A missing signer is skipped with a message; on CI that fails. Libraries are fetched once into the target folder.

use crate::harness::{Call, Gate, Protocol, Tpp, missing, pki, world};
use portvakt::{clock::Clock, tools::tpp::SignedRequest};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, LazyLock},
};

/// A TPP with a complex issuer name, as in real certificates, and its files.
struct Awkward {
    ca: pki::Ca,
    tpp: Arc<Tpp>,
    certificate: PathBuf,
    key: PathBuf,
}

static AWKWARD: LazyLock<Awkward> = LazyLock::new(|| {
    let ca = world().root.issue_ca(&pki::CaSpec::default()).unwrap();
    let issued = ca.issue(&pki::LeafSpec::default()).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("awkward");
    fs::create_dir_all(&folder).unwrap();
    let (certificate, key) = (folder.join("tpp.pem"), folder.join("tpp.key"));
    fs::write(&certificate, &issued.pem).unwrap();
    fs::write(&key, &issued.key_pem).unwrap();
    Awkward {
        ca,
        tpp: Tpp::of(issued),
        certificate,
        key,
    }
});

//= SIG-2 accepted
//= SIG-3 accepted
//= SIG-4 accepted
//= SIG-8 accepted
//= SIG-9 accepted
#[test]
fn openssl_on_the_command_line() {
    accepts(
        "openssl",
        found("openssl").map(|()| Command::new("sh")),
        "sign.sh",
        4,
    );
}

//= SIG-4 accepted
//= SIG-10 accepted
#[test]
fn java() {
    accepts("java", java_command(), "Sign.java", 4);
}

//= SIG-4 accepted
#[test]
fn python() {
    accepts("python", python_with_libraries(), "sign.py", 2);
}

//= SIG-4 accepted
#[test]
fn npm() {
    accepts("npm", node_with_libraries(), "sign.js", 1);
}

/// Lets a program sign a GET and a POST in each of its variants, and sends them over both protocols.
fn accepts(name: &str, program: Option<Command>, script: &str, variants: usize) {
    let Some(mut program) = program else {
        return missing(&format!("{name} cannot be had on this machine"));
    };
    let awkward = &*AWKWARD;
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/signers")
        .join(script);
    program
        .arg(script)
        .arg(&awkward.certificate)
        .arg(&awkward.key);
    for call in [Call::accounts(), Call::cross_border()] {
        let call = call.by(&awkward.tpp);
        let sealed = call.seal(Clock::System.now());
        let signatures = run(&mut program, &sealed.request);
        assert!(signatures.len() >= variants, "{name}: {signatures:?}");
        for (variant, signature) in signatures {
            for protocol in Protocol::ALL {
                // A new gate each time, because a request id is used once.
                let gate = Gate::builder()
                    .file("intermediates/awkward.pem", awkward.ca.pem())
                    .start();
                gate.seal(&call);
                let mut sealed = sealed.clone();
                sealed.request.set_header("Signature", &signature);
                let answer = gate.send_sealed(&sealed, protocol).unwrap();
                let said = String::from_utf8_lossy(&answer.body).into_owned();
                assert_eq!(
                    answer.status, 200,
                    "{name}, {variant}, {protocol:?}: {signature}\n{said}"
                );
            }
        }
    }
}

/// Gives the signing string to a program, and returns its variants of the Signature header.
fn run(program: &mut Command, request: &SignedRequest) -> Vec<(String, String)> {
    let mut child = program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(request.signing_string.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let pairs = lines.lines().filter_map(|line| line.split_once('\t'));
    pairs
        .map(|(variant, signature)| (variant.to_owned(), signature.to_owned()))
        .collect()
}

/// Java with a compiler, which runs a source file as it is.
pub(crate) fn java_command() -> Option<Command> {
    found("javac").map(|()| Command::new("java"))
}

/// A virtual environment with the libraries that TPPs use.
fn python_with_libraries() -> Option<Command> {
    python_with(
        "python",
        "cryptography, httpsig",
        &["setuptools<81", "cryptography", "httpsig"],
    )
}

/// A virtual environment of this name, in which these modules of these packages can be imported.
pub(crate) fn python_with(name: &str, modules: &str, packages: &[&str]) -> Option<Command> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let python = folder.join("bin/python");
    if !python.exists() {
        succeeds(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    let imports = || {
        Command::new(&python)
            .args(["-c", &format!("import {modules}")])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    if !imports() {
        succeeds(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet"])
                .args(packages),
        )?;
    }
    imports().then(|| Command::new(python))
}

/// Node with http-signature.
fn node_with_libraries() -> Option<Command> {
    let modules = node_modules("node", "http-signature", "1")?;
    let mut node = Command::new("node");
    node.env("NODE_PATH", modules);
    Some(node)
}

/// A folder of this name with a package of this version from npm, and Node to run it.
pub(crate) fn node_modules(name: &str, package: &str, version: &str) -> Option<PathBuf> {
    found("node")?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let modules = folder.join("node_modules");
    if !modules.join(package).exists() {
        fs::create_dir_all(&folder).ok()?;
        succeeds(
            Command::new("npm")
                .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
                .arg(&folder)
                .arg(format!("{package}@{version}")),
        )?;
    }
    Some(modules)
}

/// Whether a program is on the path.
pub(crate) fn found(program: &str) -> Option<()> {
    succeeds(Command::new("sh").args(["-c", &format!("command -v {program}")]))
}

fn succeeds(command: &mut Command) -> Option<()> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    quiet.status().ok()?.success().then_some(())
}
