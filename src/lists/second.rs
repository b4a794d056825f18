//! A second, independent verifier in production: the program xmlsec1, which must agree with ours (CRT-13).
//!
//! Invariant: its word counts only once it has refused a list that was altered, since a program that accepts everything verifies nothing.
//! Deliberately not here: the profile. xmlsec1 verifies digests and the signature by the signer's key, and takes lists that ours refuses.

// The program, and how it is run.
mod program;

pub(crate) use program::{Program, Verdict};

use crate::{
    certificate::Certificate,
    fault::Refusal,
    signature::{Signed, verify},
    tree::Document,
};
use std::{path::PathBuf, sync::OnceLock};

/// Our verifier, and a second one beside it where it is configured.
#[derive(Clone, Debug, Default)]
pub struct Verifiers {
    second: Option<Second>,
}

/// The second verifier.
#[derive(Clone, Debug)]
struct Second {
    program: Program,
    /// Set once it has refused a list that was altered.
    can_refuse: OnceLock<()>,
}

/// Who refuses a list, and why.
#[derive(Debug)]
pub enum Objection {
    /// This program.
    Own(Refusal),
    /// The second verifier refuses what this program has verified, cannot be run, or verifies nothing.
    Second(Refusal),
}

impl From<Refusal> for Objection {
    fn from(refusal: Refusal) -> Self {
        Self::Own(refusal)
    }
}

impl From<Objection> for Refusal {
    fn from(objection: Objection) -> Self {
        match objection {
            Objection::Own(refusal) | Objection::Second(refusal) => refusal,
        }
    }
}

impl Verifiers {
    /// Our verifier, and beside it this program, if one is named: xmlsec1, or one that takes the same arguments.
    pub fn new(second: Option<PathBuf>) -> Self {
        Self {
            second: second.map(|path| Second {
                program: Program::new(path),
                can_refuse: OnceLock::new(),
            }),
        }
    }

    /// Verifies a list by one of these signers, as [`verify`] does; then the second verifier must accept the same bytes by the same signer.
    /// The first list that it accepts it must also refuse with a character more.
    ///
    /// # Errors
    /// One of them refuses the list; or the second one cannot be run, takes longer than 60 seconds, or accepts the altered list.
    pub fn verify<'a>(
        &self,
        document: &'a Document,
        signers: &[Certificate],
    ) -> Result<Signed<'a>, Objection> {
        let signed = verify(document, signers)?;
        if let Some(second) = &self.second {
            let confirmed = second.confirm(document, signed.signer());
            confirmed.map_err(Objection::Second)?;
        }
        Ok(signed)
    }
}

impl Second {
    /// Checks that the program accepts a list, and that it has refused an altered one.
    fn confirm(&self, document: &Document, signer: &Certificate) -> Result<(), Refusal> {
        let name = self.program.path.display();
        if let Some(said) = self.objection(document.source(), signer)? {
            return Err(Refusal::new(format_args!(
                "the second verifier, {name}, refuses the signature that this program has verified: {said}"
            )));
        }
        if self.can_refuse.get().is_some() {
            return Ok(());
        }
        let altered = altered(document);
        let altered = altered.ok_or_else(|| {
            Refusal::new("no place to alter this list, by which the second verifier is tried")
        })?;
        if self.objection(&altered, signer)?.is_none() {
            return Err(Refusal::new(format_args!(
                "the second verifier, {name}, also accepts this list when it was altered, and so verifies nothing; name the program xmlsec1"
            )));
        }
        let _ = self.can_refuse.set(());
        Ok(())
    }

    /// What the program says against a list; `None` if it accepts the list.
    fn objection(&self, list: &str, signer: &Certificate) -> Result<Option<String>, Refusal> {
        let Program { path, limit } = &self.program;
        let name = path.display();
        match self.program.ask(list.as_bytes(), signer) {
            Ok(Verdict::Accepts) => Ok(None),
            Ok(Verdict::Refuses(said)) => Ok(Some(said)),
            Ok(Verdict::TooSlow) => Err(Refusal::new(format_args!(
                "the second verifier, {name}, has not ended within {limit:?}, and was stopped"
            ))),
            Ok(Verdict::Broken(status)) => Err(Refusal::new(format_args!(
                "the second verifier, {name}, ended without a verdict ({status}), so that nothing is known of the signature; import again, and run it by hand if it stays so"
            ))),
            Err(error) => Err(Refusal::new(format_args!(
                "the second verifier, {name}, cannot be run: {error}"
            ))),
        }
    }
}

/// A list that was verified, with a character more before its signature: well-formed, and another text of the root, which is signed.
fn altered(document: &Document) -> Option<String> {
    let signature = document.root().children().last()?;
    let (before, after) = document.source().split_at_checked(signature.start())?;
    Some(format!("{before}x{after}"))
}

#[cfg(test)]
mod tests;
