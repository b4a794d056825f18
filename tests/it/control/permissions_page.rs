//! examples/permissions: the page from which a bank's team begins (docs/permissions.md).

use super::bank::{PSU, Site, TPP, exchange};
use crate::harness::{Answer, Program, eventually, free_address, missing};
use serde_json::json;
use std::{
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Command, Stdio},
};

/// Asks the page in the name of the customer, as the login in front of it does.
fn ask(page: SocketAddr, method: &str, more: &str, form: &str) -> Answer {
    let request = format!(
        "{method} / HTTP/1.1\r\nHost: {page}\r\nConnection: close\r\nX-Customer: 0042\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n{more}Content-Length: {}\r\n\r\n{form}",
        form.len()
    );
    exchange(TcpStream::connect(page).unwrap(), request.as_bytes())
}

#[test]
fn the_example_lists_and_narrows_and_withdraws() {
    let site = Site::new();
    let bank = site.start("socket: control.sock");
    let at = "2026-12-01T00:00:00Z";
    let who =
        json!({ "tpp": TPP, "psu_id": PSU, "last_sca": at, "consent_at": at, "customer": "0042" });
    assert_eq!(bank.post("/psu/bind", &who).status, 200);
    let page = free_address();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/permissions/page.py");
    let mut python = Command::new("python3");
    python.arg(program).arg(site.path().join("control.sock"));
    python.arg(page.to_string()).stderr(Stdio::null());
    let Ok(python) = python.spawn() else {
        return missing("python3 is not there");
    };
    let _python = Program(python);
    eventually("the page listens", || TcpStream::connect(page).is_ok());
    let shown = || String::from_utf8(ask(page, "GET", "", "").body).unwrap();
    let first = shown();
    let has_all = first.contains(TPP) && first.contains("all accounts");
    assert!(has_all && !first.contains(&PSU[..8]), "{first}");
    // A page of another origin withdraws nothing.
    let withdraw = format!("tpp={TPP}&do=withdraw");
    let foreign = "Sec-Fetch-Site: cross-site\r\n";
    assert_eq!(ask(page, "POST", foreign, &withdraw).status, 403);
    assert_eq!(shown(), first);
    let narrow = format!("tpp={TPP}&do=narrow&left=a-2");
    assert_eq!(ask(page, "POST", "", &narrow).status, 303);
    let narrowed = shown();
    let is_left = narrowed.contains("Savings") && !narrowed.contains("Everyday");
    assert!(is_left, "{narrowed}");
    assert_eq!(ask(page, "POST", "", &withdraw).status, 303);
    assert!(shown().contains("no consent"));
}
