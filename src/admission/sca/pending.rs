//! What an SCA would be about that a request starts (SCA-9, SCA-12).

use crate::{
    interface::{
        headers::{self, Header, choices, uuid_form},
        operations::{Environment, Operation},
    },
    sca::Pending,
};
use uuid::Uuid;

/// The SCA that a request of this TPP starts; none without TPP-Redirect-URI. `get` gives the filled headers that the
/// operation takes, `path` is the request's, and `psu` is named only if it is bound to the TPP.
pub(in crate::admission) fn pending<'h>(
    get: impl Fn(&Header) -> Option<&'h [u8]>,
    operation: &Operation,
    environment: Environment,
    path: &str,
    tpp: &str,
    tpp_name: &str,
    psu: Option<u128>,
) -> Option<Pending> {
    let text = |header| Some(std::str::from_utf8(get(header)?).ok()?.to_owned());
    Some(Pending {
        environment,
        tpp: tpp.to_owned(),
        tpp_name: plain_name(tpp_name),
        // SCA-9: a missing session is no error.
        session: text(&headers::TPP_SESSION_ID).unwrap_or_else(|| Uuid::new_v4().to_string()),
        redirect_uri: text(&headers::TPP_REDIRECT_URI)?,
        preferred: get(&headers::TPP_REDIRECT_PREFERRED).and_then(choices::redirect_preferred)
            != Some(false),
        operation: operation.name.clone(),
        resource: operation.resource(path).map(str::to_owned),
        asks_consent: operation.asks_consent(),
        context: get(&headers::PSU_CONTEXT).and_then(choices::context),
        corporate: get(&headers::PSU_CORPORATE_ID).and_then(uuid_form::parse),
        psu,
    })
}

/// The most characters of a name: X.520 has 64, and some certificates more.
const MAX_NAME: usize = 128;

/// A name as a page can show it: bounded, and without what steers a terminal or turns text around.
fn plain_name(name: &str) -> String {
    let steers = |character: &char| {
        character.is_control()
            || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut plain = String::with_capacity(name.len());
    let kept = name.chars().filter(|character| !steers(character));
    plain.extend(kept.take(MAX_NAME));
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_shown() {
        assert_eq!(
            plain_name("\u{c6}rlig Betaling AS"),
            "\u{c6}rlig Betaling AS"
        );
        assert_eq!(plain_name("a\u{202e}b\nc\0d\u{2066}"), "abcd");
        assert_eq!(plain_name(&"\u{e6}".repeat(200)).chars().count(), MAX_NAME);
        assert_eq!(plain_name(""), "");
    }
}
