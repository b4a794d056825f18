//! docs/releasing.md: a changed release does not verify, and a program's CycloneDX document says what cargo and the loader say.
//!
//! The release here has stubs in place of packages, site and counts; the scripts are those of a real one. They need a clone: where this is a
//! copy without one, they run in a clone that is made of it.

use crate::harness::missing;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::LazyLock,
};
use tempfile::TempDir;

const TARGET: &str = "x86_64-unknown-linux-gnu";
const PROGRAM: &str = env!("CARGO_BIN_EXE_portvakt");

/// A clone of the repository.
static REPOSITORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut git = Command::new("git");
    trust_folders(git.current_dir(&here).args(["rev-parse", "HEAD"]));
    if git.output().unwrap().status.success() {
        return here;
    }
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clone");
    let script = r#"rm -rf "$2" && mkdir "$2" && cd "$1" && tar --exclude=./target --exclude=./.git -c . | tar -C "$2" -x
        cd "$2" && git init -q && git add -A && git -c user.name=a -c user.email=a@example.com commit -qm copy"#;
    let mut make = Command::new("sh");
    make.args(["-euc", script, "sh"]).args([&here, &copy]);
    assert!(make.status().unwrap().success(), "no clone can be made");
    copy
});

fn repository() -> PathBuf {
    REPOSITORY.clone()
}

/// Git refuses a repository of another user, such as a folder that a container was given.
fn trust_folders(command: &mut Command) -> &mut Command {
    command
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
}

/// The output of a command, which must succeed.
#[track_caller]
fn run(command: &mut Command) -> Vec<u8> {
    let command = trust_folders(command).current_dir(repository());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", shown(&output));
    output.stdout
}

fn shown(output: &Output) -> String {
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{out}{errors}")
}

fn shell(script: &str, arguments: &[&Path]) -> Vec<u8> {
    run(Command::new("sh")
        .args(["-euc", script, "sh"])
        .args(arguments))
}

/// The CycloneDX document of the tests' program, as bytes.
static BILL: LazyLock<Vec<u8>> =
    LazyLock::new(|| bill(&["sbom", "--program", PROGRAM, "--features", "sandbox"]));

fn bill(arguments: &[&str]) -> Vec<u8> {
    run(Command::new("packaging/release/bill.py").args(arguments))
}

/// A release, with keys.
struct Release {
    folder: TempDir,
}

impl Release {
    /// None where minisign is missing.
    fn new() -> Option<Self> {
        if Command::new("minisign").arg("-v").output().is_err() {
            missing("minisign is not installed");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let release = Self { folder };
        fs::create_dir(release.files()).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        for stub in [
            format!("portvakt_{version}-1_amd64.deb"),
            format!("portvakt-{version}.profdata"),
            format!("portvakt-{version}-docs.tar.gz"),
            format!("portvakt-{version}-third-party-licences.txt"),
        ] {
            fs::write(release.files().join(&stub), stub).unwrap();
        }
        for name in ["portvakt", "portvakt-lists", "portvakt-sandbox"] {
            let bill = release.files().join(format!("{name}-{version}.cdx.json"));
            fs::write(bill, &*BILL).unwrap();
        }
        let copied = release.files().join("verify-release.sh");
        fs::copy(
            repository().join("packaging/release/verify-release.sh"),
            copied,
        )
        .unwrap();
        shell(STUBS, &[&release.files(), Path::new(version)]);
        shell(
            r#"cd "$1" && minisign -G -W -p key.pub -s key && minisign -G -W -p other.pub -s other"#,
            &[release.folder.path()],
        );
        let mut seal = Command::new(".ci/seal.sh");
        seal.arg("--key").arg(release.folder.path().join("key"));
        seal.arg("--public").arg(release.public("key"));
        seal.args(["--advisories", "0123456789012345678901234567890123456789"]);
        run(seal.arg(release.files()));
        Some(release)
    }

    fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    fn public(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.pub"))
    }

    fn names(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.files()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    /// The script of the repository, on these files.
    fn verify(&self, key: &str, options: &[&str]) -> Output {
        let mut verify = Command::new(repository().join("packaging/release/verify-release.sh"));
        verify
            .arg("--key")
            .arg(self.public(key))
            .args(options)
            .arg(self.files());
        verify.output().unwrap()
    }

    #[track_caller]
    fn accepted(&self) {
        let verified = self.verify("key", &[]);
        assert!(verified.status.success(), "{}", shown(&verified));
    }

    #[track_caller]
    fn refused(&self, why: &str) {
        let verified = self.verify("key", &[]);
        assert_eq!(verified.status.code(), Some(1), "{why}");
        assert!(shown(&verified).contains("not verified: "), "{why}");
    }

    /// Signs what is there, as a releaser would whose files do not belong together.
    fn sign(&self) {
        shell(
            r#"cd "$1/files" && comment=$(sed -n 's/^trusted comment: //p' SHA256SUMS.minisig) && rm SHA256SUMS*
               LC_ALL=C sha256sum -- * >../sums && mv ../sums SHA256SUMS
               minisign -S -q -s ../key -m SHA256SUMS -c "signature of a release of Portvakt" -t "$comment""#,
            &[self.folder.path()],
        );
    }
}

/// The source, and an image of nothing but its label.
const STUBS: &str = r#"
git -c tar.umask=022 archive --format=tar --prefix="portvakt-$2/" HEAD Cargo.lock Cargo.toml | gzip -9n >"$1/portvakt-$2.tar.gz"
image=$(mktemp -d) && mkdir -p "$image/blobs/sha256"
echo "{\"config\": {\"Labels\": {\"org.opencontainers.image.revision\": \"$(git rev-parse HEAD)\"}}}" >"$image/blobs/sha256/c"
echo '{"config": {"digest": "sha256:c"}}' >"$image/blobs/sha256/m"
echo '{"manifests": [{"digest": "sha256:m"}]}' >"$image/index.json"
tar --directory "$image" --create --file "$1/portvakt_$2-1_amd64.oci.tar" .
rm -r "$image""#;

#[test]
fn one_byte_of_any_file_is_noticed() {
    let Some(release) = Release::new() else {
        return;
    };
    let names = release.names();
    assert_eq!(names.len(), 13, "{names:?}");
    for name in names {
        let path = release.files().join(&name);
        let whole = fs::read(&path).unwrap();
        // Byte 25 of a signature is in its comment, which minisign does not verify.
        for place in [0, 25.min(whole.len() - 1), whole.len() / 2, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            fs::write(&path, changed).unwrap();
            release.refused(&format!("{name}, byte {place}"));
        }
        fs::remove_file(&path).unwrap();
        release.refused(&format!("without {name}"));
        fs::write(&path, whole).unwrap();
    }
    let more = release.files().join("more");
    fs::write(&more, "").unwrap();
    release.refused("one file more");
    fs::remove_file(&more).unwrap();
    assert!(!release.verify("other", &[]).status.success());
    release.accepted();
}

/// minisign reads no line behind the fourth, and sha256sum and cd follow links and CDPATH.
#[test]
fn what_is_beside_the_signed_files_is_noticed() {
    let Some(release) = Release::new() else {
        return;
    };
    let signature = release.files().join("SHA256SUMS.minisig");
    let signed = fs::read_to_string(&signature).unwrap();
    fs::write(&signature, format!("{signed}more\n")).unwrap();
    release.refused("a fifth line");
    fs::write(&signature, signed).unwrap();

    let (listed, outside) = (
        release.files().join("provenance.json"),
        release.public("outside"),
    );
    fs::rename(&listed, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &listed).unwrap();
    release.refused("a link to the same content");
    fs::remove_file(&listed).unwrap();
    fs::rename(&outside, &listed).unwrap();
    release.accepted();

    // Here is a changed "files", and CDPATH leads to the true one.
    let here = tempfile::tempdir().unwrap();
    fs::create_dir(here.path().join("files")).unwrap();
    let mut verify = Command::new(repository().join("packaging/release/verify-release.sh"));
    verify.arg("--key").arg(release.public("key")).arg("files");
    verify.env("CDPATH", release.files().parent().unwrap());
    let verified = verify.current_dir(&here).output().unwrap();
    assert_eq!(verified.status.code(), Some(1), "{}", shown(&verified));
}

/// The signature holds in each case: the files do not belong together.
#[test]
fn a_provenance_of_other_files_is_noticed() {
    let Some(release) = Release::new() else {
        return;
    };
    let path = release.files().join("provenance.json");
    let text = fs::read_to_string(&path).unwrap();
    let statement: Value = serde_json::from_str(&text).unwrap();
    let build = &statement["predicate"]["buildDefinition"];
    let inputs = build["resolvedDependencies"].as_array().unwrap();
    let input = |name: &str, pointer: &str| {
        let input = inputs.iter().find(|input| input["name"] == name).unwrap();
        input.pointer(pointer).unwrap().as_str().unwrap().to_owned()
    };
    let rustc = input("toolchain", "/annotations/rustc");
    for stated in [
        input("source", "/digest/gitCommit"),
        input("Cargo.lock", "/digest/sha256"),
        input("counts", "/digest/sha256"),
        rustc.lines().next().unwrap().to_owned(),
        statement["subject"][0]["digest"]["sha256"]
            .as_str()
            .unwrap()
            .to_owned(),
    ] {
        let mut other = stated.clone();
        let last = if other.ends_with('0') { "1" } else { "0" };
        other.replace_range(other.len() - 1.., last);
        // The hash of the counts stands among the subjects too, before the inputs.
        let place = text.rfind(&stated).unwrap();
        let mut changed = text.clone();
        changed.replace_range(place..place + stated.len(), &other);
        fs::write(&path, changed).unwrap();
        release.sign();
        release.refused(&stated);
    }
    fs::write(&path, &text).unwrap();
    release.sign();
    release.accepted();

    // The clone at the commit, then at another one.
    let clone = release.folder.path().join("clone");
    shell(r#"git clone --quiet . "$1""#, &[&clone]);
    let options = ["--source", clone.to_str().unwrap()];
    let verified = release.verify("key", &options);
    assert!(verified.status.success(), "{}", shown(&verified));
    shell(
        r#"git -C "$1" -c user.name=a -c user.email=a@example.com commit --quiet --allow-empty --message next"#,
        &[&clone],
    );
    let verified = release.verify("key", &options);
    assert!(shown(&verified).contains("the commit of the clone"));
    assert_eq!(verified.status.code(), Some(1));
}

/// Crates as `cargo tree` prints them: name and version.
fn tree(edges: &str) -> BTreeSet<(String, String)> {
    let mut tree = Command::new("cargo");
    tree.args(["tree", "--locked", "--features", "sandbox"]);
    tree.args(["--target", TARGET, "--edges", edges, "--prefix", "none"]);
    let lines = String::from_utf8(run(&mut tree)).unwrap();
    let crates = lines.lines().map(|line| {
        let mut words = line.split(' ');
        let (name, version) = (words.next().unwrap(), words.next().unwrap());
        (name.to_owned(), version[1..].to_owned())
    });
    crates.collect()
}

/// Components of the document by the source of the statement: name and version.
fn components(bill: &Value, source: &str, is_linked: bool) -> BTreeSet<(String, String)> {
    let all = bill["components"].as_array().unwrap().iter();
    let chosen = all.filter(|each| {
        let linked = each["scope"] == "required";
        each["properties"][0]["value"] == source && (linked || !is_linked)
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    chosen
        .map(|each| (text(&each["name"]), text(&each["version"])))
        .collect()
}

#[test]
fn the_bill_is_what_cargo_and_the_loader_say() {
    let bill: Value = serde_json::from_slice(&BILL).unwrap();
    let program = &bill["metadata"]["component"];
    let program = (
        program["name"].as_str().unwrap(),
        program["version"].as_str().unwrap(),
    );
    assert_eq!(program, ("portvakt", env!("CARGO_PKG_VERSION")));
    for (edges, is_linked) in [("normal", false), ("normal,no-proc-macro", true)] {
        let mut crates = tree(edges);
        assert!(crates.remove(&(program.0.to_owned(), program.1.to_owned())));
        assert!(crates.len() > 200, "{}", crates.len());
        assert_eq!(components(&bill, "cargo", is_linked), crates);
    }

    let loaded = String::from_utf8(run(Command::new("ldd").arg(PROGRAM))).unwrap();
    let loaded = loaded.lines().filter_map(|line| {
        let name = line.split_whitespace().next()?.rsplit('/').next()?;
        (!name.starts_with("linux-vdso")).then(|| (name.to_owned(), String::new()))
    });
    assert_eq!(components(&bill, "loader", true), loaded.collect());
    let openssl = bill["components"].as_array().unwrap().iter();
    let mut openssl = openssl.filter(|each| each["name"] == "libssl.so.3");
    assert_eq!(
        openssl.next().unwrap()["properties"][1]["value"],
        "OPENSSL_3.0.0"
    );

    let included = components(&bill, "c", true);
    let names: Vec<_> = included.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "AWS-LC",
        "BoringSSL in ring",
        "SQLite",
        "Zstandard",
        "mimalloc",
        "zlib-ng",
    ];
    assert_eq!(names, expected);
    // The library itself says its version.
    assert!(included.contains(&("SQLite".into(), rusqlite::version().into())));
    let licences = String::from_utf8(self::bill(&["licences"])).unwrap();
    for (name, version) in included {
        assert!(licences.contains(&format!("{name} {version}: ")), "{name}");
    }
}

/// The section that scanners read.
#[test]
fn the_crates_within_the_program_are_those_that_are_linked() {
    let compressed = bill(&["audit-data", "--features", "sandbox"]);
    let mut text = String::new();
    flate2::read::ZlibDecoder::new(&compressed[..])
        .read_to_string(&mut text)
        .unwrap();
    let data: Value = serde_json::from_str(&text).unwrap();
    let packages = data["packages"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let crates = packages
        .iter()
        .map(|each| (text(&each["name"]), text(&each["version"])));
    assert_eq!(
        crates.collect::<BTreeSet<_>>(),
        tree("normal,no-proc-macro")
    );
    let roots = packages.iter().filter(|each| each["root"] == true);
    let roots: Vec<_> = roots.map(|each| text(&each["name"])).collect();
    assert_eq!(roots, ["portvakt"]);
}
