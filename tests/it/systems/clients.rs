//! Clients of TPP developers: those that generators make of the OpenAPI description, and the interceptors of docs/tpp/signing. Each plays
//! a whole flow through a gateway with the simulated bank: account access, a payment, its signature.

use crate::{
    bank::Bank,
    harness::{Gate, world, write_private},
    signers::{node_modules, python_with},
};
use portvakt::interface::{Reason, operations::builtin};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// The folder of the flows.
const FLOWS: &str = "tests/it/systems/clients";

/// The folder of the interceptors.
const SIGNING: &str = "docs/tpp/signing";

/// The most lines of an interceptor, without comments, imports and empty lines.
const LINES: usize = 40;

/// The gateway, its bank, and a folder with the files of a TPP.
struct Stage {
    gate: Gate,
    bank: Bank,
    folder: PathBuf,
}

impl Stage {
    /// `name` is that of the folder, which is made anew.
    fn start(name: &str) -> Self {
        let (gate, bank) = Bank::behind_a_gate();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("clients")
            .join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let tpp = &world().both.issued;
        fs::write(folder.join("ca.pem"), world().tls_ca.pem()).unwrap();
        fs::write(folder.join("tpp.pem"), &tpp.pem).unwrap();
        write_private(&folder.join("tpp.key"), tpp.key_pem.as_bytes());
        // The configuration of tests names another page than the bank's.
        let approve = folder.join("approve");
        let program = env!("CARGO_BIN_EXE_portvakt-sandbox");
        let script = format!(
            "#!/bin/sh\nexec {program} \"$1\" \"http://{}/sca?${{2#*\\?}}\"\n",
            bank.address
        );
        fs::write(&approve, script).unwrap();
        fs::set_permissions(&approve, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(
            folder.join("openapi.json"),
            gate.control("/openapi.json").body,
        )
        .unwrap();
        Self { gate, bank, folder }
    }

    fn base(&self) -> String {
        format!("https://localhost:{}", self.gate.address().port())
    }

    fn copy(&self, file: &Path, to: &str) {
        fs::copy(
            Path::new(env!("CARGO_MANIFEST_DIR")).join(file),
            self.folder.join(to),
        )
        .unwrap();
    }

    /// Runs a command in the folder; gives what it prints.
    fn run(&self, command: &mut Command) -> String {
        let output = command.current_dir(&self.folder).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{complained}");
        said + &complained
    }

    /// The payment of a flow is signed: it waits for the batch.
    fn plays(&self, command: &mut Command) {
        let said = self.run(command);
        println!("{said}");
        let statuses = ["ACTC", "ACWC", "ACSC"].map(|status| format!("status {status}"));
        assert!(
            statuses.iter().any(|status| said.contains(status)),
            "{said}"
        );
    }
}

fn signing(file: &str) -> PathBuf {
    Path::new(SIGNING).join(file)
}

fn flow(file: &str) -> PathBuf {
    Path::new(FLOWS).join(file)
}

#[test]
#[ignore = "make test-systems"]
fn python_with_a_generated_client() {
    let packages = [
        "openapi-python-client==0.29.1",
        "httpx<1",
        "cryptography",
        "attrs",
        "python-dateutil",
    ];
    let python = python_with(
        "clients-python",
        "openapi_python_client, httpx, cryptography",
        &packages,
    );
    let python = python.expect("openapi-python-client comes from PyPI");
    let stage = Stage::start("python");
    let run = |arguments: &[&str]| {
        Command::new(python.get_program())
            .args(arguments)
            .current_dir(&stage.folder)
            .output()
    };
    fs::write(stage.folder.join("generate.yaml"), "post_hooks: []\n").unwrap();
    let generated = run(&[
        "-m",
        "openapi_python_client",
        "generate",
        "--path",
        "openapi.json",
        "--meta",
        "none",
        "--output-path",
        "client",
        "--config",
        "generate.yaml",
    ]);
    let generated = generated.unwrap();
    let said =
        String::from_utf8_lossy(&generated.stdout) + String::from_utf8_lossy(&generated.stderr);
    assert!(
        generated.status.success() && !said.contains("WARNING"),
        "{said}"
    );
    for operation in builtin() {
        let group = operation.group.replace('-', "_");
        let file = operation.name.replace('-', "_");
        let file = stage.folder.join(format!("client/api/{group}/{file}.py"));
        let code =
            fs::read_to_string(&file).unwrap_or_else(|_| panic!("{}: {said}", file.display()));
        assert!(
            code.contains("Error"),
            "{}: errors are not typed",
            operation.name
        );
    }
    stage.copy(&signing("tpp_signature.py"), "tpp_signature.py");
    stage.copy(&flow("flow.py"), "flow.py");
    let approve = stage.folder.join("approve");
    stage.plays(
        Command::new(python.get_program())
            .args(["flow.py", &stage.base(), "ca.pem", "tpp.pem", "tpp.key"])
            .arg(approve),
    );
}

#[test]
#[ignore = "make test-systems"]
fn typescript_with_a_generated_client() {
    let npm = |package: &str, version: &str| {
        let modules = node_modules("clients-node", package, version);
        modules.unwrap_or_else(|| panic!("{package} comes from npm"))
    };
    npm("@hey-api/client-fetch", "0.8");
    npm("@hey-api/openapi-ts", "0.64");
    npm("@types/node", "20");
    let modules = npm("typescript", "5");
    let stage = Stage::start("typescript");
    let tool = |name: &str| Command::new(modules.join(".bin").join(name));
    std::os::unix::fs::symlink(&modules, stage.folder.join("node_modules")).unwrap();
    fs::write(stage.folder.join("package.json"), "{\"type\": \"module\"}").unwrap();
    stage.run(tool("openapi-ts").args([
        "-i",
        "openapi.json",
        "-o",
        "client",
        "-c",
        "@hey-api/client-fetch",
    ]));
    let sdk = fs::read_to_string(stage.folder.join("client/sdk.gen.ts")).unwrap();
    let types = fs::read_to_string(stage.folder.join("client/types.gen.ts")).unwrap();
    for operation in builtin() {
        let words = operation.name.split('-').map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + rest
        });
        let name: String = words.collect();
        let (first, rest) = name.split_at(1);
        let function = format!("export const {}{rest} =", first.to_lowercase());
        assert!(sdk.contains(&function), "{function}");
        assert!(
            types.contains(&format!("export type {name}Error =")),
            "{name}: errors are not typed"
        );
    }
    stage.copy(&signing("tppSignature.ts"), "tppSignature.ts");
    stage.copy(&flow("flow.ts"), "flow.ts");
    stage.run(tool("tsc").args([
        "--target",
        "es2022",
        "--module",
        "esnext",
        "--moduleResolution",
        "bundler",
        "--strict",
        "--skipLibCheck",
        "--types",
        "node",
        "--outDir",
        "built",
        "flow.ts",
    ]));
    let built = stage.folder.join("built");
    // Node wants the ending of a file that is imported.
    for file in ["client/client.gen.js", "client/sdk.gen.js"] {
        let code = fs::read_to_string(built.join(file)).unwrap();
        fs::write(
            built.join(file),
            code.replace("'./client.gen'", "'./client.gen.js'")
                .replace("'./types.gen'", "'./types.gen.js'"),
        )
        .unwrap();
    }
    stage.plays(
        Command::new("node")
            .env("NODE_EXTRA_CA_CERTS", stage.folder.join("ca.pem"))
            .args(["built/flow.js", &stage.base(), "tpp.pem", "tpp.key"])
            .arg(stage.folder.join("approve")),
    );
}

#[test]
#[ignore = "make test-systems"]
fn java() {
    let stage = Stage::start("java");
    stage.copy(&signing("TppSignature.java"), "TppSignature.java");
    stage.copy(&flow("Flow.java"), "Flow.java");
    stage.run(Command::new("javac").args(["TppSignature.java", "Flow.java"]));
    stage.run(Command::new("keytool").args([
        "-importcert",
        "-noprompt",
        "-file",
        "ca.pem",
        "-keystore",
        "ca.p12",
        "-storepass",
        "changeit",
    ]));
    stage.plays(
        Command::new("java")
            .args([
                "-Djavax.net.ssl.trustStore=ca.p12",
                "-Djavax.net.ssl.trustStorePassword=changeit",
                "Flow",
            ])
            .args([&stage.base(), "tpp.pem", "tpp.key"])
            .arg(stage.folder.join("approve")),
    );
}

#[test]
#[ignore = "make test-systems"]
fn go() {
    let stage = Stage::start("go");
    fs::create_dir(stage.folder.join("tppsignature")).unwrap();
    fs::write(stage.folder.join("go.mod"), "module flow\n\ngo 1.19\n").unwrap();
    stage.copy(&signing("tppsignature.go"), "tppsignature/tppsignature.go");
    stage.copy(&flow("flow.go"), "main.go");
    stage.run(
        Command::new("go")
            .env("GOFLAGS", "-mod=mod")
            .env("GOCACHE", stage.folder.join("cache"))
            .args(["build", "-o", "play", "."]),
    );
    stage.plays(
        Command::new(stage.folder.join("play"))
            .args([&stage.base(), "ca.pem", "tpp.pem", "tpp.key"])
            .arg(stage.folder.join("approve")),
    );
}

#[test]
#[ignore = "make test-systems"]
fn curl() {
    let stage = Stage::start("curl");
    stage.copy(&signing("tpp_signature.sh"), "tpp_signature.sh");
    stage.copy(&flow("flow.sh"), "flow.sh");
    stage.plays(
        Command::new("sh")
            .env("TPP_CERTIFICATE", "tpp.pem")
            .env("TPP_KEY", "tpp.key")
            .args(["flow.sh", "./tpp_signature.sh", &stage.base(), "ca.pem"])
            .arg(stage.folder.join("approve")),
    );
}

/// The commands of the guide, one after another in one shell; each prints the text of the block behind it.
#[test]
#[ignore = "make test-systems"]
fn the_guide() {
    let stage = Stage::start("guide");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = fs::read_to_string(root.join("docs/tpp/README.md")).unwrap();
    let mut script = String::from("set -e\n");
    let mut expected = Vec::new();
    for block in guide.split("\n```sh\n").skip(1) {
        let (commands, rest) = block.split_once("\n```").unwrap();
        script.push_str(&format!("{commands}\necho '<end>'\n"));
        let text = rest.strip_prefix("\n```text\n");
        let text = text.and_then(|text| text.split_once("```"));
        expected.push(text.map_or("", |(text, _)| text).to_owned());
    }
    assert!(expected.len() > 8);
    let script = script
        .replace("docs/tpp/signing", &root.join(SIGNING).to_string_lossy())
        .replace("certs/tpp-both", "tpp")
        .replace("certs/server-ca.pem", "ca.pem")
        .replace("https://localhost:8443", &stage.base())
        .replace(
            "http://127.0.0.1:8080",
            &format!("http://{}", stage.bank.address),
        )
        .replace("portvakt-sandbox approve", "./approve approve");
    let printed = stage.run(Command::new("sh").args(["-c", &script]));
    let printed: Vec<_> = printed.split("<end>\n").collect();
    assert_eq!(printed[..expected.len()], expected[..], "{printed:?}");
}

/// The pages name reasons that exist.
#[test]
fn the_questions_name_reasons() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let questions = fs::read_to_string(root.join("docs/tpp/questions.md")).unwrap();
    let slugs: Vec<_> = Reason::ALL.iter().map(|reason| reason.slug()).collect();
    let is_slug = |word: &&str| {
        word.contains('-')
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    let words: Vec<_> = questions
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(is_slug)
        .collect();
    let unknown: Vec<_> = words
        .iter()
        .copied()
        .filter(|word| !slugs.contains(word) && *word != "tpp-session-id")
        .collect();
    assert_eq!(unknown, [""; 0]);
    assert!(!words.is_empty(), "no question names a reason");
}

#[test]
#[ignore = "make test-systems"]
fn interceptors_are_short() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(SIGNING);
    let mut count = 0;
    for file in fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let text = fs::read_to_string(&file).unwrap();
        let is_code = |line: &&str| {
            let line = line.trim();
            let other = [
                "//", "#", "*", "/**", "import ", "from ", "package ", "\"\"\"",
            ];
            let is_imported = line.starts_with('"') && line.ends_with('"');
            !(line.is_empty() || is_imported || other.iter().any(|start| line.starts_with(start)))
        };
        let lines = text.lines().filter(is_code).count();
        assert!(lines <= LINES, "{}: {lines} lines", file.display());
        count += 1;
    }
    assert_eq!(count, 5);
}
