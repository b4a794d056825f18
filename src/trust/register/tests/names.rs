//! CTL-1: the names of TPPs.

use super::{
    super::{
        MappedFormat, Mapping, Member, Origin, RegisterName, RegisterSettings, Registers,
        WhenWithdrawn,
    },
    NOW, both, entity, id, read,
};
use serde_json::json;

/// A register with a column for names.
fn mapping() -> Mapping {
    let column = |name: &str| Origin::Column(name.to_owned());
    Mapping {
        format: MappedFormat::Csv { separator: b';' },
        origins: vec![
            (Member::Tpp, column("TPP")),
            (Member::Name, column("NAME")),
            (Member::Roles, Origin::Constant("AIS".to_owned())),
        ],
        list_separator: ",".to_owned(),
        authorised: Vec::new(),
        everywhere: Vec::new(),
        roles: vec![("AIS".to_owned(), 3)],
        date: "%Y-%m-%d".to_owned(),
        max_age: None,
        withdrawn: WhenWithdrawn::Refuse,
    }
}

fn take(registers: &mut Registers, rows: &str) {
    let taken = registers.take_mapped(RegisterName::new("own"), &mapping(), rows.as_bytes(), NOW);
    taken.unwrap();
}

#[test]
fn a_tpp_has_the_first_name_of_the_first_register_that_has_one() {
    let mut unnamed = entity("NO_FSA", json!("3"), both());
    unnamed["Properties"] = json!([{"ENT_NAT_REF_COD": "3"}]);
    let mut registers = read(&[entity("NO_FSA", json!("1-2"), both()), unnamed]);
    let rows = "TPP;NAME\nPSDNO-FSA-12;B\nPSDNO-FSA-3;\" C\u{7} AS \"\nPSDNO-FSA-4;\n";
    take(&mut registers, rows);
    let name = |tpp: &str| registers.tpp_name(&id(tpp)).map(str::to_owned);
    assert_eq!(name("PSDNO-FSA-1-2").as_deref(), Some("A"));
    // The one entry that differs in spaces and dashes only.
    assert_eq!(name("PSDNO-FSA-12").as_deref(), Some("A"));
    assert_eq!(name("PSDNO-FSA-3").as_deref(), Some("C AS"));
    for nobody in ["PSDNO-FSA-4", "PSDNO-FSA-5"] {
        assert_eq!(name(nobody), None, "{nobody}");
    }
}

#[test]
fn a_long_name_is_cut() {
    let mut registers = Registers::new(RegisterSettings::default());
    let long = "å".repeat(129);
    take(&mut registers, &format!("TPP;NAME\nPSDNO-FSA-1;{long}\n"));
    let name = registers.tpp_name(&id("PSDNO-FSA-1")).unwrap();
    assert_eq!(name.chars().count(), 128);
}
