//! A second verifier must agree. Programs that always agree, or never, stand for xmlsec1, which the systems' tests hold beside ours.

use super::Verifiers;
use crate::{
    Document,
    minting::{Mint, Signer},
    signature::tests::LIST,
};
use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

/// A program of this script.
fn program(folder: &tempfile::TempDir, name: &str, script: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn both_must_accept_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let signer = Signer::rsa("signer", 2048);
    let document = Document::parse(Mint::new(&signer).sign(LIST)).unwrap();
    let pins = [signer.certificate.clone()];
    let verify = |second: Option<PathBuf>| {
        let verified = Verifiers { second }.verify(&document, &pins).map(|_| ());
        verified.map_err(|refusal| refusal.what().to_owned())
    };
    assert_eq!(verify(None), Ok(()));
    // It gets the bytes that were verified, and the signer.
    let agrees = "for file; do :; done\ngrep -q TrustServiceStatusList \"$file\" && grep -q 'BEGIN CERTIFICATE' \"$5\"";
    assert_eq!(verify(Some(program(&folder, "agrees", agrees))), Ok(()));
    let refused = verify(Some(program(
        &folder,
        "refuses",
        "echo 'FAIL: digest' >&2; exit 1",
    )));
    let refused = refused.unwrap_err();
    let expected = "refuses, refuses the signature that this program has verified: FAIL: digest";
    assert!(refused.ends_with(expected), "{refused}");
    let missing = verify(Some(folder.path().join("missing"))).unwrap_err();
    assert!(missing.contains("cannot be run: No such file"), "{missing}");
    // Ours comes first: the second one alone decides nothing.
    let other = Signer::rsa("other", 2048);
    let second = Some(program(&folder, "always", "exit 0"));
    let judged = Verifiers { second }.verify(&document, &[other.certificate]);
    assert!(judged.is_err());
}
