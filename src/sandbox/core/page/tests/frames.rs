//! The pages in frames: the SCA page in those of origins that the bank names, and no other page (SBX-17).

use super::super::super::frames::{FrameOrigin, Frames};
use super::{KARI, Stage, form, pending};
use portvakt::tools::tpp::TppAnswer;
use std::sync::{Arc, Mutex};

const ORIGINS: [&str; 2] = ["https://tpp.example", "https://other.example:8443"];

async fn stage(origins: &[&str]) -> Stage {
    let origins: Vec<FrameOrigin> = origins
        .iter()
        .map(|origin| origin.parse().unwrap())
        .collect();
    let pending = Arc::new(Mutex::new(pending(true, None)));
    Stage::framed(pending, Frames::of(&origins).unwrap()).await
}

/// The origins that may frame an answer, and X-Frame-Options.
fn frames(answer: &TppAnswer) -> (&str, Option<&str>) {
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    let (_, ancestors) = policy.split_once("frame-ancestors ").unwrap();
    (ancestors, answer.header("x-frame-options"))
}

/// Every kind of answer of the SCA page: a page, the next one, the redirect, an error and a body that is too long.
async fn sca_answers(stage: &Stage) -> Vec<TppAnswer> {
    let first = stage.ask("GET", "/sca?request=t%2B1", None).await;
    let next = stage.identify(KARI).await;
    let end = stage.press(&form(&next), "next").await;
    assert_eq!(end.status, 303);
    let old = stage.ask("GET", "/sca?request=old", None).await;
    let long = format!("request={}", "a".repeat(70_000));
    let long = stage.ask("POST", "/sca", Some(long)).await;
    vec![first, next, end, old, long]
}

//= SBX-17 accepted
#[tokio::test]
async fn the_sca_page_may_be_framed_by_the_named_origins() {
    let stage = stage(&ORIGINS).await;
    for answer in sca_answers(&stage).await {
        let expected = "https://tpp.example https://other.example:8443";
        assert_eq!(frames(&answer), (expected, None), "{}", answer.status);
    }
}

//= SBX-17 refused
#[tokio::test]
async fn no_other_page_is_framed_and_none_by_default() {
    let by_default = stage(&[]).await;
    let mut answers = sca_answers(&by_default).await;
    let named = stage(&ORIGINS).await;
    for target in ["/accesses", "/console"] {
        answers.push(named.ask("GET", target, None).await);
    }
    for body in ["form=made-up", "form=%FF"] {
        answers.push(named.ask("POST", "/accesses", Some(body.into())).await);
    }
    for answer in answers {
        assert_eq!(
            frames(&answer),
            ("'none'", Some("DENY")),
            "{}",
            answer.status
        );
    }
}
