//! CTL-2: who may block a TPP. The role `operate` alone opens these calls, and the credentials of other calls do not.

use super::bank::{Bank, Site, TPP, fails, free_address, get, post};
use serde_json::json;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const OPERATE: &str = "fedcba9876543210fedcba9876543210";

/// Of who may make them: this gateway has no file that `/config` could show.
const PERMITTED: [u16; 7] = [200, 200, 200, 409, 200, 200, 200];

/// The statuses of the calls of operators with a token, and of /psu/read.
fn statuses(bank: &Bank, token: Option<&str>) -> [u16; 8] {
    let header = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let header = header.unwrap_or_default();
    let tpp = json!({ "tpp": TPP }).to_string();
    let block = json!({ "tpp": TPP, "reason": "fraud" }).to_string();
    let sent = [
        post("/tpp/block", block.as_bytes(), &header),
        post("/tpp/unblock", tpp.as_bytes(), &header),
        get("/tpp/blocks", &header),
        get("/config", &header),
        get("/connections", &header),
        get("/top", &header),
        post("/log", br#"{"level": "configured"}"#, &header),
        post("/psu/read", b"{}", &header),
    ];
    sent.map(|request| bank.send(&request).status)
}

//= CTL-2 accepted
//= CTL-2 refused
#[test]
fn a_token_of_its_own_opens_blocks_and_nothing_else() {
    let site = Site::new();
    site.write("token", TOKEN);
    site.write("operate", OPERATE);
    // Without the role nobody blocks, whatever is shown.
    let bank = site.start(&format!("{}, token_file: token", free_address().1));
    for token in [None, Some(TOKEN), Some(OPERATE)] {
        assert_eq!(statuses(&bank, token)[..7], [403; 7]);
    }
    let refused = bank.send(&get("/tpp/blocks", ""));
    fails(&refused, 403, "FORBIDDEN", "role-other");
    bank.stop();
    let tokens = "token_file: token, operate_token_file: operate";
    let bank = site.start(&format!("{}, {tokens}", free_address().1));
    assert_eq!(statuses(&bank, None), [401; 8]);
    let [operate @ .., read] = statuses(&bank, Some(TOKEN));
    assert_eq!((operate, read), ([401; 7], 400));
    let [operate @ .., read] = statuses(&bank, Some(OPERATE));
    assert_eq!((operate, read), (PERMITTED, 401));
    let endpoint = br#"{"upstream": "core", "endpoint": "none"}"#;
    for call in ["/endpoint/drain", "/endpoint/restore"] {
        let by = |token| {
            let header = format!("Authorization: Bearer {token}\r\n");
            bank.send(&post(call, endpoint, &header)).status
        };
        assert_eq!([TOKEN, OPERATE].map(by), [401, 404], "{call}");
    }
    bank.stop();
    // A foreign page gets nothing done with a token either.
    let bank = site.start(&format!("{}, {tokens}", free_address().1));
    let foreign =
        format!("Authorization: Bearer {OPERATE}\r\nOrigin: https://elsewhere.example\r\n");
    assert_eq!(bank.send(&get("/tpp/blocks", &foreign)).status, 403);
}

/// The owner of a Unix socket has every role, with the token of calls or of operators where one is configured.
//= CTL-2 accepted
#[test]
fn the_owner_of_a_socket_blocks() {
    let site = Site::new();
    site.write("token", TOKEN);
    site.write("operate", OPERATE);
    let bank = site.start("socket: control.sock");
    assert_eq!(statuses(&bank, None)[..7], PERMITTED);
    bank.stop();
    let bank = site.start("socket: control.sock, token_file: token, operate_token_file: operate");
    assert_eq!(statuses(&bank, None), [401; 8]);
    assert_eq!(statuses(&bank, Some(TOKEN))[..7], PERMITTED);
    let [operate @ .., read] = statuses(&bank, Some(OPERATE));
    assert_eq!((operate, read), (PERMITTED, 401));
}

/// A token has the rights of one caller.
#[test]
fn the_token_of_calls_is_no_token_of_operators() {
    let site = Site::new();
    site.write("token", TOKEN);
    let same = format!(
        "{}, token_file: token, operate_token_file: token",
        free_address().1
    );
    site.write("gateway.yaml", Site::yaml(&same));
    let refused = portvakt::config::Settings::load(&site.path().join("gateway.yaml"));
    let said = refused.unwrap_err().to_string();
    assert!(
        said.contains("operate_token_file: it is the token of another key"),
        "{said}"
    );
}
