//! Addresses to fetch from: of real lists, and of lists that would be a command.

use super::{Address, addresses};
use crate::{
    for_tests::{
        mint::{List, Scheme, Signer},
        real_lists,
    },
    import::ListFile,
};
use std::fs;

fn of(list: &List) -> Result<Vec<Address>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("eu.xml");
    fs::write(&path, list.sign(&Signer::new("A", Scheme::Ecdsa))).unwrap();
    addresses(&ListFile::read(&path).unwrap()).map_err(|refusal| refusal.to_string())
}

#[test]
fn pivots_and_national_lists() {
    let signer = Signer::new("A", Scheme::Ecdsa);
    let mut list = List::of_lists(&[("ES", &signer.certificate), ("FI", &signer.certificate)]);
    list.information = vec![
        "https://lists.example/pivot-2.xml".to_owned(),
        "https://lists.example/eu.xml".to_owned(),
        "https://lists.example/about.html".to_owned(),
    ];
    let found: Vec<_> = of(&list)
        .unwrap()
        .into_iter()
        .map(|it| (it.file, it.url))
        .collect();
    let expected = [
        ("pivot-2.xml", "https://lists.example/pivot-2.xml"),
        ("ES.xml", "https://lists.example/ES.xml"),
        ("FI.xml", "https://lists.example/FI.xml"),
    ];
    let expected = expected.map(|(file, url)| (file.to_owned(), url.to_owned()));
    assert_eq!(found, expected);
}

#[test]
fn an_address_is_no_command() {
    let signer = Signer::new("A", Scheme::Ecdsa);
    for url in [
        "file:///etc/passwd",
        "https://lists.example/\"",
        "https://lists.example/a b",
        "https://lists.example/'x'",
        "https://lists.example/\\",
        "https://lists.example/x\noutput = /etc/passwd",
        "ftp://lists.example/ES.xml",
    ] {
        let mut list = List::of_lists(&[("ES", &signer.certificate)]);
        list.pointers[0].2 = url.to_owned();
        let fault = of(&list).unwrap_err();
        assert!(fault.contains("not plain http or https"), "{fault}");
    }
    assert!(of(&List::national("ES", Vec::new())).is_err());
}

#[test]
fn the_real_list_of_lists() {
    let Some(root) = real_lists() else { return };
    let file = ListFile::read(&root.join("v6/eu-lotl-seq388.xml")).unwrap();
    let found = addresses(&file).unwrap();
    let names: Vec<_> = found.iter().map(|it| it.file.as_str()).collect();
    assert_eq!(names.len(), 5 + 31, "{names:?}");
    assert_eq!(names[0], "eu-lotl-pivot-378.xml");
    assert!(names.contains(&"ES.xml"));
    assert!(found.iter().all(|it| !it.url.ends_with(".pdf")));
}
