//! A second verifier that objects, or cannot be run: that is the reason of the refusal, whatever the pivots lead to.

use super::{at, fault};
use crate::{
    for_tests::{
        AGREES,
        mint::{List, Scheme, Signer},
        script,
    },
    import::{Fault, Imported, Request, import, lists_in},
    second::Verifiers,
};
use std::{collections::BTreeSet, fs, path::PathBuf};

/// A pivot, `pivot.xml`, that the pinned signer signed, and that names the next one.
struct Place {
    folder: tempfile::TempDir,
    pinned: Signer,
    next: Signer,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [pinned, next] = ["Pinned", "Next"].map(|name| Signer::new(name, Scheme::Ecdsa));
        let mut pivot = List::of_lists(&[]);
        pivot.pointers.push((
            "EUlistofthelists",
            "EU",
            "https://lists.example/eu.xml".to_owned(),
            vec![next.certificate.clone()],
        ));
        fs::write(folder.path().join("pivot.xml"), pivot.sign(&pinned)).unwrap();
        Self {
            folder,
            pinned,
            next,
        }
    }

    /// Imports a list of lists that this signer signed, and that names the pivot.
    fn import(&self, signer: &Signer, second: PathBuf) -> Result<Imported, Vec<Fault>> {
        let mut list = List::of_lists(&[("ES", &self.next.certificate)]);
        list.information = vec!["https://lists.example/pivot.xml".to_owned()];
        let path = self.folder.path().join("eu.xml");
        fs::write(&path, list.sign(signer)).unwrap();
        let request = Request {
            list_of_lists: path,
            pins: vec![self.pinned.certificate.clone()],
            lists: lists_in(self.folder.path()).unwrap(),
            leave_out: BTreeSet::new(),
            at: at("2026-07-01T00:00:00Z"),
            verifiers: Verifiers::new(Some(second)),
        };
        import(&request, &mut |_| {})
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        script(self.folder.path(), name, text)
    }
}

//= CRT-13 accepted
#[test]
fn it_agrees_to_pivots_too() {
    let place = Place::new();
    let agrees = place.script("agrees", AGREES);
    let direct = place.import(&place.pinned, agrees.clone()).unwrap();
    assert!(direct.pivots.is_empty(), "{:?}", direct.pivots);
    let by_pivot = place.import(&place.next, agrees).unwrap();
    assert_eq!(by_pivot.pivots, ["pivot.xml"]);
}

//= CRT-13 refused
#[test]
fn its_objection_is_the_reason() {
    let place = Place::new();
    let missing = || place.folder.path().join("missing");
    let refuses = place.script("refuses", "echo 'FAIL: digest' >&2; exit 1");
    let always = place.script("always", "exit 0");
    // It agrees to the pivot, and not to the list of lists.
    let of_pivots = format!("{AGREES} && ! grep -q pivot.xml \"$file\"");
    let of_pivots = place.script("of-pivots", &of_pivots);
    for (signer, second, file, reason) in [
        (&place.pinned, missing(), "eu.xml", "cannot be run: No such"),
        (
            &place.next,
            missing(),
            "pivot.xml",
            "cannot be run: No such",
        ),
        (&place.pinned, refuses.clone(), "eu.xml", "FAIL: digest"),
        (&place.next, refuses, "pivot.xml", "FAIL: digest"),
        (&place.pinned, always.clone(), "eu.xml", "verifies nothing"),
        (&place.next, always, "pivot.xml", "verifies nothing"),
        (&place.next, of_pivots, "eu.xml", "has verified: exit"),
    ] {
        let found = fault(place.import(signer, second));
        let (named, why) = found.split_once(": the second verifier, ").unwrap();
        assert!(named.ends_with(file) && why.contains(reason), "{found}");
        assert!(!found.contains("pivots:"), "{found}");
    }
}
