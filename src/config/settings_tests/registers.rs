//! Registers by a mapping: what their rows say of it, and constants that it cannot have.

use super::*;
use crate::clock::{Clock, Timestamp};

/// A configuration with one register of this mapping, whose file is `list.csv`.
fn with_list(mapping: &str) -> String {
    format!(
        "{LEAST}registers: {{check: on, lists: {{national: {{file: list.csv, format: csv, {mapping}}}}}}}\n"
    )
}

/// The warnings of a register with this mapping and these rows, but for those of its age.
fn warnings(mapping: &str, rows: &str) -> Vec<String> {
    let site = Site::new();
    site.write("config/list.csv", rows);
    let read = site
        .read(&with_list(mapping))
        .unwrap_or_else(|faults| panic!("{mapping}: {faults:?}"));
    let now: Timestamp = Clock::System.now();
    let warnings = read.reloadable.warnings.iter();
    let warnings = warnings.filter_map(|warning| Some(warning.at(now)?.to_string()));
    warnings.filter(|text| !text.contains("max_age")).collect()
}

#[test]
fn rows_that_a_mapping_leaves_without_effect_are_said() {
    const WHOLE: &str = "columns: {tpp: TPP, roles: ROLES, status: STATUS, countries: WHERE, changed: ON}, authorised: [Active]";
    const PARTS: &str =
        "columns: {country: TPP, authority: STATUS, id: WHERE, roles: ROLES, changed: ON}";
    let good = "PSDNO-FSA-1,PSP_AI,Active,NO,2026-01-31\n";
    let one = |rows: &str| format!("TPP,ROLES,STATUS,WHERE,ON\n{rows}");
    assert_eq!(warnings(WHOLE, &one(good)), [""; 0]);
    let half = format!("{good}1,PSP_AI,Active,NO,\n");
    assert_eq!(warnings(WHOLE, &one(&half)), [""; 0]);
    for (mapping, rows, expected) in [
        (
            WHOLE,
            "PSDNO-FSA-1,PSP_AI,Valid,NO,2026-01-31\n",
            "no row has an authorisation that stands, so that the file authorises nobody: compare authorised",
        ),
        (
            WHOLE,
            "PSDNO-FSA-1,PSP_AS,Active,NO,2026-01-31\n",
            "no row that stands has PSP_AI or PSP_PI in NO, so that the file authorises nobody: compare roles",
        ),
        (
            WHOLE,
            "PSDNO-FSA-1,PSP_AI,Active,SE,2026-01-31\n",
            "and countries and everywhere with registers.host_country",
        ),
        (
            WHOLE,
            "PSDNO-FSA-1,PSP_AI,Active,NO,2026-01-31\n1,PSP_AI,Active,NO,\n2,PSP_AI,Active,NO,\n",
            "2 of 3 rows have no identity that a certificate can have (PSD<country>-<authority>-<id>), and authorise nobody: compare tpp of",
        ),
        (
            PARTS,
            "NO,PSP_AI,FSA,1,2026-01-31\n1,PSP_AI,FSA,2,\n,PSP_AI,FSA,3,\n",
            "compare country, authority and id of the mapping",
        ),
        (
            WHOLE,
            "PSDNO-FSA-1,PSP_AI,Active,NO,\n",
            "no row has a date, though changed is mapped",
        ),
        (
            WHOLE,
            "PSDNO-FSA-1,AISP,Active,NO,2026-01-31\nPSDNO-FSA-1,PSP_PI,Active,NO,\n",
            "that authorise nothing: AISP; name them in roles",
        ),
    ] {
        let found = warnings(mapping, &one(rows));
        assert!(
            matches!(&found[..], [one] if one.contains("registers.lists.national.file: ") && one.contains(expected)),
            "{expected}: {found:?}"
        );
    }
}

#[test]
fn a_constant_identity_is_a_fault() {
    for (values, key) in [
        ("{tpp: PSDNO-FSA-1}", "tpp"),
        ("{country: NO, authority: FSA, id: 1}", "id"),
    ] {
        let site = Site::new();
        site.write("config/list.csv", "ROLES\nPSP_AI\n");
        let text = with_list(&format!("columns: {{roles: ROLES}}, values: {values}"));
        let faults = site.read(&text).err().unwrap_or_default();
        let expected = format!(
            "registers.lists.national.values.{key}: every row would be the same TPP: name a column"
        );
        assert!(
            matches!(&faults[..], [one] if one.starts_with("gateway.yaml:6:") && one.contains(&expected)),
            "{faults:?}"
        );
    }
}
