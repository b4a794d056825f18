//! Real lists: as many services of each type and state as a plain scan of the text finds, and the same anchors.

use super::{at, fault, folder_of, import_folder};
use crate::{
    Certificate,
    for_tests::{
        mint::{List, Scheme, Signer},
        own_signer, real_lists,
    },
    import::{Counts, Imported},
    list::ListType,
};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The text of each element of this name, whatever its prefix, without looking at the structure around it.
fn scan<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(name) {
        let before = &rest[..start];
        let after = &rest[start + name.len()..];
        rest = after;
        let tag = before.rfind('<').map_or("", |open| &before[open..]);
        let prefix = tag.strip_prefix('<').unwrap_or("/");
        let is_prefix = prefix.is_empty() || prefix.ends_with(':') && !prefix.contains('/');
        let is_start = is_prefix && after.starts_with(['>', ' ', '\n', '\r', '\t']);
        if !is_start {
            continue;
        }
        let body = &after[after.find('>').unwrap() + 1..];
        let end = body.find(&format!("</{prefix}{name}>")).unwrap();
        found.push(&body[..end]);
    }
    found
}

/// How many services a scan of the text finds, by type and state.
fn scan_counts(text: &str) -> Counts {
    let mut counts = Counts::new();
    for service in scan(text, "ServiceInformation") {
        let service_type = scan(service, "ServiceTypeIdentifier")[0].trim();
        let state = scan(service, "ServiceStatus")[0].trim();
        let service_type = service_type.split("/Svctype/").nth(1).unwrap();
        let state = state.rsplit('/').next().unwrap();
        *counts
            .entry((service_type.to_owned(), state.to_owned()))
            .or_default() += 1;
    }
    counts
}

/// The certificates of granted CA/QC services for a use, by a scan of the text.
fn scan_anchors(text: &str, additional: &str) -> BTreeSet<[u8; 32]> {
    let services = scan(text, "ServiceInformation").into_iter();
    let granted = services.filter(|it| {
        scan(it, "ServiceTypeIdentifier")[0]
            .trim()
            .ends_with("Svctype/CA/QC")
            && scan(it, "ServiceStatus")[0].trim().ends_with("/granted")
            && it.contains(additional)
    });
    granted
        .flat_map(|it| scan(it, "X509Certificate"))
        .map(|it| Certificate::from_base64(it).unwrap().sha256())
        .collect()
}

fn anchors_of(imported: &Imported, territory: &str, seals: bool) -> BTreeSet<[u8; 32]> {
    let all = imported.anchors.all();
    let of = all.filter(|(_, anchor)| {
        anchor.services.iter().any(|it| {
            it.territory == territory
                && if seals {
                    it.uses.seals
                } else {
                    it.uses.websites
                }
        })
    });
    of.map(|(digest, _)| *digest).collect()
}

fn compare(imported: &Imported, territory: &str, path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let found = &imported.lists[territory].counts;
    assert_eq!(*found, scan_counts(&text), "{territory}");
    for (seals, additional) in [(true, "ForeSeals"), (false, "ForWebSiteAuthentication")] {
        let found = anchors_of(imported, territory, seals);
        let expected = scan_anchors(&text, additional);
        println!("{territory} {additional}: {}", found.len());
        assert_eq!(found, expected, "{territory} {additional}");
    }
}

//= CRT-13 accepted
#[test]
fn lists_of_2019() {
    let Some(root) = real_lists() else { return };
    let list_of_lists = root.join("EU.xml");
    let pins = [own_signer(&list_of_lists)];
    let imported = import_folder(&list_of_lists, &pins, &root, "2019-10-01T00:00:00Z").unwrap();
    let countries = ["CZ", "DK", "FI", "HR", "IE", "IS", "NO", "SE"];
    assert!(
        imported.lists.keys().eq(countries),
        "{:?}",
        imported.lists.keys()
    );
    for country in countries {
        compare(&imported, country, &root.join(format!("{country}.xml")));
    }
    assert!(imported.missing.contains_key("DE"));
    assert!(!imported.missing.contains_key("CZ"));
    assert!(
        imported.anchors.left_out().is_empty(),
        "{:?}",
        imported.anchors.left_out()
    );
}

//= CRT-13 accepted
#[test]
fn lists_of_2026() {
    let Some(root) = real_lists() else { return };
    let list_of_lists = root.join("v6/eu-lotl-seq388.xml");
    let pins = [own_signer(&list_of_lists)];
    let spain = root.join("v6/es-tl-seq187.xml");
    let folder = folder_of(&[&spain]);
    let imported =
        import_folder(&list_of_lists, &pins, folder.path(), "2026-07-16T00:00:00Z").unwrap();
    compare(&imported, "ES", &spain);
    assert!(imported.pivots.is_empty());
    // Five years before, other services were granted.
    let before =
        import_folder(&list_of_lists, &pins, folder.path(), "2021-07-16T00:00:00Z").unwrap();
    let (then, now) = (
        anchors_of(&before, "ES", true),
        anchors_of(&imported, "ES", true),
    );
    assert!(!then.is_subset(&now) && !now.is_subset(&then));
}

//= CRT-13 refused
#[test]
fn out_of_date() {
    let Some(root) = real_lists() else { return };
    let list_of_lists = root.join("EU.xml");
    let pins = [own_signer(&list_of_lists)];
    let found = fault(import_folder(
        &list_of_lists,
        &pins,
        &root,
        "2026-01-01T00:00:00Z",
    ));
    assert!(
        found.contains("its next update was due on 2020-03-04T00:00:00Z"),
        "{found}"
    );
    // The list of lists serves until March 2020, those of HR, IS and SE until December 2019.
    let faults = import_folder(&list_of_lists, &pins, &root, "2020-01-01T00:00:00Z").unwrap_err();
    let names: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(
        names.iter().all(|it| it.contains("out of date")),
        "{names:?}"
    );
}

/// The folder of pivots, and a list in it.
fn pivots(root: &Path, name: &str) -> (PathBuf, PathBuf) {
    let folder = root.join("pivots");
    let list = folder.join(format!("lotl_test_{name}.xml"));
    (folder, list)
}

/// The pointer of a list of lists to itself names the next signers.
fn named_signers(path: &Path) -> Vec<Certificate> {
    let document = crate::Document::parse(fs::read(path).unwrap()).unwrap();
    let pointers = crate::list::claimed_pointers(&document).unwrap();
    let own = pointers
        .into_iter()
        .find(|it| it.list_type == ListType::ListOfLists);
    own.unwrap().signers
}

const TIME_OF_PIVOTS: &str = "2024-01-01T00:00:00Z";

/// Imports a list of the folder of pivots, and no national one.
fn import_pivots(
    root: &Path,
    name: &str,
    pins: &[Certificate],
) -> Result<Imported, Vec<super::Fault>> {
    let (folder, list) = pivots(root, name);
    import_folder(&list, pins, &folder, TIME_OF_PIVOTS)
}

//= CRT-13 accepted
#[test]
fn pivots_lead_from_the_pins_to_the_signer() {
    let Some(root) = real_lists() else { return };
    // One of the two that the first Official Journal names.
    let first = [own_signer(&pivots(&root, "OJ_1_pivot_01").1)];
    let direct = import_pivots(&root, "loc_01", &first).unwrap();
    assert!(direct.pivots.is_empty());
    let names = |found: &Imported| found.pivots.clone();
    let one = import_pivots(&root, "OJ_1_pivot_02", &first).unwrap();
    assert_eq!(names(&one), ["lotl_test_OJ_1_pivot_01.xml"]);
    let all = import_pivots(&root, "OJ_2_pivot_02", &first).unwrap();
    assert_eq!(all.pivots.len(), 4, "{:?}", all.pivots);
    // The second Official Journal has the signers that the last pivot of the first names.
    let second = named_signers(&pivots(&root, "OJ_1_pivot_03").1);
    let after = import_pivots(&root, "OJ-2_reset_pivot", &second).unwrap();
    let expected = ["lotl_test_OJ_2_pivot_01.xml", "lotl_test_OJ_2_pivot_02.xml"];
    assert_eq!(names(&after), expected);
}

//= CRT-13 refused
#[test]
fn pivots_that_do_not_lead_to_the_signer() {
    let Some(root) = real_lists() else { return };
    let first = [own_signer(&pivots(&root, "OJ_1_pivot_01").1)];
    // The reset names no pivot of before: only new pins lead to it.
    let found = fault(import_pivots(&root, "OJ-2_reset_pivot", &first));
    assert!(found.contains("signed by none of"), "{found}");
    assert!(found.contains("lotl_test_OJ_2_pivot_01.xml"), "{found}");
    // A pivot that is missing.
    let (_, list) = pivots(&root, "OJ_1_pivot_03");
    let (_, one) = pivots(&root, "OJ_1_pivot_01");
    let folder = folder_of(&[&one]);
    let found = fault(import_folder(&list, &first, folder.path(), TIME_OF_PIVOTS));
    assert!(
        found.contains("the pivot lotl_test_OJ_1_pivot_02.xml is not in the folder"),
        "{found}"
    );
    // A pivot that was altered.
    let (_, two) = pivots(&root, "OJ_1_pivot_02");
    let text = fs::read_to_string(&two).unwrap().replacen("320", "321", 1);
    fs::write(folder.path().join(two.file_name().unwrap()), text).unwrap();
    let found = fault(import_folder(&list, &first, folder.path(), TIME_OF_PIVOTS));
    assert!(
        found.contains("lotl_test_OJ_1_pivot_02.xml: line"),
        "{found}"
    );
    assert!(found.contains("altered"), "{found}");
}

/// A folder with Finland's list, and a list of lists that names the signer whom the list has.
fn finland(root: &Path, name: &str) -> (tempfile::TempDir, PathBuf, Certificate) {
    let list = root.join("v6").join(name);
    let folder = folder_of(&[&list]);
    let signer = Signer::new("List of lists", Scheme::Ecdsa);
    let mut of_lists = List::of_lists(&[("FI", &own_signer(&list))]);
    of_lists.next_update = None;
    let path = folder.path().join("eu.xml");
    fs::write(&path, of_lists.sign(&signer)).unwrap();
    (folder, path, signer.certificate)
}

fn import_finland(root: &Path, name: &str) -> Result<Imported, Vec<super::Fault>> {
    let (folder, list, pin) = finland(root, name);
    import_folder(&list, &[pin], folder.path(), "2025-01-01T00:00:00Z")
}

//= CRT-13 accepted
#[test]
fn lists_of_either_version() {
    let Some(root) = real_lists() else { return };
    for name in ["fi-v5.xml", "fi-v5-sig-cert-v2.xml", "fi-v6.xml"] {
        let imported = import_finland(&root, name).unwrap();
        compare(&imported, "FI", &root.join("v6").join(name));
    }
}

//= CRT-13 refused
#[test]
fn lists_that_are_not_of_the_profile() {
    let Some(root) = real_lists() else { return };
    for (name, reason) in [
        ("fi-v5-invalid.xml", "with a type, which version 5 has not"),
        (
            "fi-v6-no-supply-points-type.xml",
            "without a type, which version 6 requires",
        ),
        // A part was cut out after it was signed.
        ("fi-v6-no-service-information.xml", "altered"),
        ("fi-v6-no-tsp-information.xml", "altered"),
        (
            "fi-v6-sig-cert.xml",
            "version 6 requires SigningCertificateV2",
        ),
    ] {
        let found = fault(import_finland(&root, name));
        println!("{found}");
        assert!(found.contains(reason), "{found}");
    }
}

//= CRT-13 refused
#[test]
fn altered_lists() {
    let Some(root) = real_lists() else { return };
    let of_lists = root.join("EU.xml");
    let pins = [own_signer(&of_lists)];
    for (name, reason) in [
        ("CZ_broken-sig.xml", "altered"),
        ("CZ_no-sig.xml", "not signed"),
        ("CZ_two-sigs.xml", "a second signature"),
        ("eu-lotl_not-parsable.xml", "not well-formed"),
    ] {
        let folder = folder_of(&[&root.join("altered").join(name)]);
        let found = fault(import_folder(
            &of_lists,
            &pins,
            folder.path(),
            "2019-10-01T00:00:00Z",
        ));
        println!("{found}");
        assert!(found.contains(name) && found.contains(reason), "{found}");
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, reason) in [
        ("eu-lotl_broken-sig.xml", "altered"),
        ("eu-lotl_non-compliant.xml", "no SchemeOperatorAddress"),
        ("eu-lotl_not-parsable.xml", "not well-formed"),
    ] {
        let list = root.join("altered").join(name);
        let found = fault(import_folder(
            &list,
            &pins,
            folder.path(),
            "2019-10-01T00:00:00Z",
        ));
        println!("{found}");
        assert!(found.contains(reason), "{found}");
    }
    // A byte order mark before a good one.
    let list = root.join("altered/tl_pivot_247_mp_with-bom.xml");
    let pins = [own_signer(&list)];
    let imported = import_folder(&list, &pins, folder.path(), "2019-10-01T00:00:00Z").unwrap();
    assert_eq!(imported.list_of_lists.scheme.sequence, 247);
    assert_eq!(imported.at, at("2019-10-01T00:00:00Z"));
}
