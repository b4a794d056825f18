//! OCI images: what they hold, and how they run without a daemon, without privileges and without a root that can be written.

use super::{BUILT, NEW, repository, succeed};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// The most files and bytes that the gateway's image may have (docs/install.md).
const MOST_FILES: usize = 20;
const MOST_BYTES: u64 = 30 * 1024 * 1024;

/// An image, unpacked by a tool that is not ours.
struct Unpacked {
    folder: TempDir,
}

impl Unpacked {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let layout = folder.path().join("layout");
        fs::create_dir(&layout).unwrap();
        succeed(
            Command::new("tar")
                .arg("-xf")
                .arg(archive(name))
                .arg("-C")
                .arg(&layout),
        );
        let mut unpack = Command::new("umoci");
        unpack.args(["unpack", "--rootless", "--image"]);
        unpack.arg(format!("{}:{NEW}", layout.display()));
        succeed(unpack.arg(folder.path().join("bundle")));
        Self { folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("bundle/rootfs")
    }

    /// Runs a script in namespaces of its own: loopback is the only network, and no user of the machine but this one exists.
    fn run(&self, script: &str) -> String {
        let work = self.folder.path().join("work");
        fs::create_dir(&work).unwrap();
        let folder = repository().join("tests/it/packages");
        let mut command = Command::new("unshare");
        command.args([
            "--user",
            "--map-root-user",
            "--mount",
            "--net",
            "--pid",
            "--fork",
            "--mount-proc",
        ]);
        command
            .arg("bash")
            .arg(folder.join(script))
            .arg(self.root());
        succeed(command.arg(repository()).arg(&work))
    }
}

fn archive(name: &str) -> PathBuf {
    let machine = succeed(Command::new("dpkg").arg("--print-architecture"));
    BUILT.join(format!("{name}_{NEW}_{}.oci.tar", machine.trim()))
}

/// The files below a folder, without the links.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

/// The program and its libraries, the CAs, and the licences: no shell, and no file that belongs to nobody.
#[test]
#[ignore = "make test-packages"]
fn the_image_has_the_program_and_its_libraries() {
    let image = Unpacked::new("portvakt");
    let root = image.root();
    let found = files(&root);
    println!(
        "{} files, {} bytes",
        found.len(),
        fs::metadata(archive("portvakt")).unwrap().len()
    );
    assert!(found.len() <= MOST_FILES, "{found:?}");
    let linked = succeed(Command::new("ldd").arg(env!("CARGO_BIN_EXE_portvakt")));
    for file in found {
        let path = file
            .strip_prefix(&root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let is_library = linked.contains(&format!("/{path} "));
        let is_other =
            ["usr/bin/portvakt", "etc/ssl/certs/ca-certificates.crt"].contains(&path.as_str());
        let is_licence = path.starts_with("usr/share/doc/")
            && ["/copyright", "/third-party-licences.gz"]
                .iter()
                .any(|name| path.ends_with(name));
        assert!(is_library || is_other || is_licence, "{path}");
    }
    // The program of the tests is larger than the deployed one.
    assert!(fs::metadata(archive("portvakt")).unwrap().len() <= MOST_BYTES);
}

#[test]
#[ignore = "make test-packages"]
fn the_image_says_how_it_runs() {
    let image = Unpacked::new("portvakt");
    let layout = image.folder.path().join("layout");
    let read = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let blob = |digest: &Value| {
        let (_, hash) = digest.as_str().unwrap().split_once(':').unwrap();
        read(&layout.join("blobs/sha256").join(hash))
    };
    let index = read(&layout.join("index.json"));
    let manifest = blob(&index["manifests"][0]["digest"]);
    let config = &blob(&manifest["config"]["digest"])["config"];
    assert_eq!(config["User"], "65532:65532");
    assert_eq!(config["StopSignal"], "SIGTERM");
    assert_eq!(config["Healthcheck"]["Test"][2], "health");
    let libraries = config["Labels"]["portvakt.libraries"].as_str().unwrap();
    assert!(libraries.contains("libssl3 "), "{libraries}");
}

/// packages/image.sh: /readyz, the health check, a signed 200, and the stop.
#[test]
#[ignore = "make test-packages"]
fn the_image_answers_a_signed_200() {
    let said = Unpacked::new("portvakt").run("image.sh");
    println!("{said}");
    assert!(said.contains("== everything went as expected"), "{said}");
}

/// packages/demo.sh: the flows of `make demo`.
#[test]
#[ignore = "make test-packages"]
fn the_image_with_the_simulated_bank_plays_the_flows() {
    let said = Unpacked::new("portvakt-demo").run("demo.sh");
    println!("{said}");
    assert!(said.contains("== everything went as expected"), "{said}");
}
