//! `make test` uses what `make demo` built: a dependency of tests that turns on a feature of what the programs link has most of it built again.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

/// Packages with their versions, and the features of each.
type Features = BTreeMap<String, BTreeSet<String>>;

/// What cargo builds with these options.
fn built(options: &[&str]) -> Features {
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--locked", "--offline", "--features", "sandbox"])
        .args(["--prefix", "none", "--format", "{p}\t{f}"])
        .args(options)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    features(&String::from_utf8(output.stdout).unwrap())
}

/// One line for each: the package, and its features. What was printed before is marked.
fn features(tree: &str) -> Features {
    let mut found = Features::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let (package, features) = line.split_once('\t').unwrap();
        let features = features.trim_end_matches(" (*)").split(',');
        let known = found.entry(package.to_owned()).or_default();
        known.extend(features.filter(|it| !it.is_empty()).map(str::to_owned));
    }
    found
}

/// The packages of the first that the second builds with other features.
fn again<'a>(programs: &'a Features, tests: &Features) -> Vec<&'a str> {
    let differs = |package: &str| tests.get(package) != programs.get(package);
    let packages = programs.keys().map(String::as_str);
    packages.filter(|package| differs(package)).collect()
}

#[test]
fn the_tests_are_built_on_what_the_programs_were() {
    let programs = built(&["--edges", "normal,build"]);
    let tests = built(&["--workspace", "--edges", "normal,build,dev"]);
    assert!(programs.len() > 300, "{}", programs.len());
    assert_eq!(again(&programs, &tests), [""; 0]);
}

#[test]
fn a_planted_feature_is_found() {
    let programs = features("serde v1.0.0\talloc,std\nhttp v1.0.0\tstd\nhttp v1.0.0\tstd (*)\n");
    let tests = features("serde v1.0.0\talloc,rc,std\nhttp v1.0.0\tstd\ntempfile v3.0.0\t\n");
    assert_eq!(again(&programs, &tests), ["serde v1.0.0"]);
}
