//! Payments over HTTP: the language of an answer, and the bank's own channel.

use super::*;

const KARI: &str = "01010112345";

/// The answer to a payment of Kari's on 7 March 2026, a Saturday, with more lines in its head.
async fn pay(lines: &str) -> String {
    let core = core(None, Trust::Anyone);
    let debtor = {
        let bank = core.bank();
        let kari = bank.customer(KARI).unwrap();
        bank.accounts_of(&kari.id).unwrap().remove(0).bban
    };
    let body = json!({
        "instructedAmount": {"amount": "10.00", "currency": "NOK"}, "creditorName": "a",
        "creditorAccount": {"bban": "86011117947"}, "debtorAccount": {"bban": debtor},
        "requestedExecutionDate": "2026-03-07"});
    let body = body.to_string();
    let request = format!(
        "POST /v1/payments/norwegian-domestic-credit-transfers HTTP/1.1\r\nHost: core\r\nGateway-Tpp-Id: a\r\n\
         X-PSU-IDENTITY: {KARI}\r\n{lines}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    exchange(core, request.as_bytes()).await
}

//= SBX-17 accepted
//= ERR-9 accepted
#[tokio::test]
async fn a_new_payment_speaks_the_language_of_its_request() {
    for (lines, language, day) in [
        ("", "en", "9 March 2026"),
        ("Accept-Language: nb-NO, en;q=0.5\r\n", "nb", "9. mars 2026"),
        (
            "Accept-Language: pl\r\nAccept-Language: nn\r\n",
            "nb",
            "9. mars 2026",
        ),
        ("Accept-Language: sv\r\n", "en", "9 March 2026"),
    ] {
        let answer = pay(lines).await;
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
        assert!(
            answer.contains(&format!("content-language: {language}\r\n")),
            "{answer}"
        );
        assert!(answer.contains(day), "{answer}");
    }
}

//= SBX-17 refused
#[tokio::test]
async fn an_error_is_in_english_and_says_so() {
    let request = b"GET /v1/accounts HTTP/1.1\r\nHost: core\r\nAccept-Language: nb\r\nConnection: close\r\n\r\n";
    let answer = exchange(core(None, Trust::Anyone), request).await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert!(answer.contains("content-language: en\r\n"), "{answer}");
    assert!(answer.contains("The PSU must authenticate first."));
}

//= SBX-17 refused
#[tokio::test]
async fn only_this_machine_changes_payments_and_permissions_beside_the_gateway() {
    for line in [
        "POST /v1/sandbox/payments/x/change",
        "PUT /v1/sandbox/accounts/x/payments",
    ] {
        for (lines, expected) in [
            ("Host: localhost:8080\r\n", "404"),
            ("Host: thief.example\r\n", "403"),
            (
                "Host: localhost\r\nOrigin: https://thief.example\r\n",
                "403",
            ),
            ("Host: localhost\r\nGateway-Tpp-Id: a\r\n", "403"),
        ] {
            let trust = Trust::Gateway(Assertions::new("portvakt", "core", Clock::System));
            let request =
                format!("{line} HTTP/1.1\r\n{lines}Connection: close\r\nContent-Length: 0\r\n\r\n");
            let answer = exchange(core(None, trust), request.as_bytes()).await;
            assert_eq!(answer.get(9..12), Some(expected), "{line} {lines}");
        }
    }
}
