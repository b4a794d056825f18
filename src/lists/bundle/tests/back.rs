//! Lists that come back older, in several steps, or under a number that was used (CRT-13).

use super::{Lists, NOW, later};
use crate::{
    bundle::{
        BundleDocument, BundleFolder, CURRENT, Regression, check, describe_import, diff, known,
    },
    show::Shown,
};
use std::{fs, os::unix::fs::symlink, path::Path};

/// Imports Spain's list of a number as the program does.
fn import(out: &Path, lists: &Lists, sequence: u64, seconds: u64) -> Result<(), Vec<Regression>> {
    let folder = BundleFolder::open(out).unwrap();
    let (last, newest) = (
        folder.current().unwrap(),
        folder.newest(later(seconds)).unwrap(),
    );
    let known = known(last.iter().chain(&newest));
    let imported = lists.import(1, sequence);
    let bundle = describe_import(&imported, &known, later(seconds));
    let mut faults = check(last.as_ref(), &known, &bundle, true);
    // The list of lists is signed anew under its number.
    faults.retain(
        |fault| !matches!(fault, Regression::OtherContent { territory, .. } if territory == "EU"),
    );
    match faults.is_empty() {
        true => folder.write(&bundle, &imported.anchors).map(drop).unwrap(),
        false => return Err(faults),
    }
    Ok(())
}

fn is_older(faults: &[Regression]) -> bool {
    matches!(
        faults,
        [Regression::Older {
            sequence: 7,
            last_sequence: 8,
            ..
        }]
    )
}

/// A clock that was ahead made a bundle, and its folder stays the last one by name.
//= CRT-13 refused
#[test]
fn a_bundle_that_is_named_ahead_of_the_clock_hides_no_other() {
    let lists = Lists::new(1);
    let out = tempfile::TempDir::new().unwrap();
    import(out.path(), &lists, 7, 0).unwrap();
    let current = out.path().join(CURRENT);
    let first = out.path().join(fs::read_link(&current).unwrap());
    let ahead = out.path().join("2999-01-01T000000Z");
    fs::rename(&first, &ahead).unwrap();
    fs::remove_file(&current).unwrap();
    import(out.path(), &lists, 8, 2).unwrap();
    fs::remove_file(&current).unwrap();
    symlink(&ahead, &current).unwrap();
    let faults = import(out.path(), &lists, 7, 4).unwrap_err();
    assert!(is_older(&faults), "{faults:?}");
}

/// An import into a bundle would know no list before it.
//= CRT-13 refused
#[test]
fn a_bundle_is_no_folder_of_bundles() {
    let lists = Lists::new(1);
    let out = tempfile::TempDir::new().unwrap();
    import(out.path(), &lists, 8, 0).unwrap();
    let refusal = BundleFolder::open(&out.path().join(CURRENT)).unwrap_err();
    let text = "current: it is a bundle, and an import there would know no list before it; name the folder of all bundles";
    assert!(refusal.to_string().ends_with(text), "{refusal}");
}

/// `--leave-out ES --allow-shrink`, and then an older list of Spain.
//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn a_list_that_was_left_out_does_not_come_back_older() {
    let lists = Lists::new(1);
    let of = |known: &[&BundleDocument], sequence, seconds| {
        let known = super::known(known.iter().copied());
        describe_import(&lists.import(1, sequence), &known, later(seconds))
    };
    let first = of(&[], 8, 0);
    let mut without = first.clone();
    without.lists.clear();
    without.earlier = known([&first]);
    without.earlier.retain(|list| list.territory == "ES");
    assert_eq!(without.earlier[0].sequence, 8);
    assert_eq!(known([&without]), known([&first]));
    // Carried on from bundle to bundle.
    let mut imported = lists.import(1, 8);
    imported.lists.clear();
    let mut again = describe_import(&imported, &known([&without]), later(2));
    again.anchors.clear();
    assert_eq!(again.earlier, without.earlier);
    let text = serde_yaml::to_string(&again).unwrap();
    assert_eq!(BundleDocument::read(&text).unwrap(), again);
    let faults = check(Some(&again), &known([&again]), &of(&[&again], 7, 3), true);
    assert!(
        faults
            .iter()
            .any(|fault| is_older(std::slice::from_ref(fault))),
        "{faults:?}"
    );
    let newer = of(&[&again], 9, 3);
    assert!(newer.earlier.is_empty());
    let faults = check(Some(&again), &known([&again]), &newer, true);
    assert!(faults.iter().all(
        |fault| matches!(fault, Regression::OtherContent { territory, .. } if territory == "EU")
    ));
}

/// A link that leads back, and one that is removed, forget nothing: the newest bundle knows.
//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn a_bundle_that_was_taken_back_is_remembered() {
    let lists = Lists::new(1);
    let out = tempfile::tempdir().unwrap();
    let current = out.path().join(CURRENT);
    import(out.path(), &lists, 6, 0).unwrap();
    import(out.path(), &lists, 8, 1).unwrap();
    fs::remove_file(&current).unwrap();
    assert!(is_older(&import(out.path(), &lists, 7, 2).unwrap_err()));
    symlink("2026-07-01T000000Z", &current).unwrap();
    assert!(is_older(&import(out.path(), &lists, 7, 2).unwrap_err()));
    import(out.path(), &lists, 9, 2).unwrap();
}

/// The newest bundle was taken back, and then its document was damaged or removed, or its folder was exchanged for a link: what it knew must not be
/// forgotten without a word.
//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn a_newest_bundle_that_is_damaged_is_not_passed_over() {
    let lists = Lists::new(1);
    let out = tempfile::tempdir().unwrap();
    let current = out.path().join(CURRENT);
    import(out.path(), &lists, 7, 0).unwrap();
    import(out.path(), &lists, 8, 1).unwrap();
    fs::remove_file(&current).unwrap();
    symlink("2026-07-01T000000Z", &current).unwrap();
    let newest = out.path().join("2026-07-01T000001Z");
    let document = newest.join("bundle.yaml");
    let good = fs::read(&document).unwrap();
    let [aside, elsewhere] =
        ["aside", "elsewhere"].map(|name| out.path().join(".hidden").join(name));
    fs::create_dir(out.path().join(".hidden")).unwrap();
    let faults = |path: &Path| Shown::open(path, later(2)).unwrap().damaged;
    assert_eq!(faults(&current), [""; 0]);
    type Step<'a> = &'a dyn Fn();
    let cases: [(Step<'_>, Step<'_>, &str); 4] = [
        (
            &|| fs::write(&document, &good[..good.len() - 10]).unwrap(),
            &|| fs::write(&document, &good).unwrap(),
            "missing field `end`",
        ),
        (
            &|| fs::write(&document, "format: 1\n").unwrap(),
            &|| fs::write(&document, &good).unwrap(),
            "line 1: it has the format 1",
        ),
        (
            &|| fs::rename(&document, &aside).unwrap(),
            &|| fs::rename(&aside, &document).unwrap(),
            "bundle.yaml: No such file",
        ),
        (
            &|| {
                fs::rename(&newest, &elsewhere).unwrap();
                symlink(&elsewhere, &newest).unwrap();
            },
            &|| {
                fs::remove_file(&newest).unwrap();
                fs::rename(&elsewhere, &newest).unwrap();
            },
            "it is a link",
        ),
    ];
    for (spoil, mend, expected) in cases {
        spoil();
        let folder = BundleFolder::open(out.path()).unwrap();
        let refusals = folder.newest(later(2)).unwrap_err();
        let [refusal] = refusals.as_slice() else {
            panic!("{refusals:?}");
        };
        let text = refusal.to_string();
        assert!(text.contains(expected), "{text}");
        let what = "put 2026-07-01T000001Z back from a copy, or, without one, move it out of ";
        assert!(text.contains(what), "{text}");
        // The bundle in use is good, and the page says what is refused.
        assert_eq!(
            faults(&current),
            [format!("the next import is refused: {text}")]
        );
        let opened = Shown::open(out.path(), later(2));
        assert!(opened.is_err(), "the newest is shown, and no other");
        mend();
        drop(folder);
        assert!(is_older(&import(out.path(), &lists, 7, 2).unwrap_err()));
    }
    // As it says, without a copy.
    fs::rename(&newest, &elsewhere).unwrap();
    import(out.path(), &lists, 8, 2).unwrap();
}

/// A new issue has a new number (TS 119 612, clause 5.3.2).
//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn a_number_names_one_issue() {
    let lists = Lists::new(1);
    let of = || describe_import(&lists.import(1, 7), &[], NOW);
    let one = of();
    let mut next = one.clone();
    assert!(check(Some(&one), &known([&one]), &next, false).is_empty());
    next.lists[0].sha256 = "00".to_owned();
    for allow_shrink in [false, true] {
        let faults = check(Some(&one), &known([&one]), &next, allow_shrink);
        let [fault @ Regression::OtherContent { sequence: 7, .. }] = faults.as_slice() else {
            panic!("{faults:?}");
        };
        let text = fault.to_string();
        assert!(
            text.starts_with("ES: sequence 7, issued 2026-06-01T00:00:00Z, is another file"),
            "{text}"
        );
    }
    // With a later time of issue it is told.
    next.lists[0].issued = later(0);
    assert!(check(Some(&one), &known([&one]), &next, false).is_empty());
    let lines = diff(&one, &next);
    let [line] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert!(
        line.starts_with("~ list ES: sequence 7 again, issued 2026-07-01"),
        "{line}"
    );
}
