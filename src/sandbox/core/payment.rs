//! Payments of the stand-in core: what is kept of one, and how its status moves.
//!
//! Invariant: RCVD until its payer signed it, then ACTC, then ACSC; never back.
//! Deliberately without a batch: a payment is booked once somebody has read that it was signed. Amounts are not judged, and lack of
//! funds is not known.

use super::account::nok;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Transfers abroad have one fee, in øre.
const FEE_ABROAD: i64 = 5_000;

/// Where a payment stands (§Payment transaction status values).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It was received, and waits for its payer's signature.
    Received,
    /// Its payer signed it.
    Signed,
    /// It is booked.
    Settled,
}

impl Status {
    /// As the interface writes it.
    const fn word(self) -> &'static str {
        match self {
            Self::Received => "RCVD",
            Self::Signed => "ACTC",
            Self::Settled => "ACSC",
        }
    }
}

/// One payment.
#[derive(Clone, Debug)]
pub(super) struct Payment {
    /// What the TPP names it by.
    pub(super) id: Uuid,
    /// Who initiated it; nobody else is shown it.
    pub(super) tpp: String,
    /// Whose money it is: a national identity number.
    pub(super) payer: String,
    /// The agreement on whose behalf, in a corporate context.
    pub(super) agreement: Option<Uuid>,
    product: String,
    body: Map<String, Value>,
    status: Status,
}

impl Payment {
    /// A payment that was just initiated. A body that is no JSON object is none.
    pub(super) fn received(
        tpp: &str,
        payer: &str,
        agreement: Option<Uuid>,
        product: &str,
        body: &[u8],
    ) -> Option<Self> {
        Some(Self {
            id: Uuid::new_v4(),
            tpp: tpp.to_owned(),
            payer: payer.to_owned(),
            agreement,
            product: product.to_owned(),
            body: serde_json::from_slice(body).ok()?,
            status: Status::Received,
        })
    }

    /// The payer signed it. One that is signed stays what it is.
    pub(super) fn sign(&mut self) {
        if self.status == Status::Received {
            self.status = Status::Signed;
        }
    }

    /// The status, as somebody reads it.
    pub(super) fn look(&mut self) -> Value {
        let word = self.status.word();
        if self.status == Status::Signed {
            self.status = Status::Settled;
        }
        json!({ "transactionStatus": word })
    }

    /// The answer to its creation.
    pub(super) fn created(&self) -> Value {
        let path = self.path();
        let mut answer = json!({
            "paymentId": self.id.to_string(),
            "transactionStatus": self.status.word(),
            "psuMessage": "The payment is carried out once you have signed it.",
            "_links": super::examples::authorise_and_status(&path),
        });
        if let Some(answer) = answer.as_object_mut()
            && self.product == "norwegian-cross-border-credit-transfers"
        {
            answer.insert("transactionFeeIndicator".into(), true.into());
            answer.insert("transactionFees".into(), nok(FEE_ABROAD));
        }
        answer
    }

    /// The answer to a read of the whole of it: what was posted, and where it stands.
    pub(super) fn shown(&self) -> Value {
        let mut shown = self.body.clone();
        shown.insert("paymentId".into(), self.id.to_string().into());
        shown.insert("transactionStatus".into(), self.status.word().into());
        Value::Object(shown)
    }

    /// Its path, which is what the gateway names it by where an SCA is about it.
    pub(super) fn path(&self) -> String {
        format!("/v1/payments/{}/{}", self.product, self.id)
    }

    /// The amount with its currency, for the payer to read.
    pub(super) fn amount(&self) -> String {
        let part = |name| self.body.get("instructedAmount")?.get(name)?.as_str();
        let (amount, currency) = (part("amount"), part("currency"));
        format!("{} {}", currency.unwrap_or("?"), amount.unwrap_or("?"))
    }

    /// Who gets it, for the payer to read: name and account.
    pub(super) fn creditor(&self) -> String {
        let account = self.body.get("creditorAccount");
        let number = |name| account?.get(name)?.as_str();
        let number = number("iban").or_else(|| number("bban"));
        let name = self.body.get("creditorName").and_then(Value::as_str);
        format!("{}, {}", name.unwrap_or("?"), number.unwrap_or("?"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"instructedAmount": {"amount": "10.00", "currency": "NOK"},
        "creditorName": "<b>", "creditorAccount": {"bban": "86011117947"}}"#;

    fn payment(product: &str) -> Payment {
        Payment::received("PSDNO-FSA-1", "01010112345", None, product, BODY.as_bytes()).unwrap()
    }

    #[test]
    fn a_payment_is_received_signed_and_booked() {
        let mut payment = payment("norwegian-domestic-credit-transfers");
        let mut look = || payment.look()["transactionStatus"].clone();
        assert_eq!([look(), look()], ["RCVD", "RCVD"]);
        payment.sign();
        let mut look = || payment.look()["transactionStatus"].clone();
        assert_eq!([look(), look()], ["ACTC", "ACSC"]);
        payment.sign();
        assert_eq!(payment.look()["transactionStatus"], "ACSC");
    }

    #[test]
    fn its_creation_says_what_the_interface_asks() {
        let domestic = payment("norwegian-domestic-credit-transfers").created();
        assert_eq!(domestic["transactionStatus"], "RCVD");
        assert!(domestic["psuMessage"].as_str().unwrap().len() <= 512);
        assert_eq!(domestic.get("transactionFees"), None);
        let links = &domestic["_links"];
        assert_eq!(links["startAuthorisation"]["verbs"], json!(["POST"]));
        assert!(
            links["status"]["href"]
                .as_str()
                .unwrap()
                .ends_with("/status")
        );
        let abroad = payment("norwegian-cross-border-credit-transfers").created();
        assert_eq!(abroad["transactionFees"]["amount"], "50.00");
    }

    #[test]
    fn its_payer_can_read_it() {
        let payment = payment("p");
        assert_eq!(payment.amount(), "NOK 10.00");
        assert_eq!(payment.creditor(), "<b>, 86011117947");
        assert_eq!(payment.shown()["creditorName"], "<b>");
        assert!(Payment::received("t", "p", None, "p", b"[]").is_none());
        let empty = Payment::received("t", "p", None, "p", b"{}").unwrap();
        assert_eq!(
            (empty.amount(), empty.creditor()),
            ("? ?".into(), "?, ?".into())
        );
    }
}
