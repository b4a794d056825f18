//! The verifier held beside another: xmlsec1 (libxmlsec, on libxml2 and OpenSSL), as Debian has it.

use super::{
    LIST, hostile::originals, judge, mutate::Mutant, own_signers, real_lists, wrapping::wrapped,
};
use crate::{
    Certificate, Document,
    minting::{Mint, Signer},
    second::{Program, Verdict, Verifiers},
};
use std::{path::PathBuf, thread};

/// Whether xmlsec1 accepts a list by the key of this signer.
fn xmlsec1_accepts(bytes: &[u8], signer: &Certificate) -> bool {
    let verdict = Program::new(PathBuf::from("xmlsec1")).ask(bytes, signer);
    match verdict.expect("xmlsec1 is installed (.ci/needs.sh systems)") {
        Verdict::Accepts => true,
        Verdict::Refuses(_) => false,
        Verdict::Broken(status) => panic!("xmlsec1 ended by {status}"),
        Verdict::TooSlow => panic!("xmlsec1 has not ended in time"),
    }
}

/// xmlsec1 as the import asks it: it accepts a list, and refuses it when it was altered, which is the trial.
#[test]
#[ignore = "needs xmlsec1"]
fn xmlsec1_is_a_second_verifier() {
    let signer = Signer::rsa("signer", 2048);
    let mut lists = vec![("minted".to_owned(), Mint::new(&signer).sign(LIST))];
    lists.extend(originals());
    for (name, bytes) in lists {
        let signers = own_signers(&bytes);
        let document = Document::parse(bytes).unwrap();
        // A new one for each list: each is altered.
        let verifiers = Verifiers::new(Some(PathBuf::from("xmlsec1")));
        let verified = verifiers.verify(&document, &signers);
        assert!(verified.is_ok(), "{name}: {verified:?}");
    }
}

/// Both accept the real lists, and both refuse those that were broken.
#[test]
#[ignore = "needs xmlsec1"]
fn both_verifiers_agree_on_real_lists() {
    let mut count = 0;
    for folder in ["", "v6", "pivots", "altered"] {
        for (name, bytes) in real_lists(folder) {
            let signers = own_signers(&bytes);
            let Some(signer) = signers.first() else {
                println!("{name}: {:?}", judge(&bytes, &signers));
                continue;
            };
            let ours = judge(&bytes, &signers);
            let theirs = xmlsec1_accepts(&bytes, signer);
            println!("{name}: ours {ours:?}, xmlsec1 {theirs}");
            assert_eq!(ours.is_ok(), theirs, "{name}: {ours:?}");
            count += 1;
        }
    }
    println!("both agree on {count} lists");
}

/// Of the changes, one in so many is held beside xmlsec1, which takes a process for each.
const EACH: usize = 9;

/// Lists with nodes altered: whatever ours accepts, xmlsec1 accepts too; what xmlsec1 accepts beyond that is named here.
#[test]
#[ignore = "needs xmlsec1"]
fn ours_refuses_all_that_xmlsec1_refuses() {
    // Comments are not in the canonical form; the others stand where no signature covers them.
    let looser = [
        "comment in ",
        "instruction in Signature/SignatureValue",
        "KeyInfo",
        "X509Data/",
        "KeyValue/",
        "X509IssuerSerial/",
        "Signature/Object",
        "Object/QualifyingProperties",
        "TrustServiceStatusList/Signature/@Id",
        "moved to the end TrustServiceStatusList/Signature",
    ];
    for (name, bytes) in originals() {
        let signers = own_signers(&bytes);
        let mutants = super::mutate::Outline::new(&bytes).mutants().into_iter();
        let mutants: Vec<_> = mutants.step_by(EACH).collect();
        let judge_all = |mutants: &[Mutant]| -> Vec<String> {
            let is_theirs_alone = |Mutant { name, bytes }: &&Mutant| {
                let ours = judge(bytes, &signers).is_ok();
                let theirs = xmlsec1_accepts(bytes, &signers[0]);
                assert!(theirs || !ours, "only ours accepts: {name}");
                theirs && !ours
            };
            let found = mutants.iter().filter(is_theirs_alone);
            found.map(|mutant| mutant.name.clone()).collect()
        };
        let judge_all = &judge_all;
        // A process for each mutant: four at a time.
        let mut theirs_alone: Vec<String> = thread::scope(|scope| {
            let quarters = mutants.chunks(mutants.len().div_ceil(4));
            let threads: Vec<_> = quarters
                .map(|quarter| scope.spawn(move || judge_all(quarter)))
                .collect();
            let found = threads.into_iter().map(|thread| thread.join().unwrap());
            found.flatten().collect()
        });
        println!(
            "{name}: of {} mutants only xmlsec1 accepts {theirs_alone:?}",
            mutants.len()
        );
        theirs_alone.retain(|name| !looser.iter().any(|part| name.contains(part)));
        assert_eq!(theirs_alone, [""; 0], "{name}");
    }
}

/// xmlsec1 verifies what a reference names, wherever it stands: it accepts wrapped lists, and ours none.
#[test]
#[ignore = "needs xmlsec1"]
fn xmlsec1_accepts_wrapped_lists() {
    let signer = Signer::rsa("signer", 2048);
    let mint = Mint {
        root: "#list",
        ..Mint::new(&signer)
    };
    let list = String::from_utf8(mint.sign(LIST)).unwrap();
    assert!(xmlsec1_accepts(list.as_bytes(), &signer.certificate));
    let mut accepted = Vec::new();
    for (name, wrapped) in wrapped(&list) {
        let ours = judge(
            wrapped.as_bytes(),
            std::slice::from_ref(&signer.certificate),
        );
        assert!(ours.is_err(), "{name}");
        if xmlsec1_accepts(wrapped.as_bytes(), &signer.certificate) {
            accepted.push(name);
        }
    }
    println!("xmlsec1 accepts: {accepted:?}");
    assert!(!accepted.is_empty());
}
