//! The page of accesses (SBX-16): who may read, and the end of it at the gateway and at the bank.

use super::super::super::language::grouped;
use super::super::super::seed::WITH_AGREEMENT;
use super::{KARI, Stage, TPP, assert_redirected, form, form_of, pending, text};
use crate::demo::form::Form;
use portvakt::tools::tpp::{CallOptions, SignedRequest, TppAnswer, call};
use portvakt_base::clock::Timestamp;
use serde_json::{Value, json};

/// A customer who is not Kari.
const OTHER: &str = "01010112346";

/// A customer who acts for two corporations.
const FOR_TWO: &str = "20000000029";

const NONE: &str = "No provider may read your accounts.";

impl Stage {
    /// The page of accesses of a person.
    async fn list(&self, identity: &str) -> TppAnswer {
        let mut first = form(&self.ask("GET", "/accesses", None).await);
        assert_eq!(first.action, "accesses");
        assert!(first.fill("identity", identity));
        self.submit(&first, ("step", "next")).await
    }

    async fn submit(&self, form: &Form, button: (&str, &str)) -> TppAnswer {
        let body = form.press(button);
        self.ask("POST", "/accesses", Some(body)).await
    }

    /// A person opens every account of a context to the TPP; `agreement` is its place among the contexts that they may choose.
    async fn give(&self, identity: &str, context: Option<usize>) {
        let mut page = form_of(self, identity).await;
        if let Some(place) = context {
            let value = page.values("context")[place].to_owned();
            page.choose(&value);
            page = form(&self.press(&page, "next").await);
        }
        assert!(page.tick("account", true) > 0);
        assert_redirected(&self.press(&page, "next").await);
        self.told();
    }

    /// The status that the TPP gets for Kari's accounts, past the gateway.
    async fn read(&self) -> u16 {
        let request = SignedRequest {
            method: "GET".into(),
            target: "/v1/accounts".into(),
            headers: vec![
                ("Gateway-Tpp-Id".into(), TPP.into()),
                ("PSU-ID".into(), self.psu()),
            ],
            body: None,
            signing_string: String::new(),
        };
        let answer = call(&request, &self.page, &CallOptions::default()).await;
        answer.unwrap().status
    }

    /// The gateway withdraws Kari's consent without a word to the bank.
    fn withdraw_at_the_gateway(&self) {
        let psu = self.psu();
        let mut known = self.known.lock().unwrap();
        known[psu.as_str()]["contexts"][0]["consent"] = Value::Null;
    }

    /// The SCA page says nothing of an access of Kari's, and ticks nothing.
    async fn asks_anew(&self) {
        let answer = self.identify(KARI).await;
        assert!(!text(&answer).contains("has access today"));
        assert_eq!(form(&answer).ticked(), [""; 0]);
    }
}

/// The page shows these texts.
fn assert_shows(answer: &TppAnswer, texts: &[&str]) {
    let html = text(answer);
    for shown in texts {
        assert!(html.contains(shown), "{shown}: {html}");
    }
}

//= SBX-16 accepted
#[tokio::test]
async fn a_psu_sees_who_may_read_and_withdraws() {
    let stage = Stage::new(pending(true, None)).await;
    assert_shows(&stage.list(KARI).await, &[NONE]);
    stage.give(KARI, None).await;
    let given = stage.list(KARI).await;
    assert_eq!(given.status, 200);
    let accounts = {
        let bank = stage.core.bank();
        let kari = bank.customer(KARI).unwrap();
        bank.accounts_of(&kari.id).unwrap()
    };
    for account in accounts {
        assert_shows(&given, &[&account.name, &grouped(&account.bban)]);
    }
    assert_shows(
        &given,
        &[
            "Tredjepart &lt;AS&gt;",
            TPP,
            "yourself",
            "2 March 2026",
            "29 August 2026",
            "none that the bank knows of",
        ],
    );
    assert_shows(&stage.identify(KARI).await, &["has access today"]);
    // A use, and a later one in the same minute.
    assert_eq!(stage.read().await, 200);
    let noon = stage.clock.now().unix();
    stage.clock.set(Timestamp::from_unix(noon + 59));
    assert_eq!(stage.read().await, 200);
    let used = stage.list(KARI).await;
    assert_shows(&used, &["2 March 2026, 12:00"]);

    let withdrawn = stage.submit(&form(&used), ("withdraw", "0")).await;
    assert_eq!(withdrawn.status, 200);
    assert_shows(
        &withdrawn,
        &["role=\"status\"", "Access is withdrawn", NONE],
    );
    let said = json!({"tpp": TPP, "psu_id": stage.psu(), "what": "consent"});
    assert_eq!(stage.told(), [("withdraw", said)]);
    // The bank's own consent has ended too, and the TPP's consent operation leads to a page that agrees.
    assert_eq!(stage.read().await, 401);
    stage.asks_anew().await;
}

//= SBX-16 accepted
#[tokio::test]
async fn a_withdrawal_at_the_gateway_shows() {
    let stage = Stage::new(pending(true, None)).await;
    stage.give(KARI, None).await;
    stage.withdraw_at_the_gateway();
    assert_shows(&stage.list(KARI).await, &[NONE]);
    stage.asks_anew().await;
    // A binding that the gateway has no longer.
    stage.give(KARI, None).await;
    assert_shows(&stage.identify(KARI).await, &["has access today"]);
    *stage.known.lock().unwrap() = json!({});
    assert_shows(&stage.list(KARI).await, &[NONE]);
    stage.asks_anew().await;
}

//= SBX-16 accepted
#[tokio::test]
async fn an_access_that_needs_sca_again_is_granted_and_over() {
    let stage = Stage::new(pending(true, None)).await;
    stage.give(KARI, None).await;
    let noon = stage.clock.now().unix();
    let later = noon + 180 * 24 * 3_600;
    stage.clock.set(Timestamp::from_unix(later));
    assert_shows(
        &stage.list(KARI).await,
        &["29 August 2026", "This time is over"],
    );
    let answer = stage.identify(KARI).await;
    assert!(!text(&answer).contains("has access today"));
    assert_eq!(form(&answer).ticked().len(), 3);
}

//= SBX-16 accepted
#[tokio::test]
async fn every_context_is_listed_and_all_are_withdrawn_at_once() {
    let stage = Stage::new(pending(true, None)).await;
    stage.give(WITH_AGREEMENT, Some(0)).await;
    stage.give(WITH_AGREEMENT, Some(1)).await;
    let shown = stage.list(WITH_AGREEMENT).await;
    assert_shows(
        &shown,
        &["yourself", "Fisk og Redskap AS", "Withdraw all access"],
    );
    // One alone, and then all that are left.
    let one = stage.submit(&form(&shown), ("withdraw", "1")).await;
    assert!(!text(&one).contains("Fisk og Redskap AS"));
    let told = stage.told();
    assert!(told[0].1["psu_corporate_id"].is_string(), "{told:?}");
    stage.give(WITH_AGREEMENT, Some(1)).await;
    let shown = form(&stage.list(WITH_AGREEMENT).await);
    let none = stage.submit(&shown, ("withdraw", "all")).await;
    assert_shows(&none, &["Access is withdrawn", NONE]);
    assert_eq!(stage.told().len(), 2);
}

//= SBX-16 accepted
#[tokio::test]
async fn of_two_companies_the_bank_does_not_guess_whose_access_ended() {
    let stage = Stage::new(pending(true, None)).await;
    for place in [1, 2] {
        stage.give(FOR_TWO, Some(place)).await;
    }
    let unclear = "It cannot say for which company";
    assert!(!text(&stage.list(FOR_TWO).await).contains(unclear));
    {
        let mut known = stage.known.lock().unwrap();
        let psu = known.as_object_mut().unwrap().values_mut().next().unwrap();
        psu["contexts"][0]["consent"] = Value::Null;
    }
    let shown = stage.list(FOR_TWO).await;
    assert_shows(&shown, &["Bysykkelen AS", "Fisk og Redskap AS", unclear]);
    let mut page = form_of(&stage, FOR_TWO).await;
    let value = page.values("context")[1].to_owned();
    page.choose(&value);
    let asked = form(&stage.press(&page, "next").await);
    assert_eq!(asked.ticked(), [""; 0]);
}

//= SBX-16 refused
#[tokio::test]
async fn nobody_withdraws_by_a_form_of_another() {
    let stage = Stage::new(pending(true, None)).await;
    stage.give(KARI, None).await;
    stage.give(OTHER, None).await;
    // A made-up token, a used one, and the first page's.
    let used = form(&stage.list(KARI).await);
    let first = form(&stage.ask("GET", "/accesses", None).await);
    assert_eq!(stage.submit(&used, ("withdraw", "7")).await.status, 200);
    let made_up = "form=made-up&withdraw=all".to_owned();
    let made_up = stage.ask("POST", "/accesses", Some(made_up)).await;
    let again = stage.submit(&used, ("withdraw", "0")).await;
    for answer in [made_up, again] {
        assert_shows(&answer, &["out of date"]);
        assert!(form(&answer).fill("identity", "1"));
    }
    let no_number = stage.submit(&first, ("withdraw", "all")).await;
    assert_shows(&no_number, &["role=\"alert\""]);
    assert_eq!(stage.told(), []);
    // What is not in the other's list: nothing happens. What is there is the other's own.
    for place in ["1", "-1", "", "PRIVATE"] {
        let form = form(&stage.list(OTHER).await);
        let answer = stage.submit(&form, ("withdraw", place)).await;
        assert_shows(&answer, &["out of date", TPP]);
    }
    assert_eq!(stage.told(), []);
    let others = form(&stage.list(OTHER).await);
    stage.submit(&others, ("withdraw", "all")).await;
    let told = stage.told();
    assert_ne!(told[0].1["psu_id"], stage.psu().as_str());
    assert_eq!((told.len(), stage.read().await), (1, 200));
}

//= SBX-16 refused
#[tokio::test]
async fn without_the_gateway_the_bank_says_nothing_and_ends_nothing() {
    let stage = Stage::new(pending(true, None)).await;
    stage.give(KARI, None).await;
    let page = form(&stage.list(KARI).await);
    stage.refuse_call("withdraw", 503, "state-unavailable");
    let answer = stage.submit(&page, ("withdraw", "0")).await;
    assert_eq!(answer.status, 502);
    assert_shows(&answer, &["role=\"alert\"", "was not withdrawn", TPP]);
    assert_eq!(stage.read().await, 200);

    stage.refuse_call("psu-read", 503, "state-unavailable");
    let answer = stage.list(KARI).await;
    assert_eq!(answer.status, 502);
    assert_shows(&answer, &["cannot say who may read", "href=\"accesses\""]);
    assert!(!text(&answer).contains(TPP));
    let answer = stage.identify(KARI).await;
    assert_eq!(answer.status, 502);
    assert_shows(&answer, &["We cannot continue right now"]);
}

#[tokio::test]
async fn a_number_that_nobody_has_makes_no_customer() {
    let stage = Stage::new(pending(true, None)).await;
    let count = || stage.core.bank().customers().unwrap().len();
    let before = count();
    assert_shows(&stage.list("99999999999").await, &[NONE]);
    assert_eq!(count(), before);
    for wrong in ["", "123", "0101011234x"] {
        let answer = stage.list(wrong).await;
        assert_shows(&answer, &["role=\"alert\"", "aria-invalid=\"true\""]);
    }
}

#[tokio::test]
async fn the_page_of_accesses_speaks_norwegian_to_those_who_do() {
    let stage = Stage::new(pending(true, None)).await;
    let answer = stage.ask_in("nb-NO", "GET", "/accesses", None).await;
    assert_shows(&answer, &["lang=\"nb\"", "Hvem kan lese kontoene dine"]);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("content-language"), Some("nb"));
}
