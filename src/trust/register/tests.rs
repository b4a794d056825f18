//! The formats of the EBA's export, and both registers together.

mod names;

use super::*;
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::from_unix(1_800_000_000);

fn ai() -> Roles {
    Roles::default().with(3)
}

fn pi() -> Roles {
    Roles::default().with(2)
}

fn id(text: &str) -> TppId {
    TppId::parse(text).unwrap()
}

/// The entries of a TPP; the default if the text is not an identity.
fn find<'a>(registers: &'a Registers, text: &str) -> Registration<'a> {
    TppId::parse(text).map_or_else(Registration::default, |tpp| registers.find(&tpp))
}

/// The one register.
fn only(registers: &Registers) -> &Register {
    &registers.each()[0]
}

fn entity(owner: &str, id: Value, services: Value) -> Value {
    json!({
        "CA_OwnerID": owner,
        "EntityCode": format!("{owner}!77{}", id.as_str().unwrap_or_default().len()),
        "EntityType": "PSD_PI",
        "Properties": [{"ENT_NAT_REF_COD": id}, {"ENT_NAM": ["A", "Å"]}, {"ENT_AUT": ["2019-01-01"]}],
        "Services": services,
        "__EBA_EntityVersion": "20220428213506543",
    })
}

fn read(entities: &[Value]) -> Registers {
    let text = json!([[{"__EBA_Disclaimer": ["x"]}], entities]).to_string();
    let mut registers = Registers::new(RegisterSettings::default());
    registers.take_eba(text.as_bytes(), NOW).unwrap();
    registers
}

fn both() -> Value {
    json!([{"NO": ["PS_070", "PS_080", "PS_03A"]}])
}

#[test]
fn one_identity_in_every_spelling() {
    let registers = read(&[
        entity("NO_FSA", json!("987 654-321"), both()),
        entity("FI_FIN-FSA", json!("2988499-7"), both()),
        entity("PL_PFSA", json!("ip27/2014"), both()),
    ]);
    for known in [
        "PSDNO-FSA-987654321",
        "PSDNO-FSA-987 654 321",
        "PSDNO-FSA-987-654-321",
        "PSDFI-FINFSA-29884997",
        "PSDFI-FINFSA-2988499-7",
        "PSDPL-PFSA-IP27/2014",
    ] {
        assert_eq!(find(&registers, known).roles(), ai().or(pi()), "{known}");
    }
    for unknown in [
        "PSDSE-FSA-987654321",
        "PSDNO-FINA-987654321",
        "PSDNO-FSA-98765432",
        "NTRNO-987654321",
        "PSDNO-FSA-",
        "PSD",
        "PSæ-FSA-987654321",
        "",
    ] {
        assert_eq!(
            find(&registers, unknown),
            Registration::default(),
            "{unknown}"
        );
    }
}

#[test]
fn exactly_this_identity_comes_first() {
    let of = |service: &str| json!([{ "NO": [service] }]);
    let mut registers = read(&[
        entity("NO_FSA", json!("123-456"), of("PS_070")),
        entity("NO_FSA", json!("12-3456"), of("PS_080")),
        entity("NO_FSA", json!("77 1"), of("PS_080")),
    ]);
    let roles =
        |registers: &Registers, id: &str| find(registers, &format!("PSDNO-FSA-{id}")).roles();
    assert_eq!(roles(&registers, "123-456"), pi());
    assert_eq!(roles(&registers, "12-3456"), ai());
    // The text is ambiguous: both entries match.
    assert_eq!(roles(&registers, "123456"), Roles::default());
    assert_eq!(roles(&registers, "1-23456"), Roles::default());
    assert_eq!(roles(&registers, "771"), ai());
    assert_eq!(roles(&registers, "7-7-1"), ai());
    // The bank's own list is searched separately, and allows exactly the TPP that it names (FWD-6).
    registers.allow(PermittedTpp::parse("PSDNO-FSA-771").unwrap(), pi());
    assert_eq!(roles(&registers, "771"), ai().or(pi()));
    assert_eq!(roles(&registers, "77 1"), ai());
    let alike = registers.allowed_alike(&id("PSDNO-FSA-77 1"));
    assert_eq!(alike, Some(&id("PSDNO-FSA-771")));
    assert_eq!(registers.allowed_alike(&id("PSDNO-FSA-771")), None);
    // A block applies to every spelling of the identity.
    registers.block(ForbiddenTpp::parse("psdno-fsa-7 7 1").unwrap());
    for spelling in ["771", "77 1", "7-71", "7--71"] {
        let found = find(&registers, &format!("PSDNO-FSA-{spelling}"));
        assert!(found.blocked, "{spelling}");
    }
    assert!(!find(&registers, "PSDNO-FSA-123456").blocked);
}

#[test]
fn what_no_certificate_can_name_is_nobody() {
    let registers = read(&[
        entity("NO_FSA", json!("\u{ff11}23"), both()),
        entity("NO_FSA", json!("1\u{a0}23"), both()),
        entity("NO_FSA", json!("- -"), both()),
        entity("NO_F\u{17f}A", json!("123"), both()),
        entity("NO_F-SA", json!("123"), both()),
        entity("SE_FIN-FSA", json!("123"), both()),
    ]);
    for identity in [
        "PSDNO-FSA-123",
        "PSDNO-FSA-",
        "PSDNO-FSA--",
        "PSDSE-FINFSA-123",
    ] {
        assert_eq!(
            find(&registers, identity),
            Registration::default(),
            "{identity}"
        );
    }
}

#[test]
fn services_by_role_and_country() {
    for (services, here, elsewhere) in [
        (json!([{"NO": "PS_080"}]), ai(), Roles::default()),
        (json!([{"NO": ["PS_070"]}, {"SE": ["PS_080"]}]), pi(), ai()),
        (
            json!([{"SE": ["PS_070", "PS_080"]}]),
            Roles::default(),
            ai().or(pi()),
        ),
        (
            json!({"NO": ["PS_070"], "SE": "PS_010"}),
            pi(),
            Roles::default(),
        ),
        (json!(["PS_080"]), ai(), Roles::default()),
        (
            json!([{"NO": ["PS_010"]}]),
            Roles::default(),
            Roles::default(),
        ),
        (json!([]), Roles::default(), Roles::default()),
        (json!(null), Roles::default(), Roles::default()),
    ] {
        let registers = read(&[entity("NO_FSA", json!("1"), services.clone())]);
        let listed = find(&registers, "PSDNO-FSA-1").listed.unwrap();
        let expected = Listing {
            here,
            elsewhere,
            authorised: true,
        };
        assert_eq!(listed, expected, "{services}");
    }
}

#[test]
fn a_withdrawn_authorisation_gives_nothing() {
    for (properties, authorised) in [
        (json!({"ENT_AUT": ["2019-01-01"]}), true),
        (json!({"ENT_AUT": "2019-01-01"}), true),
        (json!({"ENT_AUT": ["2019-01-01", "2021-01-01"]}), false),
        (
            json!({"ENT_AUT": ["2019-01-01", "2021-01-01", "2022-01-01"]}),
            true,
        ),
        (json!({"DER_CHI_ENT_AUT": "Active"}), true),
        (json!({"DER_CHI_ENT_AUT": "Inactive"}), false),
        (json!({}), true),
    ] {
        let mut entity = entity("NO_FSA", json!("1"), both());
        entity["Properties"] = json!([{"ENT_NAT_REF_COD": "1"}, properties]);
        let registers = read(&[entity]);
        let listed = find(&registers, "PSDNO-FSA-1").listed.unwrap();
        assert_eq!(listed.authorised, authorised, "{properties}");
        assert_eq!(!listed.here.is_empty(), authorised, "{properties}");
    }
}

#[test]
fn agents_are_nobody_and_one_company_is_the_union_of_its_entries() {
    let mut agent = entity("NO_FSA", json!("2"), both());
    agent["EntityType"] = "PSD_AG".into();
    let mut withdrawn = entity("NO_FSA", json!("1"), both());
    withdrawn["Properties"][2] = json!({"ENT_AUT": ["2019-01-01", "2020-01-01"]});
    let now_emi = entity("NO_FSA", json!("1"), json!([{"NO": "PS_080"}]));
    let again = entity("NO_FSA", json!("1"), json!([{"SE": "PS_070"}]));
    let registers = read(&[agent, withdrawn, now_emi, again]);
    assert_eq!(find(&registers, "PSDNO-FSA-2"), Registration::default());
    let expected = Listing {
        here: ai(),
        elsewhere: pi(),
        authorised: true,
    };
    assert_eq!(find(&registers, "PSDNO-FSA-1").listed, Some(expected));
    let read = only(&registers).counts();
    assert_eq!((read.institutions, read.agents), (3, 1));
    assert_eq!((read.authorised, read.with_role, read.dated), (2, 1, 4));
}

#[test]
fn the_authoritys_own_number_counts_where_it_is_nobodys_national_id() {
    let mut numbered = entity("NO_FSA", json!("123456789"), both());
    numbered["EntityCode"] = "NO_FSA!42".into();
    let mut met = entity("NO_FSA", json!("555"), both());
    met["EntityCode"] = "NO_FSA!900".into();
    let other = entity("NO_FSA", json!("900"), json!([{"NO": "PS_080"}]));
    let mut branch = entity("NO_FSA", json!("31"), both());
    branch["EntityCode"] = "PSD_PI!NO_FSA!42!7".into();
    let registers = read(&[numbered, met, other, branch]);
    assert_eq!(find(&registers, "PSDNO-FSA-42").roles(), ai().or(pi()));
    assert_eq!(find(&registers, "PSDNO-FSA-900").roles(), ai());
    assert_eq!(find(&registers, "PSDNO-FSA-7"), Registration::default());
}

#[test]
fn odd_entities_are_nobody_and_do_not_cost_the_rest() {
    let registers = read(&[
        json!({}),
        json!({"CA_OwnerID": null, "EntityCode": 7, "Properties": [], "Services": null}),
        json!({"CA_OwnerID": "NOFSA", "EntityCode": "1", "EntityType": "PSD_PI", "New": {"x": [1]}}),
        json!({"CA_OwnerID": "NO_FSA", "Properties": [{"ENT_NAT_REF_COD": [1, true, null, {}]}]}),
        entity("NO_FSA", json!(" - "), both()),
        entity("NO_FSA", json!(["3", "4"]), both()),
    ]);
    assert_eq!(only(&registers).counts().without_identity, 3);
    for known in ["PSDNO-FSA-1", "PSDNO-FSA-3", "PSDNO-FSA-4"] {
        assert!(find(&registers, known).listed.is_some(), "{known}");
    }
}

#[test]
fn what_is_not_the_export_is_refused() {
    for (text, expected) in [
        ("", "it is empty"),
        ("<!DOCTYPE html><html>", "it is a page of HTML"),
        ("\n<HTML lang=en>", "it is a page of HTML"),
        ("<?xml version=\"1.0\"?>", "it is XML"),
        (
            "\u{feff}[[],[]]",
            "it begins with a byte order mark (U+FEFF)",
        ),
        (
            "expired",
            "it is not the EBA's export: expected value at line 1 column",
        ),
        (
            "PK\u{3}\u{4}",
            "it is a zip archive: unpack the JSON file in it",
        ),
        (
            "{}",
            "it is not the EBA's export: invalid type: map, expected a list of two lists, the disclaimer and the entities at line 1 column",
        ),
        (
            "[]",
            "it is not the EBA's export: invalid length 0, expected a list of two lists, the disclaimer and the entities at line 1 column",
        ),
        (
            "[[]]",
            "it is not the EBA's export: invalid length 1, expected a list of two lists, the disclaimer and the entities at line 1 column",
        ),
        (
            "[[],[],[]]",
            "it is not the EBA's export: invalid length 3, expected a list of two lists, the disclaimer and the entities at line 1 column",
        ),
        (
            "[[],\n[3]]",
            "it is not the EBA's export: invalid type: integer `3`, expected struct Entity at line 2 column",
        ),
        (
            "[[],\n[]] x",
            "it is not the EBA's export: trailing characters at line 2 column",
        ),
        ("[[],[]]", "it holds no institution"),
        (
            "[[],[{\"Properties\": 3}]]",
            "it is not the EBA's export: invalid type: integer `3`, expected a list of maps at line 1 column",
        ),
    ] {
        let mut registers = Registers::new(RegisterSettings::default());
        let fault = registers.take_eba(text.as_bytes(), NOW).unwrap_err();
        assert!(fault.to_string().starts_with(expected), "{fault}");
        assert!(registers.is_empty());
    }
    let gzip: &[u8] = &[0x1f, 0x8b, 8, 0];
    let mut registers = Registers::new(RegisterSettings::default());
    let fault = registers.take_eba(gzip, NOW).unwrap_err();
    let expected = "it is a gzip archive: unpack the file in it";
    assert_eq!(fault.to_string(), expected);
    let deep = format!("[[],[{{\"Services\": {}", "[".repeat(100_000));
    let mut registers = Registers::new(RegisterSettings::default());
    let fault = registers.take_eba(deep.as_bytes(), NOW).unwrap_err();
    assert!(fault.to_string().contains("recursion limit"), "{fault}");
}

#[test]
fn the_banks_own_list_adds_and_blocks() {
    let mut registers = read(&[entity("NO_FSA", json!("1"), json!([{"NO": "PS_080"}]))]);
    registers.allow(PermittedTpp::parse("PSDNO-FSA-1").unwrap(), pi());
    registers.allow(PermittedTpp::parse("PSDNO-FSA-2 2").unwrap(), ai());
    registers.block(ForbiddenTpp::parse("PSDNO-FSA-2-2").unwrap());
    assert_eq!(find(&registers, "PSDNO-FSA-1").roles(), ai().or(pi()));
    assert!(find(&registers, "PSDNO-FSA-22").blocked);
}

#[test]
fn a_register_is_as_old_as_its_latest_entry_says() {
    let at = |text: &str| eba::moment(text).unwrap();
    assert_eq!(at("20220428213506543").to_string(), "2022-04-28T21:35:06Z");
    let with = |version: Value, modified: Timestamp| {
        let mut entity = entity("NO_FSA", json!("1"), both());
        entity["__EBA_EntityVersion"] = version;
        let text = json!([[], [entity]]).to_string();
        let mut registers = Registers::new(RegisterSettings::default());
        registers.take_eba(text.as_bytes(), modified).unwrap();
        registers
    };
    let said = at("20220428213506543");
    assert_eq!(only(&with(json!("20220428213506543"), NOW)).as_of(), said);
    // A date in the future does not keep a file fresh, and an invalid date is ignored.
    for odd in [
        "99990428213506543",
        "20221328213506543",
        "x",
        "2022042821350654x",
    ] {
        assert_eq!(only(&with(json!(odd), NOW)).as_of(), NOW, "{odd}");
    }
    assert_eq!(only(&with(json!(null), NOW)).as_of(), NOW);
    let registers = with(json!("20220428213506543"), NOW);
    let week = 7 * 24 * 3_600;
    assert!(
        registers
            .stale(Timestamp::from_unix(said.unix() + week))
            .is_none()
    );
    assert!(
        registers
            .stale(Timestamp::from_unix(said.unix() + week + 1))
            .is_some()
    );
    assert!(registers.stale(Timestamp::from_unix(0)).is_none());
    assert!(
        Registers::new(RegisterSettings::default())
            .stale(NOW)
            .is_none()
    );
}

/// A mapped register whose only row is this one: `id;status`.
fn add(registers: &mut Registers, name: &str, row: &str, withdrawn: WhenWithdrawn, at: u64) {
    let constant = |text: &str| Origin::Constant(text.to_owned());
    let column = |name: &str| Origin::Column(name.to_owned());
    let mapping = Mapping {
        format: MappedFormat::Csv { separator: b';' },
        origins: vec![
            (Member::Country, constant("NO")),
            (Member::Authority, constant("FSA")),
            (Member::Id, column("ID")),
            (Member::Status, column("STATUS")),
            (Member::Roles, constant("PSP_AI")),
        ],
        list_separator: ",".to_owned(),
        authorised: vec!["yes".to_owned()],
        everywhere: Vec::new(),
        roles: vec![("PSP_AI".to_owned(), 3)],
        date: "%Y-%m-%d".to_owned(),
        max_age: None,
        withdrawn,
    };
    let text = format!("ID;STATUS\n{row}\n");
    let (name, at) = (RegisterName::new(name), Timestamp::from_unix(at));
    registers
        .take_mapped(name, &mapping, text.as_bytes(), at)
        .unwrap();
}

/// What wins where registers differ (CRT-14).
#[test]
fn registers_together() {
    let with = |rows: &[(&str, WhenWithdrawn)]| {
        let mut registers = read(&[entity("NO_FSA", json!("1"), json!([{"NO": "PS_070"}]))]);
        for (row, withdrawn) in rows {
            add(&mut registers, "other", row, *withdrawn, NOW.unix());
        }
        registers
    };
    let (refuse, ignore) = (WhenWithdrawn::Refuse, WhenWithdrawn::Ignore);
    // Each register adds its roles.
    let registers = with(&[("1;yes", refuse)]);
    assert_eq!(find(&registers, "PSDNO-FSA-1").roles(), ai().or(pi()));
    assert_eq!(find(&registers, "PSDNO-FSA-1").withdrawn_by, None);
    // A withdrawal refuses, whatever the others say, where its register is configured so.
    let mut registers = with(&[("1;no", refuse)]);
    let found = find(&registers, "PSDNO-FSA-1");
    assert!(found.roles().is_empty());
    assert_eq!(found.withdrawn_by, Some(&RegisterName::new("other")));
    assert_eq!(
        find(&with(&[("1;no", ignore)]), "PSDNO-FSA-1").roles(),
        pi()
    );
    // The bank's own list outweighs it.
    registers.allow(PermittedTpp::parse("PSDNO-FSA-1").unwrap(), ai());
    assert_eq!(find(&registers, "PSDNO-FSA-1").roles(), ai());
    // One register: an entry that stands outweighs a withdrawn one.
    let registers = with(&[("1;no\n1;yes", refuse)]);
    assert_eq!(find(&registers, "PSDNO-FSA-1").roles(), ai().or(pi()));
    // An old register authorises nobody among fresh ones, but its withdrawal counts.
    let later = Timestamp::from_unix(NOW.unix() + 8 * 86_400);
    let mut registers = Registers::new(RegisterSettings::default());
    add(&mut registers, "old", "1;yes\n2;no", refuse, NOW.unix());
    add(&mut registers, "new", "2;yes\n3;yes", refuse, later.unix());
    let fresh = |id: &str| registers.find_fresh(&self::id(&format!("PSDNO-FSA-{id}")), later);
    assert_eq!(fresh("1"), Registration::default());
    assert!(fresh("2").roles().is_empty());
    assert_eq!(fresh("3").roles(), ai());
    assert_eq!(
        registers.stale(later).unwrap().name().to_string(),
        "the register old"
    );
}

/// Measures the time and the memory for an EBA file of the real size. Run by hand with `--ignored --nocapture`.
#[test]
#[ignore = "it measures"]
fn a_file_of_258_000_entities() {
    use portvakt_base::clock::Stopwatch;
    use std::io::{BufReader, Write};

    let mut file = tempfile::NamedTempFile::new().unwrap();
    {
        let mut out = std::io::BufWriter::new(&mut file);
        write!(out, "[[],[").unwrap();
        for index in 0..258_000 {
            let mut entity = entity("NO_FSA", json!(format!("{index:09}")), both());
            entity["EntityCode"] = format!("NO_FSA!{index}").into();
            entity["Properties"][1]["ENT_NAM"] = "x".repeat(300).into();
            if index >= 6_000 {
                entity["EntityType"] = "PSD_AG".into();
            }
            let comma = if index == 0 { "" } else { "," };
            write!(out, "{comma}{entity}").unwrap();
        }
        write!(out, "]]").unwrap();
        out.flush().unwrap();
    }
    let opened = file.reopen().unwrap();
    let bytes = opened.metadata().unwrap().len();
    let mut registers = Registers::new(RegisterSettings::default());
    let mut watch = Stopwatch::start();
    let memory = allocation_counter::measure(|| {
        registers.take_eba(BufReader::new(opened), NOW).unwrap();
    });
    let took = watch.lap();
    assert_eq!(only(&registers).counts().agents, 252_000);
    let tpp = id("PSDNO-FSA-000004711");
    let mut found = 0_u32;
    watch.lap();
    for _ in 0..1_000_000 {
        found += u32::from(
            !std::hint::black_box(&registers)
                .find(&tpp)
                .roles()
                .is_empty(),
        );
    }
    let look_up = watch.lap() / found;
    eprintln!(
        "{bytes} bytes in {took:?}; at most {} KiB at once, {} KiB kept; a look-up takes {look_up:?}",
        memory.bytes_max / 1024,
        memory.bytes_current / 1024,
    );
    assert!(
        memory.bytes_max < bytes / 20,
        "memory grows with what is kept, not with the file"
    );
}
