//! Accounts and contexts on the SCA page: what the PSU opens, and what is not asked again (SBX-3).

use super::super::super::seed::WITH_AGREEMENT;
use super::{KARI, Stage, TPP, assert_redirected, form, form_of, pending, text};
use serde_json::json;

//= SBX-3 accepted
#[tokio::test]
async fn a_new_psu_consents_to_accounts_and_takes_it_back() {
    let stage = Stage::new(pending(true, None)).await;
    let mut form = form_of(&stage, KARI).await;
    assert_eq!(form.ticked(), [""; 0]);
    assert_eq!(form.tick("account", true), 3);
    let accounts = form.values("account").into_iter().map(str::to_owned);
    let mut accounts: Vec<_> = accounts.collect();
    accounts.sort();
    assert_redirected(&stage.press(&form, "next").await);
    let psu = stage.psu();
    let said = json!({"request": stage.request(), "psu_id": psu, "context": "PRIVATE", "consent": true, "accounts": accounts});
    assert_eq!(stage.told(), [("complete", said)]);

    // The accounts are ticked the next time, and unticking them withdraws the consent.
    let mut form = form_of(&stage, KARI).await;
    assert_eq!(form.ticked().len(), 3);
    form.tick("account", false);
    assert_redirected(&stage.press(&form, "next").await);
    let said =
        json!({"request": stage.request(), "psu_id": psu, "context": "PRIVATE", "consent": false});
    let withdrawn = json!({"tpp": TPP, "psu_id": psu, "what": "consent"});
    assert_eq!(stage.told(), [("complete", said), ("withdraw", withdrawn)]);
    assert_eq!(form_of(&stage, KARI).await.ticked().len(), 0);
}

//= SBX-3 accepted
#[tokio::test]
async fn whoever_acts_for_a_corporation_chooses() {
    let stage = Stage::new(pending(true, None)).await;
    let mut chosen = form_of(&stage, WITH_AGREEMENT).await;
    assert_eq!(chosen.ticked(), ["PRIVATE"]);
    assert_eq!(chosen.values("account"), [""; 0]);
    let agreement = chosen.values("context")[1].to_owned();
    chosen.choose(&agreement);
    let mut form = form(&stage.press(&chosen, "next").await);
    assert_eq!(form.tick("account", true), 2);
    assert_redirected(&stage.press(&form, "next").await);
    let (_, said) = stage.told().remove(0);
    assert_eq!(said["context"], "CORPORATE");
    assert_eq!(said["psu_corporate_id"], agreement.as_str());
    assert_eq!(said["accounts"].as_array().unwrap().len(), 2);
}

//= SBX-3 refused
#[tokio::test]
async fn accounts_of_another_context_are_not_opened() {
    let stage = Stage::new(pending(true, None)).await;
    let own = form_of(&stage, WITH_AGREEMENT).await;
    let own = form(&stage.press(&own, "next").await);
    let mut chosen = form_of(&stage, WITH_AGREEMENT).await;
    let agreement = chosen.values("context")[1].to_owned();
    chosen.choose(&agreement);
    let form = form(&stage.press(&chosen, "next").await);
    // The private accounts, with the one-time token of the page with the corporation's.
    let body = form.press(("step", "next"));
    let others = own.values("account").into_iter();
    let others: String = others.map(|id| format!("&account={id}")).collect();
    assert_redirected(&stage.ask("POST", "/sca", Some(body + &others)).await);
    let (_, said) = stage.told().remove(0);
    assert_eq!(
        (&said["context"], &said["consent"]),
        (&json!("CORPORATE"), &json!(false))
    );
}

#[tokio::test]
async fn what_the_tpp_chose_is_not_asked_again() {
    let mut asked = pending(true, None);
    asked["context"] = "CORPORATE".into();
    let stage = Stage::new(asked).await;
    let form = form_of(&stage, WITH_AGREEMENT).await;
    assert_eq!(form.values("context"), [""; 0]);
    assert_eq!(form.values("account").len(), 2);
    // A private customer can then choose nothing.
    let answer = stage.identify(KARI).await;
    assert!(text(&answer).contains("You have no access on behalf"));
    assert_eq!(stage.told(), []);
}
