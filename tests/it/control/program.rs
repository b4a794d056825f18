//! The commands `portvakt sca` and `portvakt psu`.

use super::bank::{OTHER_PSU, OTHER_TPP, PSU, Site, TPP, free_address, get};
use crate::harness::{Call, Gate, Program, Protocol, Wire, eventually};
use portvakt::{
    audit::{Audit, AuditKind, Wanted, search, verify},
    clock::Clock,
    config::AuditSettings,
    hex,
};
use serde_json::json;
use sha2::Digest;
use std::{
    fs,
    io::Write,
    net::{SocketAddr, TcpStream},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output, Stdio},
};

const THIRD_PSU: &str = "0192f0c1-5a5b-7def-8000-1234567890ad";

/// Runs the program in a site's folder.
fn portvakt(site: &Site, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_portvakt"))
        .args(args)
        .args(["--config", "gateway.yaml"])
        .current_dir(site.path())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The status of an answer of the control listener, if it listens. A start tries the address, and releases it, before it listens there: a
/// connection to the trial is reset.
fn status(control: SocketAddr, request: &[u8]) -> Option<u16> {
    let mut stream = TcpStream::connect(control).ok()?;
    stream.write_all(request).ok()?;
    Some(Wire::new(stream).answer("GET").ok()?.status)
}

#[test]
fn keys_are_rotated_in_two_steps() {
    let site = Site::new();
    site.write("gateway.yaml", Site::yaml(""));
    let rotate = || portvakt(&site, &["sca", "rotate-key"]);
    let none = rotate();
    assert_eq!(none.status.code(), Some(2));
    assert!(
        text(&none.stderr)
            .contains("sca-token.keys does not exist yet: the first start creates it")
    );
    site.settings("")
        .reloadable
        .sca
        .links(
            portvakt::interface::operations::Environment::Sandbox,
            super::bank::NOW,
        )
        .unwrap();
    let read = || fs::read_to_string(site.path().join("sca-token.keys")).unwrap();
    let old = read();
    let first = rotate();
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    assert!(text(&first.stdout).contains("step 1 of 2"));
    let both = read();
    let new = both.strip_prefix(&old).unwrap();
    assert!(text(&rotate().stdout).contains("step 2 of 2"));
    assert_eq!(read(), format!("{new}{old}"));
    // The output contains no key.
    for line in both.lines() {
        assert!(!text(&first.stdout).contains(line.split(' ').nth(1).unwrap()));
    }
}

#[test]
fn the_interface_is_described_alike_in_both_places() {
    let site = Site::new();
    site.write("gateway.yaml", Site::yaml(""));
    let (_, address) = free_address();
    let bank = site.start(&address);
    let written = portvakt(&site, &["openapi"]);
    assert_eq!(written.status.code(), Some(0), "{}", text(&written.stderr));
    let written: serde_json::Value = serde_json::from_slice(&written.stdout).unwrap();
    assert_eq!(written["openapi"], "3.1.1");
    let served = bank.send(&get("/openapi.json", ""));
    assert_eq!(served.status, 200);
    assert_eq!(served.json(), written);
}

#[test]
fn a_file_of_psus_is_brought_in_beside_a_gateway() {
    let site = Site::new();
    let state = "state: {file: state/portvakt.db, hash_key: state/hash.key}\n";
    site.write("gateway.yaml", Site::yaml("") + state);
    let (_, address) = free_address();
    let bank = site.start(&address);
    let line = |psu: &str, tpp: &str| {
        format!(
            "{{\"tpp\":\"{tpp}\",\"psu_id\":\"{psu}\",\"last_sca\":\"2026-01-01T00:00:00Z\"}}\n"
        )
    };
    let import = |text: String| {
        site.write("psus.ndjson", text);
        portvakt(&site, &["psu", "import", "psus.ndjson"])
    };
    let good = import(line(PSU, TPP));
    assert_eq!(good.status.code(), Some(0), "{}", text(&good.stderr));
    assert!(text(&good.stderr).contains("1 kept, 0 not"));
    let who = json!({ "tpp": TPP, "psu_id": PSU });
    let known = bank.post("/psu/read", &who).json();
    assert_eq!(known["last_sca"], "2026-01-01T00:00:00Z");
    let mixed = import(line(PSU, OTHER_TPP) + "x\n" + &line(OTHER_PSU, TPP));
    assert_eq!(mixed.status.code(), Some(1));
    let said = text(&mixed.stderr);
    assert!(
        said.contains("1 kept, 2 not")
            && said.contains("line 1: psu_id: it belongs to another TPP")
            && said.contains("line 2: it is not a JSON object"),
        "{said}"
    );
    let who = json!({ "tpp": TPP, "psu_id": OTHER_PSU });
    assert_eq!(bank.post("/psu/read", &who).status, 200);
    // An ambiguous line is refused.
    let third = THIRD_PSU;
    let doubled = line(PSU, TPP).replace('{', &format!("{{\"psu_id\":\"{third}\","));
    let doubled = import(doubled);
    assert_eq!(doubled.status.code(), Some(1));
    let said = text(&doubled.stderr);
    assert!(
        said.contains("line 1: psu_id: it stands more than once") && !said.contains(third),
        "{said}"
    );
    let who = json!({ "tpp": TPP, "psu_id": third });
    assert_eq!(bank.post("/psu/read", &who).status, 404);
    assert_eq!(
        portvakt(&site, &["psu", "import", "nowhere"]).status.code(),
        Some(2)
    );
}

/// Of lines of several TPPs, the first one binds the PSU-ID, and a dry run says which that is.
//= SCA-19 accepted
//= SCA-19 refused
#[test]
fn the_first_line_of_a_psu_binds_it() {
    let site = Site::new();
    let state = "state: {file: state/portvakt.db, hash_key: state/hash.key}\n";
    site.write("gateway.yaml", Site::yaml("") + state);
    let (_, address) = free_address();
    let bank = site.start(&address);
    let psu = |number: u32| format!("0192f0c1-5a5b-7def-8000-{number:012x}");
    let who = |tpp: &str, psu: &str| json!({ "tpp": tpp, "psu_id": psu, "last_sca": "2026-01-01T00:00:00Z" });
    // PSU 0 belongs to another TPP than its first line says.
    assert_eq!(bank.post("/psu/bind", &who(OTHER_TPP, &psu(0))).status, 200);
    // Fewer than are reported.
    let psus = 0..80;
    let lines = psus.flat_map(|psu_number| {
        let psu = psu(psu_number);
        [TPP, OTHER_TPP, TPP].map(|tpp| who(tpp, &psu).to_string() + "\n")
    });
    site.write("psus.ndjson", lines.collect::<String>());
    for more in [&["--dry-run"][..], &[]] {
        let done = portvakt(&site, &[&["psu", "import", "psus.ndjson"], more].concat());
        let said = text(&done.stderr);
        let refused = said.lines().filter_map(|line| line.strip_prefix("line "));
        let refused = refused.filter_map(|line| line.split(':').next()?.parse::<u32>().ok());
        let mut refused: Vec<u32> = refused.collect();
        refused.sort_unstable();
        let expected: Vec<u32> = [1, 3]
            .into_iter()
            .chain((1..80).map(|psu| 3 * psu + 2))
            .collect();
        assert_eq!(refused, expected, "{more:?}: {said}");
    }
    for (tpp, number, status) in [(OTHER_TPP, 0, 200), (TPP, 7, 200), (OTHER_TPP, 7, 404)] {
        let who = json!({ "tpp": tpp, "psu_id": psu(number) });
        assert_eq!(bank.post("/psu/read", &who).status, status, "{number}");
    }
}

/// An import has a record before it changes anything, and one for each TPP afterwards, which has the file's hash.
#[test]
fn an_import_is_in_the_audit() {
    let site = Site::new();
    let more = concat!(
        "state: {file: state/portvakt.db, hash_key: state/hash.key}\n",
        "audit: {write: on, folder: state/audit}\n",
    );
    site.write("gateway.yaml", Site::yaml("") + more);
    let (_, address) = free_address();
    let bank = site.start(&address);
    let line = |psu: &str, tpp: &str| {
        format!(
            "{{\"tpp\":\"{tpp}\",\"psu_id\":\"{psu}\",\"last_sca\":\"2026-01-01T00:00:00Z\"}}\n"
        )
    };
    let audit = site.path().join("state/audit");
    // A gateway writes at the same time.
    let gateway = Audit::open(&AuditSettings::new(audit.clone()), &Clock::System).unwrap();
    gateway.record(gateway.event(AuditKind::Started));
    let file = line(PSU, TPP) + &line(PSU, OTHER_TPP) + &line(OTHER_PSU, TPP) + "x\n";
    site.write("psus.ndjson", file.clone());
    let import = |more: &[&str]| {
        let done = portvakt(&site, &[&["psu", "import", "psus.ndjson"], more].concat());
        assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    };
    let found = || {
        let wanted = |kind: &str| Wanted {
            kind: Some(kind.to_owned()),
            ..Wanted::default()
        };
        ["import-begun", "imported"].map(|kind| search(&audit, &wanted(kind)).unwrap())
    };
    import(&["--dry-run"]);
    assert!(found().iter().all(Vec::is_empty));
    import(&[]);
    let [begun, imported] = found();
    assert_eq!((begun.len(), imported.len()), (1, 2));
    let hash = sha2::Sha256::digest(&file);
    let hash = hex::encode(&hash);
    for record in imported {
        let (stored, refused) = match record.text("tpp") {
            Some(TPP) => (2, 0),
            tpp => {
                assert_eq!(tpp, Some(OTHER_TPP));
                (0, 1)
            }
        };
        assert_eq!(record.0["stored"], stored);
        assert_eq!(record.0["refused"], refused);
        assert_eq!(record.text("file"), Some(hash.as_str()));
    }
    drop(gateway);
    let verified = verify(&audit, &[]).unwrap();
    let ends: Vec<_> = verified.ends.iter().map(|end| end.chain.as_str()).collect();
    assert_eq!(verified.findings, []);
    assert_eq!(ends, ["1/control", "2/psus"]);
    // Where no record can be written, nothing is imported.
    site.write("psus.ndjson", line(THIRD_PSU, TPP));
    fs::write(site.path().join("no-folder"), "").unwrap();
    let yaml = Site::yaml("") + &more.replace("state/audit", "no-folder/audit");
    site.write("gateway.yaml", yaml);
    let refused = portvakt(&site, &["psu", "import", "psus.ndjson"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    let who = json!({ "tpp": TPP, "psu_id": THIRD_PSU });
    assert_eq!(bank.post("/psu/read", &who).status, 404);
}

/// Bytes of a file reach the terminal escaped: they move no cursor and set no title.
#[test]
fn a_hostile_file_writes_nothing_to_the_terminal() {
    let site = Site::new();
    site.write("gateway.yaml", Site::yaml(""));
    let mapping = "columns: {psu_id: a, last_sca: b}\nvalues: {tpp: PSDNO-FSA-123456}\n";
    site.write("mapping.yaml", mapping);
    let hostile = "\u{1b}]0;title\u{7}\u{9b}2J\u{202e}\u{7f}";
    let files = [
        ("header.csv", format!("a{hostile},b\n1,2\n")),
        ("field.csv", format!("a,b\n1{hostile},2{hostile}\n")),
        (
            "lines.ndjson",
            format!("{{\"tpp\": \"{hostile}\"}}\n{hostile}\n"),
        ),
    ];
    for (name, content) in files {
        site.write(name, content);
        for mapping in [&["--mapping", "mapping.yaml"][..], &[]] {
            let import = [&["psu", "import", name, "--dry-run"], mapping].concat();
            for arguments in [&import[..], &["cert", name], &["register", "check", name]] {
                let done = portvakt(&site, arguments);
                for said in [&done.stdout, &done.stderr] {
                    let acts = |letter: char| {
                        letter.is_control() && !matches!(letter, '\n' | '\t')
                            || letter == '\u{202e}'
                    };
                    assert!(
                        !text(said).contains(acts),
                        "{arguments:?}: {:?}",
                        text(said)
                    );
                }
                if name == "header.csv" && arguments.contains(&"--mapping") {
                    assert!(
                        text(&done.stderr).contains("\\u{1b}]0;title\\u{7}"),
                        "{done:?}"
                    );
                }
            }
        }
    }
}

/// A bank's export in CSV: the mapping of docs/sca.md, first without a change.
//= SCA-19 accepted
//= SCA-19 refused
#[test]
fn abanks_export_is_brought_in_by_its_columns() {
    let site = Site::new();
    let state = "state: {file: state/portvakt.db, hash_key: state/hash.key}\n";
    site.write("gateway.yaml", Site::yaml("") + state);
    let (_, address) = free_address();
    let bank = site.start(&address);
    let page = include_str!("../../../docs/sca.md");
    let (_, mapping) = page.split_once("```yaml\ncolumns:").unwrap();
    let (mapping, _) = mapping.split_once("```").unwrap();
    site.write("mapping.yaml", format!("columns:{mapping}"));
    let bind = |psu: &str, tpp: &str| {
        let who = json!({ "tpp": tpp, "psu_id": psu, "last_sca": "2026-01-01T00:00:00Z" });
        assert_eq!(bank.post("/psu/bind", &who).status, 200);
    };
    let third = THIRD_PSU;
    let known = "0192f0c1-5a5b-7def-8000-1234567890ae";
    bind(third, OTHER_TPP);
    bind(known, TPP);
    let row = |psu: &str| {
        format!("{psu};01.02.2026 12:30;\"Nordmann; Ola\";31.01.2026 00:00;a-1|a-2\r\n")
    };
    let rows = [PSU, OTHER_PSU, PSU, third, known].map(row).concat();
    let header = "PSU_REF;LAST_LOGIN;NAME;CONSENT_DATE;ACCOUNTS\r\n";
    let every = "0192f0c1-5a5b-7def-8000-1234567890af";
    let none = "0192f0c1-5a5b-7def-8000-1234567890b0";
    let with = |psu: &str, accounts: &str| {
        format!("{psu};01.02.2026 12:30;;31.01.2026 00:00;{accounts}\r\n")
    };
    let consents = with(every, "*") + &with(none, "") + &with(none, "\" \"");
    // The last of two rows with the same time counts, and is named.
    let other = with(PSU, "a-3");
    let export = format!(
        "{header}{rows}x;;;;\r\n{consents}{other}{}",
        with(PSU, "a-3")
    );
    site.write("export.csv", export);
    let import = |more: &[&str]| {
        let arguments = ["psu", "import", "export.csv", "--mapping", "mapping.yaml"];
        portvakt(&site, &[&arguments, more].concat())
    };
    let read = |psu: &str| bank.post("/psu/read", &json!({ "tpp": TPP, "psu_id": psu }));
    let dry = import(&["--dry-run"]);
    let said = text(&dry.stderr);
    assert_eq!(dry.status.code(), Some(1), "{said}");
    let ending = format!(
        "{TPP}: 3 new, 4 known (1 with other accounts than a consent of the same time), 0 taken over from a learned binding, 1 of another TPP\n"
    );
    assert!(
        said.contains("dry run: 7 would be kept, 4 not, after"),
        "{said}"
    );
    assert!(said.ends_with(&ending), "{said}");
    let faulty = "line 7: psu_id: it must be a UUID with its hyphens; last_sca: it is missing";
    assert!(said.contains(faulty), "{said}");
    let empty = "accounts: it is empty, and the row has consent_at: write the ids of the accounts, or * for every account";
    for line in [9, 10] {
        let expected = format!("line {line}: {empty}");
        assert!(said.contains(&expected), "{said}");
    }
    assert!(
        !said.contains(third) && !said.contains("Nordmann"),
        "{said}"
    );
    let replaced = |line| {
        format!("line {line}: accounts: they replace other accounts of a consent of the same time")
    };
    assert!(said.contains(&replaced(11)), "{said}");
    assert!(!said.contains(&replaced(12)), "{said}");
    assert_eq!(read(PSU).status, 404, "a dry run binds nobody");
    assert_eq!(read(known).json()["last_sca"], "2026-01-01T00:00:00Z");
    let done = import(&[]);
    let said = text(&done.stderr);
    let ending = format!(
        "{TPP}: 7 kept: 3 new, 2 changed (1 with other accounts than a consent of the same time), 2 unchanged, 0 taken over from a learned binding, 1 of another TPP\n"
    );
    assert!(said.ends_with(&ending), "{said}");
    assert!(said.contains(&replaced(11)), "{said}");
    let again = import(&["--dry-run"]);
    let said = text(&again.stderr);
    assert!(
        said.contains(&replaced(2)) && said.contains(&replaced(11)),
        "{said}"
    );
    // 12:30 in Oslo, in winter.
    let bound = read(PSU).json();
    assert_eq!(bound["last_sca"], "2026-02-01T11:30:00Z");
    let consent = json!({ "given": "2026-01-30T23:00:00Z", "accounts": 1 });
    assert_eq!(bound["contexts"][0]["consent"], consent);
    let consent = &read(every).json()["contexts"][0]["consent"];
    assert_eq!(consent["accounts"], "all");
    assert_eq!(
        read(none).status,
        404,
        "no consent wider than the export says"
    );
    assert_eq!(read(third).status, 404);
    // A file without a record is no success.
    for nothing in ["", header] {
        site.write("export.csv", nothing);
        let none = import(&[]);
        assert_eq!(none.status.code(), Some(2));
        assert!(text(&none.stderr).contains("nothing was imported"));
    }
    // A file without the columns is refused as a whole.
    site.write("export.csv", format!("PSU;LOGIN\n{PSU};x\n"));
    let other = import(&[]);
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("line 1: there is no column PSU_REF"));
}

/// Load balancers send requests as soon as the gateway is ready. A probe during the start waits until it is.
#[test]
fn it_is_ready_when_its_public_listener_accepts() {
    for _ in 0..5 {
        let gate = Gate::builder().for_program();
        let control = gate.control_address();
        let program = gate
            .program()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let _program = Program(program.unwrap());
        eventually("it is ready", || {
            status(control, &get("/readyz", "")) == Some(200)
        });
        assert_eq!(gate.send(&Call::plain(), Protocol::Http1).status, 200);
    }
}

/// systemd names the folder of its credentials in the environment, and shows them with mode 0400 or 0440.
#[test]
fn credentials_of_systemd_are_read() {
    let site = Site::new();
    let token = "control.token_file: ";
    for mode in [0o400, 0o440] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        fs::write(&file, "0123456789abcdef0123456789abcdef").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let own = free_address().1;
        let control = format!("{own}, token_file: '${{CREDENTIALS_DIRECTORY}}/token'");
        site.write("gateway.yaml", Site::yaml(&control));
        let check = |folder: Option<&Path>| {
            let mut program = Command::new(env!("CARGO_BIN_EXE_portvakt"));
            program.args(["check", "--no-bind", "--config", "gateway.yaml"]);
            program.current_dir(site.path());
            program.env_remove("CREDENTIALS_DIRECTORY");
            program.envs(folder.map(|folder| ("CREDENTIALS_DIRECTORY", folder)));
            program.output().unwrap()
        };
        let found = check(Some(folder.path()));
        let said = text(&found.stderr);
        assert!(!said.contains(token), "{mode:o}: {said}");
        assert_ne!(found.status.code(), Some(2), "{said}");
        let missing = check(None);
        let said = text(&missing.stderr);
        assert_eq!(missing.status.code(), Some(2), "{said}");
        let fault = "the environment variable \"CREDENTIALS_DIRECTORY\" is not set, or is empty";
        assert!(said.contains(&format!("{token}{fault}")), "{said}");
    }
}

/// Tokens from the environment open what those from files open. `config show` and faults show no token.
#[test]
fn tokens_stand_in_the_environment() {
    let tokens = ["a", "b", "c"].map(|letter| letter.repeat(32));
    let names = ["CALLS_TOKEN", "METRICS_TOKEN", "READINESS_TOKEN"];
    let gate = Gate::builder().for_program();
    let config = gate.folder().join("gateway.yaml");
    let control = format!("address: {}", gate.control_address());
    let keys = "token: ${CALLS_TOKEN}\n  metrics_token: ${METRICS_TOKEN}\n  readiness_token: ${READINESS_TOKEN}";
    let yaml = gate
        .yaml()
        .replace(&control, &format!("{control}\n  {keys}"));
    fs::write(&config, yaml).unwrap();
    let run = |arguments: &[&str], tokens: &[String]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_portvakt"));
        program.args(arguments).arg("--config").arg(&config);
        program.envs(names.iter().zip(tokens)).output().unwrap()
    };
    let shown = run(&["config", "show"], &tokens);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    let shown = text(&shown.stdout);
    assert!(shown.contains("metrics_token: ${METRICS_TOKEN}"), "{shown}");
    assert!(!tokens.iter().any(|token| shown.contains(token)), "{shown}");
    let twice = [tokens[0].clone(), tokens[0].clone(), tokens[2].clone()];
    let short = [tokens[0].clone(), "hunter2".to_owned(), tokens[2].clone()];
    for (faulty, fault) in [
        (
            &twice,
            "control.metrics_token: it is the token of another key",
        ),
        (
            &short,
            "control.metrics_token: the environment variable holds no bearer token",
        ),
    ] {
        let refused = run(&["check", "--no-bind"], faulty);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(fault), "{said}");
        assert!(
            !said.contains(&tokens[0]) && !said.contains("hunter2"),
            "{said}"
        );
    }
    let mut program = gate.program();
    let program = program.envs(names.iter().zip(&tokens));
    let program = program.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _program = Program(program.unwrap());
    let status = |path: &str, token: &str| {
        let header = format!("Authorization: Bearer {token}\r\n");
        status(gate.control_address(), &get(path, &header))
    };
    eventually("it is ready", || status("/readyz", &tokens[2]) == Some(200));
    for (path, opens) in [("/openapi.json", 0), ("/metrics", 1), ("/readyz", 2)] {
        for (at, token) in tokens.iter().enumerate() {
            let expected = if at == opens { 200 } else { 401 };
            assert_eq!(status(path, token), Some(expected), "{path} {at}");
        }
    }
}
