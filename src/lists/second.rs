//! A second, independent verifier in production: the program xmlsec1, which must agree with ours (CRT-13).
//!
//! Deliberately not here: the profile. xmlsec1 verifies digests and the signature by the signer's key, and takes lists that ours refuses.

use crate::{
    certificate::Certificate,
    fault::Refusal,
    signature::{Signed, verify},
    tree::Document,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The attributes by which the references of a list find what is signed.
const IDS: [&str; 2] = [
    "http://uri.etsi.org/01903/v1.3.2#:SignedProperties",
    "http://uri.etsi.org/02231/v2#:TrustServiceStatusList",
];

/// Our verifier, and a second one beside it where it is configured.
#[derive(Clone, Debug, Default)]
pub struct Verifiers {
    /// The program xmlsec1.
    pub second: Option<PathBuf>,
}

impl Verifiers {
    /// Verifies a list by one of these signers, as [`verify`] does; then the second verifier must accept the same bytes by the same signer.
    ///
    /// # Errors
    /// One of them refuses the list, or the second one cannot be run.
    pub fn verify<'a>(
        &self,
        document: &'a Document,
        signers: &[Certificate],
    ) -> Result<Signed<'a>, Refusal> {
        let signed = verify(document, signers)?;
        let Some(program) = &self.second else {
            return Ok(signed);
        };
        let name = program.display();
        match run(program, document.source().as_bytes(), signed.signer()) {
            Ok(None) => Ok(signed),
            Ok(Some(said)) => Err(Refusal::new(format_args!(
                "the second verifier, {name}, refuses the signature that this program has verified: {said}"
            ))),
            Err(error) => Err(Refusal::new(format_args!(
                "the second verifier, {name}, cannot be run: {error}"
            ))),
        }
    }
}

/// What the program said where it did not accept the list.
pub(crate) fn run(program: &Path, list: &[u8], signer: &Certificate) -> io::Result<Option<String>> {
    let folder = tempfile::tempdir()?;
    let [file, pem] = ["list.xml", "signer.pem"].map(|name| folder.path().join(name));
    fs::write(&file, list)?;
    fs::write(&pem, signer.pem())?;
    let output = Command::new(program)
        .args([
            "--verify",
            "--enabled-key-data",
            "key-name",
            "--pubkey-cert-pem",
        ])
        .arg(&pem)
        .args(["--enabled-reference-uris", "empty,same-doc"])
        .args(IDS.iter().flat_map(|id| ["--id-attr:Id", *id]))
        .arg(&file)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().find(|line| !line.trim().is_empty());
    let said = said.map_or_else(|| output.status.to_string(), str::to_owned);
    Ok(Some(said.chars().take(200).collect()))
}

#[cfg(test)]
mod tests;
