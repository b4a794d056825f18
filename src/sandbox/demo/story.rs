//! The story: account access and payments as in the interface (§Flows), each step with its expected result. The other flows are
//! in flows.rs.
//!
//! Invariant: each step sends only values that earlier answers contained. If a step gets no value, later steps send an empty one
//! and are refused: a failure is never hidden.

use super::answered::Answered;
use super::memory::{Memory, keep};
use super::request::{CROSS_BORDER, PAYMENT, SESSION, SOMEBODY_ELSES, get, headers, payment, with};
use super::scene::{Expected, Scene, scene};
use portvakt::tools::tpp::Unsigned;

/// A payment within Norway.
pub(super) const DOMESTIC: &str = "/v1/payments/norwegian-domestic-credit-transfers";

/// The number of calls without the PSU in 24 hours (QUO-1).
const CALLS: usize = 4;

/// A step.
#[derive(Debug)]
pub(super) enum Step {
    /// A flow of the interface begins (SBX-9).
    Flow(&'static str),
    /// The TPP calls.
    Call(Box<Scene>),
    /// The PSU follows the link, with a browser.
    Visit(Visit),
    /// Hours pass, and the bank runs its batch.
    Batch,
}

/// The PSU at the bank's page.
#[derive(Debug)]
pub(super) struct Visit {
    /// One line that says what is special about it.
    pub(super) title: &'static str,
    /// The visitor.
    pub(super) visitor: Visitor,
}

/// A visitor of the bank's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visitor {
    /// The PSU of this story.
    Psu,
    /// A customer of the bank's who also acts for a corporation.
    Representative,
}

/// All of them, in order.
pub(super) fn all() -> Vec<Step> {
    let mut steps = vec![
        Step::Flow("Account access"),
        called(first_call()),
        visited("The PSU follows the link, authenticates and ticks the accounts"),
        called(Scene {
            learn: learn_account,
            shows_core: true,
            ..scene(
                "The TPP asks again, with the psu-id of the redirect",
                accounts,
                Expected::Forwarded(200),
            )
        }),
    ];
    steps.extend(without_the_psu());
    steps.extend(one_payment());
    steps.extend(single_sca());
    steps
}

/// The call that starts an SCA (§Account access 1).
pub(super) fn first_call() -> Scene {
    Scene {
        learn: learn_link,
        ..scene(
            "The TPP asks for accounts, of nobody yet",
            |_| with(get("/v1/accounts"), &[("TPP-Session-ID", SESSION)]),
            Expected::Refused(401, "sca-required"),
        )
    }
}

/// §Limits: four calls in 24 hours, and not a fifth.
fn without_the_psu() -> Vec<Step> {
    let balances = |title, expected| scene(title, balances, expected);
    let allowed = (0..CALLS).map(|_| {
        called(Scene {
            learn: |answered, _| answered.header("ratelimit").is_some(),
            ..balances("A balance, and the PSU is away", Expected::Forwarded(200))
        })
    });
    let refused = called(Scene {
        learn: |answered, _| answered.header("retry-after").is_some(),
        ..balances(
            "The same a fifth time within 24 hours",
            Expected::Refused(429, "quota-exceeded"),
        )
    });
    allowed.chain([refused]).collect()
}

/// §Single payment, and REP-1.
fn one_payment() -> [Step; 6] {
    [
        Step::Flow("Single payment"),
        called(Scene {
            learn: learn_payment,
            shows_core: true,
            ..scene(
                "A payment abroad of the same PSU",
                |memory| {
                    // The bank looks at 100 000 NOK and more until its next batch, and the account has less.
                    let body = PAYMENT.replace(SOMEBODY_ELSES, &memory.iban);
                    let body = body.replace("150000.00", "1500.00");
                    with(payment(body.into()), &[("PSU-ID", &memory.psu)])
                },
                Expected::Forwarded(201),
            )
        }),
        called(Scene {
            again: true,
            ..scene(
                "The same request once more, byte for byte",
                |_| get(CROSS_BORDER),
                Expected::Refused(409, "request-replayed"),
            )
        }),
        called(authorisation()),
        visited("The PSU follows the link, and signs the payment"),
        called(status("Its status, once it is signed", is_signed)),
    ]
}

/// The start of a payment's or a basket's authorisation.
pub(super) fn authorisation() -> Scene {
    Scene {
        learn: learn_link,
        ..scene(
            "The TPP starts its authorisation",
            |memory| Unsigned {
                method: "POST".into(),
                ..with(get(&memory.authorise), &[("TPP-Session-ID", SESSION)])
            },
            Expected::Forwarded(201),
        )
    }
}

/// §Single SCA payment flow: the TPP may only pay, and does not know the PSU yet.
fn single_sca() -> [Step; 9] {
    [
        Step::Flow("Payment with a single SCA"),
        by_pisp(Scene {
            learn: learn_payment,
            ..scene(
                "A payment by X-PSU-IDENTITY, without a PSU-ID",
                domestic_payment,
                Expected::Forwarded(201),
            )
        }),
        by_pisp(scene(
            "Its status, which nobody reads of a domestic payment before it is signed",
            |memory| get(&memory.status),
            Expected::Forwarded(404),
        )),
        by_pisp(authorisation()),
        visited("The PSU follows the link, and signs the payment"),
        by_pisp(status("Its status, once it is signed", is_signed)),
        // The first run books the payment, the second one settles it.
        Step::Batch,
        Step::Batch,
        by_pisp(status("Its status, once it has arrived", |answered, _| {
            is_status(answered, "ACSC")
        })),
    ]
}

/// A question for the status of the latest payment or basket.
pub(super) fn status(title: &'static str, learn: fn(&Answered, &mut Memory) -> bool) -> Scene {
    Scene {
        learn,
        ..scene(
            title,
            |memory| get(&memory.status),
            Expected::Forwarded(200),
        )
    }
}

pub(super) fn called(scene: Scene) -> Step {
    Step::Call(Box::new(scene))
}

/// A call of the TPP that may only pay.
pub(super) fn by_pisp(scene: Scene) -> Step {
    called(Scene {
        signer: "tpp-pisp",
        ..scene
    })
}

pub(super) fn visited(title: &'static str) -> Step {
    Step::Visit(Visit {
        title,
        visitor: Visitor::Psu,
    })
}

/// The accounts of the PSU, who has a session.
pub(super) fn accounts(memory: &Memory) -> Unsigned {
    with(
        get("/v1/accounts"),
        &[("PSU-ID", &memory.psu), ("TPP-Session-ID", SESSION)],
    )
}

fn balances(memory: &Memory) -> Unsigned {
    let target = format!("/v1/accounts/{}/balances", memory.account);
    let mut request = with(get(&target), &[("PSU-ID", &memory.psu)]);
    request.headers.retain(|(name, _)| name != "PSU-IP-Address");
    request
}

fn domestic_payment(memory: &Memory) -> Unsigned {
    Unsigned {
        method: "POST".into(),
        target: DOMESTIC.into(),
        headers: headers(&[
            ("Content-Type", "application/json"),
            ("TPP-Session-ID", SESSION),
            ("X-PSU-IDENTITY", &memory.identity),
            ("PSU-Context", "PRIVATE"),
        ]),
        body: Some(domestic_body(memory)),
    }
}

/// A payment from the PSU's first account.
pub(super) fn domestic_body(memory: &Memory) -> Vec<u8> {
    DOMESTIC_PAYMENT.replace(OWN, &memory.bban).into()
}

/// The placeholder for the PSU's own account number.
const OWN: &str = "(own)";

const DOMESTIC_PAYMENT: &str = concat!(
    r#"{"instructedAmount":{"amount":"249.50","currency":"NOK"},"creditorName":"Bakeriet på hjørnet","#,
    r#""creditorAccount":{"iban":"NO9386011117947","currency":"NOK"},"#,
    r#""debtorAccount":{"bban":"(own)","currency":"NOK"}}"#,
);

pub(super) fn learn_link(answered: &Answered, memory: &mut Memory) -> bool {
    keep(&mut memory.link, answered.link("scaRedirect"))
}

fn learn_account(answered: &Answered, memory: &mut Memory) -> bool {
    let first = |name| answered.body.get("accounts")?.get(0)?.get(name)?.as_str();
    keep(&mut memory.account, first("resourceId"))
        && keep(&mut memory.bban, first("bban"))
        && keep(&mut memory.iban, first("iban"))
}

/// What a new payment or basket gives.
pub(super) fn learn_payment(answered: &Answered, memory: &mut Memory) -> bool {
    keep(&mut memory.authorise, answered.link("startAuthorisation"))
        && keep(&mut memory.status, answered.link("status"))
        && is_status(answered, "RCVD")
}

/// Whether the payment or basket is signed.
pub(super) fn is_signed(answered: &Answered, _: &mut Memory) -> bool {
    is_status(answered, "ACTC")
}

fn is_status(answered: &Answered, status: &str) -> bool {
    answered.text("transactionStatus") == Some(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn an_answer_that_does_not_say_it_teaches_nothing() {
        let mut memory = Memory::default();
        let answered = |body| Answered::new(200, body);
        assert!(!learn_link(&answered(json!({"_links": {}})), &mut memory));
        assert!(!learn_account(
            &answered(json!({"accounts": []})),
            &mut memory
        ));
        assert!(!learn_payment(&answered(Value::Null), &mut memory));
        let link = json!({"_links": {"scaRedirect": {"href": "http://b/"}}});
        assert!(learn_link(&answered(link), &mut memory));
        assert_eq!(memory.link, "http://b/");
    }

    #[test]
    fn the_payment_is_json() {
        let payment: Value = serde_json::from_str(DOMESTIC_PAYMENT).unwrap();
        assert_eq!(payment["instructedAmount"]["amount"], "249.50");
    }
}
