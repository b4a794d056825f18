//! Lists that are left out by their country, which must be one that a list has.

use super::{at, fault};
use crate::{
    for_tests::mint::{List, Scheme, Service, Signer},
    import::{Fault, Imported, Request, import, lists_in},
    second::Verifiers,
};
use std::fs;

/// Imports with a list of lists that names Spain and Norway, and files of Spain and France.
fn import_without(countries: &[&str]) -> Result<Imported, Vec<Fault>> {
    let folder = tempfile::tempdir().unwrap();
    let [commission, other] = ["Commission", "Other"].map(|name| Signer::new(name, Scheme::Ecdsa));
    let signer = &other.certificate;
    let of_lists = folder.path().join("eu.xml");
    let text = List::of_lists(&[("ES", signer), ("NO", signer)]).sign(&commission);
    fs::write(&of_lists, text).unwrap();
    for country in ["ES", "FR"] {
        let list = List::national(country, vec![Service::for_seals("A")]);
        let path = folder.path().join(format!("{country}.xml"));
        fs::write(path, list.sign(&other)).unwrap();
    }
    let request = Request {
        list_of_lists: of_lists,
        pins: vec![commission.certificate.clone()],
        lists: lists_in(folder.path()).unwrap(),
        leave_out: countries.iter().map(|it| (*it).to_owned()).collect(),
        at: at("2026-07-01T00:00:00Z"),
        verifiers: Verifiers::default(),
    };
    import(&request, &mut |_| {})
}

/// By a file, and by the list of lists alone.
//= CRT-13 accepted
#[test]
fn a_country_that_a_list_has() {
    let imported = import_without(&["FR"]).unwrap();
    assert!(imported.lists.keys().eq(["ES"]), "{:?}", imported.lists);
    assert!(imported.missing.keys().eq(["NO"]));
    let imported = import_without(&["ES", "FR", "NO"]).unwrap();
    assert!(imported.lists.is_empty() && imported.missing.is_empty());
}

//= CRT-13 refused
#[test]
fn a_country_that_no_list_has() {
    for (countries, named) in [
        (["FR", "no"], "no"),
        (["FR", "XX"], "XX"),
        (["FR", "es"], "es"),
    ] {
        let found = fault(import_without(&countries));
        let expected =
            format!("--leave-out {named}: there is no such list; there are those of ES, FR, NO");
        assert_eq!(found, expected);
    }
}
