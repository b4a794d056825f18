//! The pending SCA that a request starts (SCA-9, SCA-12).

use crate::{
    admission::envelope::Envelope,
    interface::{
        TppId,
        headers::{PsuId, SessionId},
        operations::{Environment, Operation},
    },
    sca::Pending,
    state::Known,
};
use uuid::Uuid;

/// The SCA that a request of this TPP starts; `None` without TPP-Redirect-URI. `path` is the path of the request. `psu` is included only if
/// the PSU is bound to the TPP.
pub(in crate::admission) fn pending(
    envelope: &Envelope,
    operation: &Operation,
    environment: Environment,
    path: &str,
    tpp: &TppId,
    tpp_name: &str,
    psu: Option<Known<PsuId>>,
) -> Option<Pending> {
    let redirect_uri = envelope.redirect_uri()?.clone();
    Some(Pending {
        environment,
        tpp: tpp.clone(),
        tpp_name: plain_name(tpp_name),
        // SCA-9: a request without a session gets a new session id.
        session: envelope.session().cloned().or_else(new_session)?,
        redirect_uri,
        preferred: envelope.redirect_preferred() != Some(false),
        operation: operation.name.clone(),
        resource: operation.resource(path).map(str::to_owned),
        asks_consent: operation.asks_consent(),
        context: envelope.context(),
        corporate: envelope.corporate(),
        psu,
    })
}

/// A new session id of the gateway. A UUID is always a valid id.
fn new_session() -> Option<SessionId> {
    let id = Uuid::new_v4().hyphenated();
    SessionId::from_text(id.encode_lower(&mut Uuid::encode_buffer()))
}

/// The maximum length of a name in characters: X.520 allows 64, and some certificates have more.
const MAX_NAME: usize = 128;

/// A name that a page can show: bounded, and without characters that control a terminal or change the direction of text.
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
