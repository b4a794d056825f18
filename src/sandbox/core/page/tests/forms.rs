//! The forms of the SCA page: what they accept, how often, in which language, and what ends them.

use super::super::super::bank::tests::NOON;
use super::{KARI, Stage, assert_redirected, form, form_of, pending, text};
use portvakt_base::clock::Timestamp;
use serde_json::json;

#[tokio::test]
async fn what_is_no_number_is_asked_for_again() {
    let stage = Stage::new(pending(true, None)).await;
    for other in ["", "1", "0101011234x", "<script>"] {
        let answer = stage.identify(other).await;
        let html = text(&answer);
        assert!(
            html.contains("role=\"alert\"") && !html.contains("<script"),
            "{html}"
        );
        assert!(form(&answer).fill("identity", "1"));
    }
    assert_eq!(stage.told(), []);
}

#[tokio::test]
async fn refusing_is_possible_at_either_step() {
    let stage = Stage::new(pending(true, None)).await;
    let first = stage.open().await;
    let second = form_of(&stage, KARI).await;
    for form in [first, second] {
        assert_redirected(&stage.press(&form, "refuse").await);
        let (call, said) = stage.told().remove(0);
        assert_eq!(
            (call, &said["code"], &said["status"]),
            ("fail", &json!("FORBIDDEN"), &json!(403))
        );
    }
}

#[tokio::test]
async fn a_request_that_is_over_leads_nowhere() {
    let stage = Stage::new(pending(true, None)).await;
    let answer = stage.ask("GET", "/sca?request=old", None).await;
    assert_eq!(answer.status, 410);
    assert!(text(&answer).contains("Time is up"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn a_form_is_accepted_once_and_only_the_banks_own() {
    let stage = Stage::new(pending(true, None)).await;
    let mut first = stage.open().await;
    first.fill("identity", KARI);
    let mut second = form(&stage.press(&first, "next").await);
    second.tick("account", true);
    // A used form, another site's form, and one of another request: nothing is approved, nothing is refused.
    let again = stage.press(&first, "next").await;
    let made_up = format!("request={}&step=refuse&form=made-up", stage.request());
    let made_up = stage.ask("POST", "/sca", Some(made_up)).await;
    let body = second.press(("step", "next"));
    let other = body.replace(&stage.request().replace('+', "%2B"), "t%2B99");
    assert_ne!(body, other);
    let other = stage.ask("POST", "/sca", Some(other)).await;
    for answer in [again, made_up, other] {
        assert!(text(&answer).contains("out of date"), "{}", text(&answer));
        assert!(form(&answer).fill("identity", "1"));
    }
    assert_eq!(stage.told(), []);
    // No page but the first knows the number, and no page repeats it.
    assert!(!body.contains(KARI));
}

#[tokio::test]
async fn a_second_press_of_the_button_leads_to_the_tpp_and_approves_nothing_twice() {
    let stage = Stage::new(pending(true, None)).await;
    let mut form = form_of(&stage, KARI).await;
    form.tick("account", true);
    for _ in 0..2 {
        assert_redirected(&stage.press(&form, "next").await);
    }
    let target = format!("/sca?request={}", stage.request().replace('+', "%2B"));
    assert_redirected(&stage.ask("GET", &target, None).await);
    assert_eq!(stage.told().len(), 1);
}

#[tokio::test]
async fn the_bank_waits_for_its_app_where_the_tpp_prefers_no_redirect() {
    let mut asked = pending(true, None);
    asked["redirect_preferred"] = false.into();
    let stage = Stage::new(asked).await;
    let answer = stage.identify(KARI).await;
    assert!(text(&answer).contains("Confirm in the bank"));
    let early = stage.press(&form(&answer), "next").await;
    assert!(text(&early).contains("has not confirmed yet"));
    stage.clock.set(Timestamp::from_unix(NOON.unix() + 2));
    let mut last = form(&stage.press(&form(&early), "next").await);
    assert_eq!(last.tick("account", true), 3);
    assert_redirected(&stage.press(&last, "next").await);
}

//= SBX-9 accepted
#[tokio::test]
async fn a_device_without_the_app_has_the_default_flow() {
    let mut asked = pending(true, None);
    asked["redirect_preferred"] = false.into();
    let stage = Stage::new(asked).await;
    let answer = stage.identify(KARI).await;
    assert!(text(&answer).contains("I do not have the app on this device"));
    // At once: no app is waited for.
    let mut last = form(&stage.press(&form(&answer), "without-app").await);
    assert_eq!(last.tick("account", true), 3);
    assert_redirected(&stage.press(&last, "next").await);
    let (call, said) = stage.told().remove(0);
    assert_eq!((call, &said["consent"]), ("complete", &true.into()));
}

//= SBX-9 refused
#[tokio::test]
async fn only_the_page_of_the_app_goes_on_without_it() {
    let stage = Stage::new(pending(true, None)).await;
    let first = stage.open().await;
    let answer = stage.press(&first, "without-app").await;
    assert!(text(&answer).contains("it has 11 digits"));
    assert_eq!(stage.told(), []);
}

#[tokio::test]
async fn the_page_speaks_norwegian_to_those_who_do() {
    let stage = Stage::new(pending(true, None)).await;
    let answer = stage.ask_in("nb-NO", "GET", "/sca?request=t", None).await;
    let html = text(&answer);
    assert!(html.contains("lang=\"nb\"") && html.contains("Gi tilgang til kontoene dine"));
    assert_eq!(answer.header("content-language"), Some("nb"));
    assert_eq!(answer.header("vary"), Some("Accept-Language"));
}

#[tokio::test]
async fn what_a_browser_sends_wrongly_gets_a_page() {
    let stage = Stage::new(pending(true, None)).await;
    let long = format!("request={}", "a".repeat(70_000));
    let answer = stage.ask("POST", "/sca", Some(long)).await;
    assert_eq!(answer.status, 400);
    assert!(answer.header("content-security-policy").is_some());
    let evil = "/sca?request=%3Cscript%3E%22onload&%FF=%FF";
    let answer = stage.ask("GET", evil, None).await;
    assert!(text(&answer).contains("value=\"&lt;script&gt;&quot;onload\""));
}
