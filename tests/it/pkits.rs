//! Chain validation, tested with NIST's Public Key Interoperability Test Suite (PKITS, version 1.0.1).
//!
//! The vectors are not in the repository: .ci/pkits.sh takes them from the folder that `PORTVAKT_PKITS` names (with `certs` and `crls`),
//! from Python's package `cryptography_vectors`, or from PyPI. Without the vectors, the tests are skipped with a message; on CI they
//! fail. The tests judge the chain and the validity of its certificates. PSD2 and key policy belong to other layers, which would refuse
//! all of these certificates.

use crate::harness::missing;
use openssl::x509::X509;
use portvakt::{
    clock::Timestamp,
    trust::{Anchors, CertificateTypes},
};
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

/// 2026-01-01T00:00:00Z, at which the valid certificates of PKITS are valid.
pub(crate) const NOW: Timestamp = Timestamp::from_unix(1_767_225_600);

const POLICIES: &str = "certificate policies are not judged: no rule of the interface rests on one, and the openssl crate cannot set the initial policy set";

/// Tests outside the scope of chain validation, by the prefix of the file name, each with the reason.
const EXCLUDED: &[(&str, &str)] = &[
    (
        "ValidDSA",
        "the keys are DSA of 1024 bits; the security level refuses them, as CRT-10 and SIG-5 would",
    ),
    // 4.8: paths that require an explicit policy and have no common one.
    ("DifferentPoliciesTest4", POLICIES),
    ("DifferentPoliciesTest5", POLICIES),
    ("DifferentPoliciesTest7", POLICIES),
    ("DifferentPoliciesTest8", POLICIES),
    ("DifferentPoliciesTest9", POLICIES),
    ("DifferentPoliciesTest12", POLICIES),
    // 4.9 to 4.12. Paths that these sections accept are not excluded: they must pass.
    ("InvalidrequireExplicitPolicy", POLICIES),
    ("InvalidSelfIssuedrequireExplicitPolicy", POLICIES),
    ("InvalidPolicyMapping", POLICIES),
    ("InvalidMapping", POLICIES),
    ("InvalidinhibitPolicyMapping", POLICIES),
    ("InvalidSelfIssuedinhibitPolicyMapping", POLICIES),
    ("InvalidinhibitAnyPolicy", POLICIES),
    ("InvalidSelfIssuedinhibitAnyPolicy", POLICIES),
];

/// 4.4, 4.5 (in part), 4.7.4, 4.7.5, 4.14 and 4.15: the certificates are valid, but a CRL revokes them or cannot be used.
/// The chain must be accepted; revocation tests judge the CRLs.
const DECIDED_BY_CRLS: &[&str] = &[
    "InvalidMissingCRLTest1",
    "InvalidRevokedCATest2",
    "InvalidRevokedEETest3",
    "InvalidBadCRLSignatureTest4",
    "InvalidBadCRLIssuerNameTest5",
    "InvalidWrongCRLTest6",
    "InvalidUnknownCRLEntryExtensionTest8",
    "InvalidUnknownCRLExtensionTest9",
    "InvalidUnknownCRLExtensionTest10",
    "InvalidOldCRLnextUpdateTest11",
    "Invalidpre2000CRLnextUpdateTest12",
    "InvalidNegativeSerialNumberTest15",
    "InvalidLongSerialNumberTest18",
    "InvalidSeparateCertificateandCRLKeysTest20",
    "InvalidSeparateCertificateandCRLKeysTest21",
    "InvalidBasicSelfIssuedOldWithNewTest2",
    "InvalidBasicSelfIssuedNewWithOldTest5",
    "InvalidBasicSelfIssuedCRLSigningKeyTest7",
    "InvalidkeyUsageCriticalcRLSignFalseTest4",
    "InvalidkeyUsageNotCriticalcRLSignFalseTest5",
    "InvaliddistributionPointTest",
    "InvalidonlyContains",
    "InvalidonlySomeReasons",
    "InvalidIDPwithindirectCRL",
    "InvalidcRLIssuer",
    "InvaliddeltaCRL",
];

/// One path of the suite.
pub(crate) struct Case {
    /// The end entity's file, without its suffix.
    pub(crate) name: String,
    /// The end entity's certificate, DER.
    pub(crate) der: Vec<u8>,
}

/// The suite.
pub(crate) struct Suite {
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// Every path, by its end entity.
    pub(crate) cases: Vec<Case>,
    /// The trust anchor.
    pub(crate) anchor: X509,
    /// Every certificate of a CA.
    pub(crate) authorities: Vec<X509>,
}

impl Suite {
    /// The suite, where it can be had.
    pub(crate) fn find() -> Option<Self> {
        let Some(folder) = FOLDER.clone() else {
            missing("PKITS cannot be had: .ci/pkits.sh says why");
            return None;
        };
        let mut suite = Self {
            cases: Vec::new(),
            anchor: read(&folder.join("certs/TrustAnchorRootCertificate.crt")),
            authorities: Vec::new(),
            folder,
        };
        let mut paths: Vec<_> = fs::read_dir(suite.folder.join("certs"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        for path in paths {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            match name.strip_suffix("EE") {
                Some(case) => suite.cases.push(Case {
                    name: case.to_owned(),
                    der: fs::read(&path).unwrap(),
                }),
                None => suite.authorities.push(read(&path)),
            }
        }
        Some(suite)
    }

    /// The suite's root as the anchor, and every CA of the suite as an intermediate.
    pub(crate) fn anchors(&self) -> Anchors {
        Anchors::of_operator(vec![self.anchor.clone()], self.authorities.clone()).unwrap()
    }
}

/// The suite's folder, which .ci/pkits.sh prints and fetches once.
static FOLDER: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/pkits.sh");
    let asked = Command::new(script).output().unwrap();
    if asked.status.success() {
        let folder = String::from_utf8(asked.stdout).unwrap();
        return Some(folder.trim().into());
    }
    println!("{}", String::from_utf8_lossy(&asked.stderr));
    None
});

fn read(path: &Path) -> X509 {
    X509::from_der(&fs::read(path).unwrap()).unwrap()
}

/// Judges the chain, and the validity of every certificate in it.
fn judge(anchors: &Anchors, der: &[u8]) -> Result<(), String> {
    let validity = anchors
        .chain(der, &[], CertificateTypes::default(), NOW)
        .map_err(|fault| fault.to_string())?;
    match validity.iter().find(|validity| !validity.contains(NOW)) {
        Some(out) => Err(format!("not valid now: {out:?}")),
        None => Ok(()),
    }
}

fn starts_with_any(name: &str, beginnings: &[&str]) -> bool {
    beginnings
        .iter()
        .any(|beginning| name.starts_with(beginning))
}

//= CRT-2 accepted
//= CRT-2 refused
#[test]
fn chains_are_judged_as_nist_says() {
    let Some(suite) = Suite::find() else { return };
    let anchors = suite.anchors();
    let mut counted = BTreeMap::new();
    let mut faults = Vec::new();
    for case in &suite.cases {
        if let Some((_, why)) = EXCLUDED
            .iter()
            .find(|(beginning, _)| case.name.starts_with(beginning))
        {
            *counted.entry("excluded").or_insert(0) += 1;
            println!("excluded: {}: {why}", case.name);
            continue;
        }
        let is_good =
            !case.name.starts_with("Invalid") || starts_with_any(&case.name, DECIDED_BY_CRLS);
        let found = judge(&anchors, &case.der);
        let kind = if is_good { "accepted" } else { "refused" };
        *counted.entry(kind).or_insert(0) += 1;
        if found.is_ok() != is_good {
            faults.push(format!("{}: should be {kind}, but: {found:?}", case.name));
        }
    }
    println!("{counted:?}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    // Fails if files of the suite are missing.
    assert!(suite.cases.len() > 200, "{counted:?}");
}

/// The reasons why rustls-webpki refuses paths that NIST and Portvakt accept, by error.
const STRICTER: &[(webpki::Error, &str)] = &[
    (
        webpki::Error::UnsupportedCriticalExtension,
        "it does not know policies: critical ones are unknown extensions to it",
    ),
    (
        webpki::Error::NameConstraintViolation,
        "it does not implement constraints on directory names, mailboxes and URIs, and refuses them all",
    ),
    (
        webpki::Error::CaUsedAsEndEntity,
        "the path ends in a CA; here a rule of its own refuses that (CRT-10)",
    ),
    (
        webpki::Error::InvalidSignatureForPublicKey,
        "two CAs of one name: it refuses the right one as above, and reports that the other's key does not fit",
    ),
    (webpki::Error::BadDerTime, "a UTCTime before 1970"),
    (
        webpki::Error::TrailingData(webpki::DerTypeId::CertificateExtensions),
        "unique identifiers in the certificate",
    ),
];

/// Paths that rustls-webpki accepts and that NIST and Portvakt refuse, by the prefix of the name.
const LAXER: &[(&str, &str)] = &[(
    "InvalidkeyUsage",
    "it does not look at keyUsage: a CA without keyCertSign may issue",
)];

/// A comparison: rustls-webpki builds and judges the same paths.
//= CRT-2 accepted
//= CRT-2 refused
#[test]
fn chains_are_judged_as_another_library_does() {
    let Some(suite) = Suite::find() else { return };
    let anchors = suite.anchors();
    let root = CertificateDer::from(suite.anchor.to_der().unwrap());
    let root = [webpki::anchor_from_trusted_cert(&root).unwrap()];
    let between: Vec<_> = suite
        .authorities
        .iter()
        .map(|authority| CertificateDer::from(authority.to_der().unwrap()))
        .collect();
    let (mut agreed, mut faults) = (0, Vec::new());
    for case in &suite.cases {
        let ours = judge(&anchors, &case.der);
        let theirs = other_opinion(&case.der, &root, &between);
        let explained = match &theirs {
            Err(error) => STRICTER
                .iter()
                .find(|(known, _)| known == error)
                .map(|(_, why)| why),
            Ok(()) => LAXER
                .iter()
                .find(|(beginning, _)| case.name.starts_with(beginning))
                .map(|(_, why)| why),
        };
        match (ours.is_ok() == theirs.is_ok(), explained) {
            (true, _) => agreed += 1,
            (false, Some(why)) => println!("{}: {why}", case.name),
            (false, None) => {
                faults.push(format!("{}: we: {ours:?}; webpki: {theirs:?}", case.name))
            }
        }
    }
    println!("{agreed} of {} agreed", suite.cases.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn other_opinion(
    der: &[u8],
    root: &[TrustAnchor<'_>],
    between: &[CertificateDer<'_>],
) -> Result<(), webpki::Error> {
    let der = CertificateDer::from(der);
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(NOW.unix()));
    webpki::EndEntityCert::try_from(&der)?
        .verify_for_usage(
            webpki::ALL_VERIFICATION_ALGS,
            root,
            between,
            now,
            webpki::KeyUsage::client_auth(),
            None,
            None,
        )
        .map(drop)
}
