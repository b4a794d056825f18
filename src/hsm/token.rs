//! The calls of a token, for one key: a session that has found the key, and a signature in it.

use crate::{
    algorithm::{Call, Kind, Verified, mechanism_of},
    fault::{Class, LoadFault, Part},
    module::Module,
    settings::Pkcs11Settings,
    state::{Place, State},
};
use cryptoki::{
    context::Pkcs11,
    error::Error,
    object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle},
    session::Session,
    slot::Slot,
};
use openssl::pkey::{PKey, Public};
use rustls::SignatureScheme;
use std::sync::Arc;

/// What the probe signs: no protocol has this message.
const PROBE: &[u8] = b"portvakt probes a key";

/// A key in its token.
#[derive(Debug)]
pub(crate) struct TokenKey {
    pub(crate) settings: Pkcs11Settings,
    pub(crate) kind: Kind,
    /// Of the certificate: each signature verifies by it.
    pub(crate) public: PKey<Public>,
    /// What it signs.
    pub(crate) schemes: Vec<SignatureScheme>,
    pub(crate) module: Arc<Module>,
    pub(crate) state: Arc<State>,
}

impl TokenKey {
    /// A signature in an idle session, or in a new one: an HSM may have closed the one that was idle.
    pub(crate) fn sign(&self, call: &Call) -> Result<Verified, LoadFault> {
        self.module.call(|context| {
            if let Some(place) = self.state.take() {
                match self.sign_in(place, call) {
                    Err(fault) if fault.class != Class::Signature => self.state.close_sessions(),
                    signed => return signed,
                }
            }
            self.sign_in(self.open(context)?, call)
        })
    }

    /// Signs with the first of the key's algorithms.
    pub(crate) fn probe(&self) -> Result<(), LoadFault> {
        let first = self.schemes.first().copied();
        first.map_or(Ok(()), |scheme| self.try_scheme(scheme))
    }

    /// Whether the token has each mechanism, and signs with each; that the key is the certificate's.
    pub(crate) fn prove(&self) -> Result<(), LoadFault> {
        let known = self.module.call(|context| {
            let slot = slot(context, &self.settings.token)?;
            let known = context.get_mechanism_list(slot);
            known.map_err(LoadFault::from)
        })?;
        let mut tried = Vec::new();
        for scheme in &self.schemes {
            let mechanism = mechanism_of(*scheme);
            if tried.contains(&mechanism) {
                continue;
            }
            if !known.contains(&mechanism) {
                let text = format!(
                    "the token does not support {mechanism}, which signatures with this key need: use another token, or a key of another kind"
                );
                return Err(LoadFault::new(Part::Token, text));
            }
            tried.push(mechanism);
            self.try_scheme(*scheme)?;
        }
        Ok(())
    }

    fn try_scheme(&self, scheme: SignatureScheme) -> Result<(), LoadFault> {
        self.sign(&Call::new(scheme, PROBE)).map(drop)
    }

    /// A session that is logged in and has found the key. Only within a call of the module.
    fn open(&self, context: &Pkcs11) -> Result<Place, LoadFault> {
        let session = context.open_ro_session(slot(context, &self.settings.token)?)?;
        self.module.log_in(&session, &self.settings)?;
        let key = find(&session, &self.settings.label)?;
        let same = match kind(&session, key)? {
            KeyType::RSA => self.kind == Kind::Rsa,
            KeyType::EC => self.kind == Kind::P256,
            _ => {
                return Err(LoadFault::new(
                    Part::Label,
                    "the key is neither RSA nor ECDSA P-256: name a key of these kinds",
                ));
            }
        };
        if !same {
            return Err(LoadFault::new(
                Part::Label,
                "the key is not that of the certificate: they are of different kinds",
            ));
        }
        if asks_always(&session, key) {
            return Err(LoadFault::new(
                Part::Label,
                "the token wants the PIN for each signature of this key (CKA_ALWAYS_AUTHENTICATE): name a key without it",
            ));
        }
        Ok(Place { session, key })
    }

    /// The session is kept if its signature verifies.
    fn sign_in(&self, place: Place, call: &Call) -> Result<Verified, LoadFault> {
        let signed = place
            .session
            .sign(&call.mechanism(), place.key, call.bytes())?;
        let verified = call.verified(signed, &self.public);
        let verified = verified.ok_or_else(LoadFault::of_signature)?;
        self.state.give_back(place);
        Ok(verified)
    }
}

/// The slot of the token with this label.
fn slot(context: &Pkcs11, label: &str) -> Result<Slot, LoadFault> {
    let (mut found, mut labels) = (Vec::new(), Vec::new());
    for slot in context.get_slots_with_initialized_token()? {
        // A token that is removed meanwhile has no label.
        let Ok(token) = context.get_token_info(slot) else {
            continue;
        };
        match token.label() == label {
            true => found.push(slot),
            false => labels.push(token.label().to_owned()),
        }
    }
    match found.as_slice() {
        [slot] => return Ok(*slot),
        [] => {}
        _ => {
            let text = "more than one token has this label: give each its own";
            return Err(LoadFault::new(Part::Token, text));
        }
    }
    let text = match labels.is_empty() {
        true => "no token with this label; the module has no token".to_owned(),
        false => format!(
            "no token with this label; the module has: {}",
            labels.join(", ")
        ),
    };
    Err(LoadFault::outage(text))
}

fn find(session: &Session, label: &str) -> Result<ObjectHandle, LoadFault> {
    let template = [
        Attribute::Class(ObjectClass::PRIVATE_KEY),
        Attribute::Label(label.into()),
    ];
    let found = session.find_objects(&template)?;
    let fault = |text| Err(LoadFault::new(Part::Label, text));
    match found.as_slice() {
        [key] => Ok(*key),
        [] => fault("the token has no private key with this label: correct it (CKA_LABEL)"),
        _ => fault("the token has more than one private key with this label: give each its own"),
    }
}

fn kind(session: &Session, key: ObjectHandle) -> Result<KeyType, LoadFault> {
    let found = session.get_attributes(key, &[AttributeType::KeyType])?;
    match found.as_slice() {
        [Attribute::KeyType(kind)] => Ok(*kind),
        _ => Err(Error::InvalidValue.into()),
    }
}

/// Whether each signature needs a login of its own. A token without the attribute has no such keys.
fn asks_always(session: &Session, key: ObjectHandle) -> bool {
    let found = session.get_attributes(key, &[AttributeType::AlwaysAuthenticate]);
    found.is_ok_and(|found| matches!(found.as_slice(), [Attribute::AlwaysAuthenticate(true)]))
}
