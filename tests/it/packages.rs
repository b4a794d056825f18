//! What `make package` builds: each test installs, unpacks or starts it as its reader would (docs/install.md).

/// Debian packages, on a Debian of their own.
mod debian;
/// What stands in front.
mod front;
/// OCI images, unpacked.
mod images;
/// Manifests for Kubernetes.
mod kubernetes;

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::LazyLock,
};

/// The version of the packages under test, and one before it.
const NEW: &str = "0.1.0-1";
const OLD: &str = "0.0.9-2";

/// The version of packages whose state has an earlier schema.
const OLDER: &str = "0.0.9-1";

/// The folder of everything that is built from the programs of the tests, once for all tests.
static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
    let out = scratch("packages");
    let _ = std::fs::remove_dir_all(&out);
    build(&repository(), NEW, &out, "022");
    out
});

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A place in the target folder.
fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The folder of the programs of a Python environment, which is made at its first use: of packages from PyPI that are known by their
/// hashes, and of others with their dependencies.
fn python_environment(name: &str, known: &str, others: &[&str]) -> PathBuf {
    let folder = scratch(name);
    let (programs, whole) = (folder.join("bin"), folder.join("whole"));
    if whole.exists() {
        return programs;
    }
    succeed(Command::new("python3").args(["-m", "venv"]).arg(&folder));
    let needs = folder.join("needs");
    std::fs::write(&needs, known).unwrap();
    let install = |options: &str| {
        let mut pip = Command::new(programs.join("python"));
        pip.args(["-m", "pip", "install", "--quiet"]);
        pip.args(options.split_whitespace());
        pip
    };
    let options = "--no-deps --only-binary :all: --require-hashes --requirement";
    succeed(install(options).arg(&needs));
    for package in others {
        succeed(&mut install(package));
    }
    std::fs::write(whole, "").unwrap();
    programs
}

/// Runs `.ci/package.sh` of a copy of the repository, with the programs of the tests.
fn build(repository: &Path, version: &str, out: &Path, umask: &str) {
    let program = Path::new(env!("CARGO_BIN_EXE_portvakt"));
    package_program(repository, program, version, out, umask);
}

/// The same, with these programs.
fn package_program(repository: &Path, program: &Path, version: &str, out: &Path, umask: &str) {
    let script = r#"umask "$1" && shift && exec .ci/package.sh "$@""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", umask]);
    command.arg("--program").arg(program);
    command.args(["--version", version, "--out"]).arg(out);
    succeed(command.current_dir(repository));
}

/// Runs a command, which must succeed.
#[track_caller]
fn succeed(command: &mut Command) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = shown(&output);
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

fn shown(output: &Output) -> String {
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{out}{errors}")
}

/// A command as root, who alone can make file systems of other users: `make test-packages` installs packages in the same way.
fn as_root(program: &str) -> Command {
    let id = succeed(Command::new("id").arg("-u"));
    if id.trim() == "0" {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.args(["-n", program]);
    command
}
