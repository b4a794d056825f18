//! Debian packages: the same bytes from two builds, no error of lintian, and their life on a Debian 12 whose first process is systemd.

use super::{
    BUILT, NEW, OLD, OLDER, as_root, build, package_program, repository, scratch, shown, succeed,
};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// What the root file system has beside the essential packages: what the packages depend on, and what try.sh uses.
const INCLUDED: &str =
    "systemd,systemd-sysv,ca-certificates,libssl3,logrotate,openssl,curl,nginx-light,sqlite3";

/// Files that each package must have, with their modes, owners as dpkg-deb lists them.
const FILES: [(&str, &str, &str); 20] = [
    ("portvakt", "-rwxr-xr-x root/root", "./usr/bin/portvakt"),
    (
        "portvakt",
        "-rw-r--r-- root/root",
        "./usr/share/man/man1/portvakt.1.gz",
    ),
    (
        "portvakt",
        "-rw-r--r-- root/root",
        "./usr/share/man/man1/portvakt-health.1.gz",
    ),
    (
        "portvakt",
        "-rw-r--r-- root/root",
        "./usr/share/bash-completion/completions/portvakt",
    ),
    (
        "portvakt",
        "-rw-r--r-- root/root",
        "./usr/share/zsh/vendor-completions/_portvakt",
    ),
    (
        "portvakt",
        "-rw-r--r-- root/root",
        "./usr/share/fish/vendor_completions.d/portvakt.fish",
    ),
    (
        "portvakt",
        "-rw-r--r-- root/root",
        "./etc/portvakt/gateway.yaml",
    ),
    (
        "portvakt",
        "drwx------ root/root",
        "./etc/portvakt/secrets/",
    ),
    ("portvakt", "drwx------ root/root", "./var/lib/portvakt/"),
    (
        "portvakt",
        "-rw-r--r-- root/root",
        "./lib/systemd/system/portvakt.service",
    ),
    (
        "portvakt",
        "-rw-r--r-- root/root",
        "./lib/systemd/system/portvakt.socket",
    ),
    (
        "portvakt",
        "-rw-r--r-- root/root",
        "./usr/lib/sysusers.d/portvakt.conf",
    ),
    (
        "portvakt",
        "-rw-r--r-- root/root",
        "./etc/logrotate.d/portvakt",
    ),
    (
        "portvakt-sandbox",
        "-rwxr-xr-x root/root",
        "./usr/bin/portvakt-sandbox",
    ),
    (
        "portvakt-lists",
        "-rwxr-xr-x root/root",
        "./usr/bin/portvakt-lists",
    ),
    (
        "portvakt-lists",
        "-rwxr-xr-x root/root",
        "./usr/lib/portvakt-lists/renew",
    ),
    (
        "portvakt-lists",
        "-rw-r--r-- root/root",
        "./lib/systemd/system/portvakt-lists.timer",
    ),
    (
        "portvakt-dashboards",
        "-rw-r--r-- root/root",
        "./usr/share/portvakt/dashboards/overview.json",
    ),
    (
        "portvakt-dashboards",
        "-rw-r--r-- root/root",
        "./usr/share/portvakt/dashboards/alerts.yml",
    ),
    (
        "portvakt-dashboards",
        "-rw-r--r-- root/root",
        "./usr/share/portvakt/dashboards/runbooks/README.md",
    ),
];

/// The file of a package in the folder of what was built.
fn package(name: &str) -> PathBuf {
    let files = fs::read_dir(&*BUILT).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    // The image of the same name is beside it.
    let mut found = names
        .filter(|file| file.starts_with(&format!("{name}_")) && file.ends_with(".deb"))
        .map(|file| BUILT.join(file));
    found.next().unwrap()
}

#[test]
#[ignore = "make test-packages"]
fn each_package_has_its_files() {
    for (name, mode, file) in FILES {
        let listed = succeed(
            Command::new("dpkg-deb")
                .arg("--contents")
                .arg(package(name)),
        );
        let mut lines = listed.lines();
        let line = lines.find(|line| line.ends_with(&format!(" {file}")));
        let line = line.unwrap_or_else(|| panic!("{name} has no {file}: {listed}"));
        assert!(line.starts_with(mode), "{line}");
    }
    let fields = succeed(
        Command::new("dpkg-deb")
            .arg("--field")
            .arg(package("portvakt")),
    );
    for library in ["libc6 (", "libgcc-s1 (", "libssl3 ("] {
        assert!(fields.contains(library), "{fields}");
    }
}

#[test]
#[ignore = "make test-packages"]
fn lintian_finds_no_error() {
    let packages = [
        "portvakt",
        "portvakt-sandbox",
        "portvakt-lists",
        "portvakt-dashboards",
    ];
    let packages = packages.map(package);
    let found = Command::new("lintian")
        .args(["--fail-on", "error"])
        .args(packages)
        .output();
    let found = found.unwrap();
    println!("{}", shown(&found));
    assert!(found.status.success(), "{}", shown(&found));
}

/// Two copies of the repository, in folders of their own and under other umasks.
#[test]
#[ignore = "make test-packages"]
fn two_builds_are_the_same() {
    let folder = TempDir::new().unwrap();
    let copy = folder.path().join("a copy");
    let listed = "git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --target-directory \"$1\" && cp -r .git \"$1\"";
    fs::create_dir(&copy).unwrap();
    let mut copied = Command::new("sh");
    copied.args(["-c", listed, "sh"]).arg(&copy);
    succeed(copied.current_dir(repository()));
    let out = folder.path().join("out");
    build(&copy, NEW, &out, "077");
    let names = |folder: &Path| {
        let files = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&out), names(&BUILT));
    for name in names(&out) {
        let [one, other] = [out.join(&name), BUILT.join(&name)].map(|file| fs::read(file).unwrap());
        assert!(one == other, "{} differs", name.display());
    }
}

/// A root file system of Debian 12, made once.
fn debian() -> PathBuf {
    let file = scratch("debian-12.tar");
    if !file.exists() {
        let made = scratch("debian-12-new.tar");
        let mut mmdebstrap = Command::new("mmdebstrap");
        mmdebstrap.args(["--mode=unshare", "--variant=minbase"]);
        mmdebstrap
            .arg(format!("--include={INCLUDED}"))
            .arg("bookworm");
        succeed(mmdebstrap.arg(&made));
        fs::rename(made, &file).unwrap();
    }
    file
}

/// Installs, checks, starts, calls, upgrades under load, goes back, removes and purges: packages/try.sh.
#[test]
#[ignore = "make test-packages"]
fn the_life_of_the_packages() {
    let folder = TempDir::new().unwrap();
    let old = folder.path().join("old");
    build(&repository(), OLD, &old, "022");
    // An earlier commit's program, with portvakt-sandbox and portvakt-lists beside it: docs/releasing.md.
    let older = env::var_os("PORTVAKT_OLDER_PROGRAM").map(|program| {
        let out = folder.path().join("older");
        package_program(&repository(), Path::new(&program), OLDER, &out, "022");
        out
    });
    let root = folder.path().join("root");
    fs::create_dir(&root).unwrap();
    succeed(as_root("tar").arg("-xf").arg(debian()).arg("-C").arg(&root));
    let tries = repository().join("tests/it/packages");
    let units = root.join("etc/systemd/system");
    let wanted = units.join("multi-user.target.wants");
    succeed(as_root("mkdir").arg("-p").arg(&wanted));
    succeed(as_root("cp").arg(tries.join("try.service")).arg(&units));
    succeed(as_root("ln").args(["-s", "../try.service"]).arg(&wanted));
    let bind = |from: &Path, to: &str| format!("--bind-ro={}:{to}", from.display());
    let mut boot = as_root("systemd-nspawn");
    boot.arg("--directory").arg(&root);
    // No service of this machine takes part, so that none is needed.
    boot.args([
        "--quiet",
        "--boot",
        "--register=no",
        "--keep-unit",
        "--private-network",
        "--console=pipe",
    ]);
    boot.arg(bind(&old, "/packages/old"))
        .arg(bind(&BUILT, "/packages/new"))
        .arg(bind(&tries, "/try"))
        .args(older.map(|older| bind(&older, "/packages/older")));
    let booted = boot.output().unwrap();
    let log = succeed(as_root("cat").arg(root.join("try.log")));
    println!("{log}");
    // The files belong to root and to the gateway's user.
    succeed(as_root("rm").args(["-rf", "--one-file-system"]).arg(&root));
    assert!(booted.status.success(), "{}{log}", shown(&booted));
    assert!(log.contains("== everything went as expected"), "{log}");
}
