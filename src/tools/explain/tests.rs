//! The command on freshly signed requests, with the development PKI.

#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and a table is as long as its cases"
)]

use super::{ExplainArgs, ExplainFault, run};
use crate::{
    clock::Timestamp,
    interface::Reason,
    tools::tpp::{SignOptions, SignedRequest, TppIdentity, Unsigned, sign},
};
use clap::Parser;
use portvakt_development_pki as pki;
use std::{fs, path::PathBuf, process::ExitCode, sync::LazyLock};
use tempfile::TempDir;

/// A time within the validity of the development PKI.
const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: ExplainArgs,
}

/// A folder with a configuration and a TPP.
struct World {
    folder: TempDir,
    identity: TppIdentity,
    stranger: TppIdentity,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let folder = TempDir::new().unwrap();
    let root = pki::Ca::root(&pki::CaSpec::development_root()).unwrap();
    let spec = pki::LeafSpec::default();
    let server = root
        .issue_server(&pki::Key::EcP256, spec.not_before, spec.not_after)
        .unwrap();
    fs::create_dir(folder.path().join("anchors")).unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    put("anchors/root.pem", &root.pem());
    put("server.pem", &server.pem);
    crate::private_file::make(&folder.path().join("server.key"), server.key_pem.as_bytes())
        .unwrap();
    put(
        "gateway.yaml",
        "environment: sandbox\nlistener:\n  address: 127.0.0.1:8443\n  certificate: server.pem\n  key: server.key\nupstream:\n  address: 127.0.0.1:8080\ntrust:\n  anchors: anchors\nsca:\n  page: https://bank.example/sca\n  token_keys: sca-token.keys\n",
    );
    let tpp = root.issue(&spec).unwrap();
    let stranger = root.issue(&spec).unwrap();
    World {
        identity: TppIdentity::from_pem(&tpp.pem, &tpp.key_pem).unwrap(),
        stranger: TppIdentity::from_pem(&stranger.pem, &stranger.key_pem).unwrap(),
        folder,
    }
});

impl World {
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn signed(&self) -> SignedRequest {
        let headers = [
            ("Host", "bank.example:8443"),
            ("TPP-Redirect-URI", "https://tpp.example/"),
        ];
        let request = Unsigned {
            method: "GET".into(),
            target: "/v1/accounts?withDetails=true".into(),
            headers: headers
                .map(|(name, value)| (name.into(), value.into()))
                .to_vec(),
            body: None,
        };
        sign(&self.identity, request, &SignOptions::at(NOW.system_time())).unwrap()
    }

    /// The command's output for a request in this form, and whether the exit code is 0 or 1.
    fn explain(&self, name: &str, request: &str, more: &[&str]) -> (String, bool) {
        let request = self.file(name, request);
        let config = self.folder.path().join("gateway.yaml");
        let words = ["explain", "--config", config.to_str().unwrap()];
        let words = words
            .iter()
            .chain(more)
            .chain([request.to_str().unwrap()].iter())
            .copied()
            .collect::<Vec<_>>();
        let line = Line::try_parse_from(words).unwrap();
        let mut out = Vec::new();
        let status = run(&line.args, Timestamp::from_unix(0), &mut out).unwrap();
        let admitted = status == ExitCode::SUCCESS;
        assert!(admitted || status == ExitCode::from(1));
        (String::from_utf8(out).unwrap(), admitted)
    }
}

/// The form of an editor: bare LF.
fn raw(signed: &SignedRequest) -> String {
    let headers = signed
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\n"));
    format!(
        "{} {} HTTP/1.1\n{}\n",
        signed.method,
        signed.target,
        headers.collect::<String>()
    )
}

#[track_caller]
fn says(text: &str, wanted: &[&str]) {
    for wanted in wanted {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
}

#[test]
fn passed_checks_are_shown_with_evidence() {
    let signed = WORLD.signed();
    let (text, admitted) = WORLD.explain("held.txt", &raw(&signed), &[]);
    assert!(admitted, "{text}");
    says(
        &text,
        &[
            "bare LF",
            "as of Thu, 01 Jan 2026 00:00:00 GMT (the request's own Date",
            "match         holds     operation account-list",
            "date          holds     0 s off",
            "PSDNO-FSA-123456 \"Eksempel Betaling AS\", roles PSP_PI,PSP_AI, authority NO-FSA",
            "it verifies over",
            "admitted",
            "  (request-target): get /v1/accounts?withDetails=true\\n\n",
            "  tpp-redirect-uri: https://tpp.example/\n",
        ],
    );
}

#[test]
fn as_of_another_moment() {
    let signed = WORLD.signed();
    let at = |seconds: u64| (NOW.unix() + seconds).to_string();
    let (text, admitted) = WORLD.explain("late.txt", &raw(&signed), &["--at", &at(60)]);
    assert!(admitted, "{text}");
    says(&text, &["as --at says", "60 s behind"]);
    let (text, admitted) = WORLD.explain("late.txt", &raw(&signed), &["--at", &at(61)]);
    assert!(!admitted);
    says(
        &text,
        &[
            "date          refused   date-skewed",
            "refused: 400 FORMAT_ERROR date-skewed",
            "- Date: it is 61 s behind",
            "not judged after that: address-rate, certificate, role, signature,",
        ],
    );
    let (text, _) = WORLD.explain(
        "dateless.txt",
        "GET /v1/accounts HTTP/1.1\nHost: a\n\n",
        &[],
    );
    says(
        &text,
        &[
            "now, because the request's Date cannot be read",
            "signature-missing",
            "no signing string",
        ],
    );
}

#[test]
fn every_fault_of_a_stage_and_the_operators_text() {
    let mut signed = WORLD.signed();
    signed.remove_header("X-Request-ID");
    signed.remove_header("TPP-Redirect-URI");
    let (text, _) = WORLD.explain("headers.txt", &raw(&signed), &[]);
    says(
        &text,
        &["- X-Request-ID: missing", "- TPP-Redirect-URI: missing"],
    );

    let foreign = pki::Ca::root(&pki::CaSpec::development_root())
        .unwrap()
        .issue(&pki::LeafSpec::default())
        .unwrap();
    let mut signed = WORLD.signed();
    let foreign = TppIdentity::from_pem(&foreign.pem, &foreign.key_pem).unwrap();
    signed.set_header("TPP-Signature-Certificate", &foreign.certificate_header());
    let (text, _) = WORLD.explain("foreign.txt", &raw(&signed), &[]);
    says(
        &text,
        &[
            "403 FORBIDDEN certificate-untrusted",
            "for the operator only:",
        ],
    );
}

#[test]
fn the_signing_strings_are_compared() {
    let signed = WORLD.signed();
    let theirs = |text: &str| WORLD.file("theirs.txt", text).to_str().unwrap().to_owned();
    let same = theirs(&signed.signing_string);
    let (text, admitted) = WORLD.explain("same.txt", &raw(&signed), &["--theirs", &same]);
    assert!(admitted);
    says(&text, &["the same, byte for byte"]);
    let other = WORLD.file("crlf.txt", signed.signing_string.replace('\n', "\r\n"));
    let (text, _) = WORLD.explain(
        "crlf-request.txt",
        &raw(&signed),
        &["--theirs", other.to_str().unwrap()],
    );
    says(
        &text,
        &[
            "differs first at byte 51 (line 1, column 52;",
            "hint: lines end in CRLF",
        ],
    );
}

/// A request whose signature was made over another string.
fn signed_over(identity: &TppIdentity, change: impl Fn(&str) -> String) -> (SignedRequest, String) {
    let mut signed = WORLD.signed();
    let string = change(&signed.signing_string);
    let header = signed.header("Signature").unwrap().to_owned();
    let (before, _) = header.rsplit_once("signature=\"").unwrap();
    let signature = identity.signature(&string).unwrap();
    signed.set_header("Signature", &format!("{before}signature=\"{signature}\""));
    (signed, string)
}

/// A client's change to the signing string.
type Change = fn(&str) -> String;

#[test]
fn the_signed_string_is_found() {
    let table: [(Change, &str); 6] = [
        (|text| format!("{text}\n"), "with a newline at the end"),
        (|text| text.replace('\n', "\r\n"), "with CRLF between"),
        (
            |text| text.replace(": get", ": GET"),
            "with the method in upper case",
        ),
        (
            |text| text.replace("?withDetails=true", ""),
            "without the query",
        ),
        (
            |text| text.replace(": ", ":"),
            "without the space after the colon",
        ),
        (
            |text| text.replace('\n', "\\n"),
            "with a backslash and an n",
        ),
    ];
    for (change, found) in table {
        let (signed, _) = signed_over(&WORLD.identity, change);
        let (text, admitted) = WORLD.explain("instead.txt", &raw(&signed), &[]);
        assert!(!admitted);
        says(
            &text,
            &["refused: 400 FORMAT_ERROR signature-mismatch", found],
        );
    }
    let (signed, string) = signed_over(&WORLD.identity, |text| text.replace("GMT", "UTC"));
    let theirs = WORLD.file("instead-theirs.txt", string);
    let (text, _) = WORLD.explain(
        "instead-utc.txt",
        &raw(&signed),
        &["--theirs", theirs.to_str().unwrap()],
    );
    says(
        &text,
        &[
            "hint: date: another date",
            "verifies over the string in your file",
        ],
    );
    let (signed, string) = signed_over(&WORLD.stranger, str::to_owned);
    let theirs = WORLD.file("stranger-theirs.txt", string);
    let (text, _) = WORLD.explain(
        "stranger.txt",
        &raw(&signed),
        &["--theirs", theirs.to_str().unwrap()],
    );
    says(
        &text,
        &["so what differs is not the string: sign with the private key"],
    );
}

#[test]
fn reasons() {
    let explain = |words: &[&str]| {
        let line = Line::try_parse_from([&["explain"], words].concat()).unwrap();
        let mut out = Vec::new();
        run(&line.args, NOW, &mut out).map(|_| String::from_utf8(out).unwrap())
    };
    says(
        &explain(&["date-skewed"]).unwrap(),
        &["date-skewed\n", Reason::DateSkewed.title()],
    );
    assert_eq!(explain(&[]).unwrap().lines().count(), Reason::ALL.len() + 2);
    assert!(matches!(
        explain(&["date-skewd"]),
        Err(ExplainFault::NoReason {
            nearest: Some("date-skewed"),
            ..
        })
    ));
    assert!(explain(&["Date-Skewed"]).is_ok());
    let forbidden = explain(&["FORBIDDEN"]).unwrap();
    says(&forbidden, &["role-missing", "certificate-expired"]);
    assert!(!forbidden.contains("date-skewed"), "{forbidden}");
    for (word, said) in [
        (
            "nonsense",
            "there is no reason \"nonsense\"; `portvakt explain` lists",
        ),
        (
            "no/such.txt",
            "no/such.txt is no reason, and there is no such file",
        ),
    ] {
        let fault = explain(&[word]).unwrap_err().to_string();
        assert!(fault.starts_with(said), "{fault}");
    }
    assert!(matches!(explain(&["-"]), Err(ExplainFault::NoConfig(_))));
    let empty = WORLD.file("empty.txt", "\n");
    let theirs = ["--config", "x", "--theirs", empty.to_str().unwrap(), "y"];
    assert!(matches!(explain(&theirs), Err(ExplainFault::NoString(_))));
    assert!(matches!(
        explain(&["--config", "x"]),
        Err(ExplainFault::NoRequest)
    ));
    assert!(Line::try_parse_from(["explain", "--at", "now", "--config", "x", "y"]).is_err());
    assert!(Line::try_parse_from(["explain", "--theirs", "x"]).is_err());
}
