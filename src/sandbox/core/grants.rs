//! The gateway's word on what a TPP may read of a PSU's accounts (SBX-16).
//!
//! The bank asks for it each time a page shows an access, and keeps no copy: a consent may have ended at the gateway since.
//! Deliberately not here: which accounts a consent has. The gateway counts them, and the ledger names them.

use super::control::{Control, ControlFault};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// The reason of a refused call about a PSU whom the gateway does not know at this TPP.
pub(super) const PSU_UNKNOWN: &str = "psu-unknown";

/// SCA-7: account access lasts 180 days after the last SCA. In seconds.
const SCA_LASTS: i64 = 180 * 24 * 3_600;

/// The consents of one PSU to one TPP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Grants {
    last_sca: Option<Timestamp>,
    private: Option<Grant>,
    /// One for each agreement, which the gateway does not name.
    corporate: Vec<Grant>,
}

/// A consent that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    /// When the PSU gave it.
    pub(super) given: Option<Timestamp>,
    /// The number of its accounts; `None` for all.
    pub(super) accounts: Option<u64>,
}

/// How a consent that the ledger has stands at the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It stands. `None`: with others, which the gateway does not tell apart.
    Given(Option<Grant>),
    /// Some consents for companies ended, and the gateway does not tell which.
    Unclear,
    /// It ended, or the gateway never had it.
    Ended,
}

impl Grants {
    /// How the consent of a context stands. `agreements` is the number of agreements in which the ledger has accounts open to the TPP.
    pub(super) fn standing(&self, agreement: Option<Uuid>, agreements: usize) -> Standing {
        if agreement.is_none() {
            let given = |grant| Standing::Given(Some(grant));
            return self.private.map_or(Standing::Ended, given);
        }
        match self.corporate.as_slice() {
            [] => Standing::Ended,
            [only] if agreements == 1 => Standing::Given(Some(*only)),
            all if all.len() >= agreements => Standing::Given(None),
            _ => Standing::Unclear,
        }
    }

    /// The end of account access, unless the PSU authenticates for the TPP before; `None` if the gateway knows of no SCA.
    pub(super) fn until(&self) -> Option<Timestamp> {
        let seconds = self.last_sca?.as_second().saturating_add(SCA_LASTS);
        Timestamp::from_second(seconds).ok()
    }

    fn read(answer: Value) -> Result<Self, ControlFault> {
        let known: Known = serde_json::from_value(answer)
            .map_err(|fault| ControlFault::Away(fault.to_string()))?;
        let mut grants = Self {
            last_sca: known.last_sca.and_then(|at| at.parse().ok()),
            ..Self::default()
        };
        for context in known.contexts {
            let Some(consent) = context.consent else {
                continue;
            };
            let grant = Grant {
                given: consent.given.and_then(|at| at.parse().ok()),
                accounts: consent.accounts.as_u64(),
            };
            match context.context.as_str() {
                "PRIVATE" => grants.private = Some(grant),
                "CORPORATE" => grants.corporate.push(grant),
                _ => return Err(ControlFault::Away("it named an unknown context".into())),
            }
        }
        Ok(grants)
    }
}

impl Grant {
    /// Whether the gateway counts as many accounts as the ledger names.
    pub(super) fn is_of(self, accounts: usize) -> bool {
        self.accounts
            .is_none_or(|counted| u64::try_from(accounts) == Ok(counted))
    }
}

impl Control {
    /// What the gateway knows of a PSU at a TPP; nothing where it does not know the PSU.
    pub(super) async fn grants(&self, tpp: &str, psu: Uuid) -> Result<Grants, ControlFault> {
        let asked = json!({"tpp": tpp, "psu_id": psu.to_string()});
        match self.post("/psu/read", &asked).await {
            Err(ControlFault::Refused { reason, .. }) if reason == PSU_UNKNOWN => {
                Ok(Grants::default())
            }
            answer => Grants::read(answer?),
        }
    }
}

/// The answer of `/psu/read`, as far as the pages need it.
#[derive(Debug, Deserialize)]
struct Known {
    last_sca: Option<String>,
    contexts: Vec<KnownContext>,
}

#[derive(Debug, Deserialize)]
struct KnownContext {
    context: String,
    consent: Option<KnownConsent>,
}

#[derive(Debug, Deserialize)]
struct KnownConsent {
    given: Option<String>,
    /// A number, or "all".
    accounts: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "2026-03-01T12:00:00Z";

    fn grants(contexts: &[(&str, Value)]) -> Grants {
        let contexts = contexts.iter().map(|(context, accounts)| {
            let consent =
                (!accounts.is_null()).then(|| json!({"given": GIVEN, "accounts": accounts}));
            json!({"context": context, "last_sca": GIVEN, "consent": consent})
        });
        let contexts: Vec<_> = contexts.collect();
        let answer = json!({"last_sca": GIVEN, "session": null, "contexts": contexts});
        Grants::read(answer).unwrap()
    }

    //= SBX-16 accepted
    #[test]
    fn a_consent_stands_where_the_gateway_has_it() {
        let (agreement, given) = (Some(Uuid::nil()), GIVEN.parse().ok());
        let both = grants(&[("PRIVATE", json!(2)), ("CORPORATE", json!("all"))]);
        let private = Grant {
            given,
            accounts: Some(2),
        };
        let corporate = Grant {
            given,
            accounts: None,
        };
        assert_eq!(both.standing(None, 1), Standing::Given(Some(private)));
        assert_eq!(
            both.standing(agreement, 1),
            Standing::Given(Some(corporate))
        );
        assert!(private.is_of(2) && !private.is_of(3) && corporate.is_of(7));
        assert_eq!(both.until().unwrap().to_string(), "2026-08-28T12:00:00Z");
        let two = grants(&[("CORPORATE", json!(1)), ("CORPORATE", json!(1))]);
        assert_eq!(two.standing(agreement, 2), Standing::Given(None));
        // One of two ended, and nobody knows which.
        assert_eq!(both.standing(agreement, 2), Standing::Unclear);
    }

    //= SBX-16 refused
    #[test]
    fn a_consent_that_the_gateway_has_not_has_ended() {
        let agreement = Some(Uuid::nil());
        let withdrawn = grants(&[("PRIVATE", Value::Null), ("CORPORATE", Value::Null)]);
        for known in [withdrawn, Grants::default()] {
            assert_eq!(known.standing(None, 0), Standing::Ended);
            assert_eq!(known.standing(agreement, 2), Standing::Ended);
        }
        assert_eq!(Grants::default().until(), None);
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_no_answer() {
        for answer in [
            json!({}),
            json!({"contexts": [{"context": "OTHER", "consent": {"accounts": 1}}]}),
        ] {
            let read = Grants::read(answer.clone());
            assert!(matches!(read, Err(ControlFault::Away(_))), "{answer}");
        }
    }
}
