//! The sections `assertion` and `response_signing`: signatures of the gateway itself. Both are off unless they name a key.
//!
//! Invariant: an existing key file was read without a fault. A missing key for assertions is created at start, not here:
//! `check` changes no file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;
use tokio::sync::Semaphore;

use super::hsm;
use super::identity::identity;
use super::section::Section;
use super::value::Value;
use crate::expiring::Expiring;
use crate::hsm::Purpose;
use crate::signing::{
    AnswerSigner, AnswerSigning, AssertionKey, AssertionKeyFault, AssertionSettings,
};

/// The default audience of assertions.
const AUDIENCE: &str = "core";

/// A key in an HSM has no place here.
const IN_HSM: &str = "a key in an HSM (pkcs11) cannot sign assertions: each request would cost a call of the HSM; name a file";

/// The most bytes of a body that is buffered to be signed, by default and at most. Ten thousand concurrent answers of this
/// length take 640 MiB.
const BODY_LIMIT: u64 = 64 * 1024;

/// The section `assertion` (FWD-1); `None` if no key is named.
pub(super) fn assertion(root: &mut Section<'_>, base: &Path) -> Option<AssertionSettings> {
    let mut section = root.optional_section("assertion")?;
    let key = section.optional("key");
    let key = key.and_then(|value| key_file(&value, base, Missing::IsMade));
    let named = section.has("key");
    let previous = section.optional("previous");
    let previous = previous.and_then(|value| {
        if named {
            key_file(&value, base, Missing::IsAFault)
        } else {
            value.fault("it has no effect without key");
            None
        }
    });
    let audience = section
        .optional("audience")
        .and_then(|value| audience(&value));
    section.finish();
    Some(AssertionSettings {
        key: key?,
        previous,
        audience: audience.unwrap_or_else(|| AUDIENCE.to_owned()),
    })
}

/// The section `response_signing` (SIG-12); `None` if no certificate is named.
pub(super) fn response_signing(root: &mut Section<'_>, base: &Path) -> Option<AnswerSigning> {
    let mut section = root.optional_section("response_signing")?;
    let named = ["certificate", "key"].map(|key| section.has(key)) != [false; 2];
    let identity = named
        .then(|| {
            let purpose = Some(Purpose::Answers);
            identity(&mut section, base, Expiring::ResponseSigning, purpose)
        })
        .flatten();
    let body_limit = section
        .optional("body_limit")
        .and_then(|value| value.size(1..=BODY_LIMIT));
    let cores = available_parallelism().map_or(1, usize::from);
    let in_hsm = identity.as_ref().and_then(|identity| identity.hsm);
    let places = in_hsm.map_or(cores.div_ceil(2), |key| key.sessions);
    let signer = identity.map(|identity| AnswerSigner::new(&identity.certified));
    if let Some(Err(fault)) = &signer {
        section.fault("key", fault.to_string());
    }
    section.finish();
    Some(AnswerSigning {
        signer: Arc::new(signer?.ok()?),
        body_limit: usize::try_from(body_limit.unwrap_or(BODY_LIMIT)).ok()?,
        places: Arc::new(Semaphore::new(places)),
    })
}

/// Whether a missing file is created at start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    IsMade,
    IsAFault,
}

fn key_file(value: &Value<'_>, base: &Path, missing: Missing) -> Option<PathBuf> {
    if hsm::refuse(value, IN_HSM) {
        return None;
    }
    let path = value.secret_path(base)?;
    match AssertionKey::read(&path) {
        Err(AssertionKeyFault::File(fault)) if fault.is_missing() && missing == Missing::IsMade => {
        }
        Err(fault) => {
            value.fault(format!("{}: {fault}", path.display()));
            return None;
        }
        Ok(_) => {}
    }
    Some(path)
}

/// An issuer is part of every assertion, so it is short and in plain characters.
fn audience(value: &Value<'_>) -> Option<String> {
    let text = value.as_str()?;
    if text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(text.to_owned());
    }
    value.refuse("a name of at most 64 visible ASCII characters")
}
