//! What is linked into the gateway, by Cargo.lock: no parser of XML (decision 0013).
//!
//! The lock does not tell dependencies of tests from others, so that what it says here is said of tests too.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

/// The direct dependencies of each package of a lock file, by name.
fn locked(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in text.split("\n[[package]]\n").skip(1) {
        let quoted = |line: &str| line.split('"').nth(1).map(str::to_owned);
        let name = package.lines().find(|line| line.starts_with("name = "));
        // "NAME" or "NAME VERSION". Several versions of a package count as one.
        let dependencies = package.lines().filter(|line| line.starts_with(" \""));
        let dependencies = dependencies.filter_map(quoted);
        let dependencies = dependencies.map(|it| it.split(' ').next().unwrap().to_owned());
        let known = found.entry(name.and_then(quoted).unwrap()).or_default();
        known.extend(dependencies);
    }
    found
}

/// A package and everything below it.
fn below(package: &str, locked: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut found = BTreeSet::from([package.to_owned()]);
    let mut next = vec![package.to_owned()];
    while let Some(name) = next.pop() {
        let dependencies = locked.get(&name).into_iter().flatten();
        next.extend(
            dependencies
                .filter(|it| found.insert((*it).clone()))
                .cloned(),
        );
    }
    found
}

/// Whether a package may read XML, by its name: the crates that do so without "xml" in theirs are listed.
fn reads_xml(package: &str) -> bool {
    let others = [
        "minidom",
        "rxml",
        "sxd-document",
        "xot",
        "html5ever",
        "hard-xml",
        "libxml",
    ];
    package.contains("xml") || others.contains(&package)
}

//= CRT-13 refused
#[test]
fn no_parser_of_xml_is_linked_into_the_gateway() {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock")).unwrap();
    let locked = locked(&text);
    let linked = below("portvakt", &locked);
    let readers: Vec<_> = linked.iter().filter(|name| reads_xml(name)).collect();
    assert_eq!(readers, [""; 0]);
    assert!(!linked.contains("portvakt-lists"));
    // The walk sees what is there.
    assert!(linked.contains("portvakt-gateway") && linked.contains("serde-saphyr"));
    let lists = below("portvakt-lists", &locked);
    assert!(lists.iter().any(|name| reads_xml(name)));
}

#[test]
fn a_planted_parser_is_found() {
    let lock = "version = 4\n\n[[package]]\nname = \"portvakt\"\ndependencies = [\n \"a\",\n \"b 1.0.0\",\n]\n\n\
        [[package]]\nname = \"a\"\n\n[[package]]\nname = \"b\"\nversion = \"1.0.0\"\ndependencies = [\n \"quick-xml\",\n]\n\n\
        [[package]]\nname = \"quick-xml\"\n";
    let linked = below("portvakt", &locked(lock));
    let readers: Vec<_> = linked.iter().filter(|name| reads_xml(name)).collect();
    assert_eq!(readers, ["quick-xml"]);
}
