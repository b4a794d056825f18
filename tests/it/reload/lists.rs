//! From a signed list to a refused request, with the real programs: a list of lists and a national list, `portvakt-lists import`, a gateway,
//! a TPP whose CA the list names, and the day on which the list withdraws it: `portvakt-lists show` says who will be hit. CRT-8, CRT-13.
//!
//! The lists are written in their canonical form, so that their bytes are what is signed: nothing here reads XML.

// Both programs judge a bundle alike.
mod both;

use super::{configure, other, reload};
use crate::harness::{Call, Gate, accepted, eventually, missing, refused, world};
use openssl::{
    hash::{MessageDigest, hash},
    pkey::PKey,
    sign::Signer,
};
use portvakt::clock::{Clock, Timestamp};
use serde_json::json;
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

const DS: &str = "http://www.w3.org/2000/09/xmldsig#";
const XADES: &str = "http://uri.etsi.org/01903/v1.3.2#";
const EXCLUSIVE: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";
const ENVELOPED: &str = "http://www.w3.org/2000/09/xmldsig#enveloped-signature";
const SHA512: &str = "http://www.w3.org/2001/04/xmlenc#sha512";
const RSA_SHA512: &str = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512";
const TSL: &str = "http://uri.etsi.org/TrstSvc/TrustedList";

/// Who signs a list.
struct ListSigner {
    der: Vec<u8>,
    pem: String,
    key: String,
}

fn commission() -> ListSigner {
    ListSigner {
        der: other().root.der().to_vec(),
        pem: other().root.pem(),
        key: other().root_key.clone(),
    }
}

fn norway() -> ListSigner {
    ListSigner {
        der: other().issuing.der().to_vec(),
        pem: other().issuing.pem(),
        key: other().issuing_key.clone(),
    }
}

fn base64(bytes: &[u8]) -> String {
    openssl::base64::encode_block(bytes).replace('\n', "")
}

fn sha512(bytes: &[u8]) -> String {
    base64(&hash(MessageDigest::sha512(), bytes).unwrap())
}

/// An element without content.
fn empty(name: &str, algorithm: &str) -> String {
    format!("<{name} Algorithm=\"{algorithm}\"></{name}>")
}

/// Signs a list, whose content is in its canonical form.
fn sign(content: &str, by: &ListSigner) -> String {
    let begin = format!(
        "<TrustServiceStatusList xmlns=\"http://uri.etsi.org/02231/v2#\" Id=\"list\" TSLTag=\"http://uri.etsi.org/19612/TSLTag\">{content}"
    );
    let end = "</TrustServiceStatusList>";
    let certificate = sha512(&by.der);
    let properties = format!(
        "<xades:SignedProperties xmlns:xades=\"{XADES}\" Id=\"properties\"><xades:SignedSignatureProperties><xades:SigningTime>2026-01-31T12:00:00Z</xades:SigningTime><xades:SigningCertificateV2><xades:Cert><xades:CertDigest><ds:DigestMethod xmlns:ds=\"{DS}\" Algorithm=\"{SHA512}\"></ds:DigestMethod><ds:DigestValue xmlns:ds=\"{DS}\">{certificate}</ds:DigestValue></xades:CertDigest></xades:Cert></xades:SigningCertificateV2></xades:SignedSignatureProperties></xades:SignedProperties>"
    );
    let transforms = |all: &[&str]| {
        let all = all.iter().map(|one| empty("ds:Transform", one));
        format!("<ds:Transforms>{}</ds:Transforms>", all.collect::<String>())
    };
    let digest = |of: &str| {
        format!(
            "{}<ds:DigestValue>{}</ds:DigestValue>",
            empty("ds:DigestMethod", SHA512),
            sha512(of.as_bytes())
        )
    };
    let info = format!(
        "<ds:SignedInfo xmlns:ds=\"{DS}\">{}{}<ds:Reference Id=\"whole\" URI=\"\">{}{}</ds:Reference><ds:Reference Type=\"http://uri.etsi.org/01903#SignedProperties\" URI=\"#properties\">{}{}</ds:Reference></ds:SignedInfo>",
        empty("ds:CanonicalizationMethod", EXCLUSIVE),
        empty("ds:SignatureMethod", RSA_SHA512),
        transforms(&[ENVELOPED, EXCLUSIVE]),
        digest(&format!("{begin}{end}")),
        transforms(&[EXCLUSIVE]),
        digest(&properties),
    );
    let key = PKey::private_key_from_pem(by.key.as_bytes()).unwrap();
    let mut signer = Signer::new(MessageDigest::sha512(), &key).unwrap();
    let value = base64(&signer.sign_oneshot_to_vec(info.as_bytes()).unwrap());
    let certificate = base64(&by.der);
    format!(
        "{begin}<ds:Signature xmlns:ds=\"{DS}\" Id=\"minted\">{info}<ds:SignatureValue>{value}</ds:SignatureValue><ds:KeyInfo><ds:X509Data><ds:X509Certificate>{certificate}</ds:X509Certificate></ds:X509Data></ds:KeyInfo><ds:Object><xades:QualifyingProperties xmlns:xades=\"{XADES}\" Target=\"#minted\">{properties}</xades:QualifyingProperties></ds:Object></ds:Signature>{end}"
    )
}

/// What every list begins with. It was issued yesterday and is good for three months.
fn scheme(territory: &str, list_type: &str, sequence: u64, pointers: &str) -> String {
    let now = Clock::System.now().unix();
    let [issued, next] = [now - 86_400, now + 90 * 86_400].map(Timestamp::from_unix);
    format!(
        "<SchemeInformation><TSLVersionIdentifier>6</TSLVersionIdentifier><TSLSequenceNumber>{sequence}</TSLSequenceNumber><TSLType>{TSL}/TSLType/{list_type}</TSLType><SchemeOperatorName><Name xml:lang=\"en\">Operator of {territory}</Name></SchemeOperatorName><SchemeOperatorAddress></SchemeOperatorAddress><SchemeName></SchemeName><SchemeInformationURI><URI xml:lang=\"en\">https://lists.example/about</URI></SchemeInformationURI><StatusDeterminationApproach>{TSL}/StatusDetn/EUappropriate</StatusDeterminationApproach><SchemeTerritory>{territory}</SchemeTerritory><HistoricalInformationPeriod>65535</HistoricalInformationPeriod><PointersToOtherTSL>{pointers}</PointersToOtherTSL><ListIssueDateTime>{issued}</ListIssueDateTime><NextUpdate><dateTime>{next}</dateTime></NextUpdate></SchemeInformation>"
    )
}

fn list_of_lists() -> String {
    let signer = base64(&norway().der);
    let pointer = format!(
        "<OtherTSLPointer><ServiceDigitalIdentities><ServiceDigitalIdentity><DigitalId><X509Certificate>{signer}</X509Certificate></DigitalId></ServiceDigitalIdentity></ServiceDigitalIdentities><TSLLocation>https://lists.example/NO.xml</TSLLocation><AdditionalInformation><OtherInformation><TSLType>{TSL}/TSLType/EUgeneric</TSLType></OtherInformation><OtherInformation><SchemeTerritory>NO</SchemeTerritory></OtherInformation><OtherInformation><ext:MimeType xmlns:ext=\"http://uri.etsi.org/02231/v2/additionaltypes#\">application/vnd.etsi.tsl+xml</ext:MimeType></OtherInformation></AdditionalInformation></OtherTSLPointer>"
    );
    sign(
        &scheme("EU", "EUlistofthelists", 1, &pointer),
        &commission(),
    )
}

/// A qualification: certificates for signatures are not qualified.
const NOT_QUALIFIED: &str = "<Extension Critical=\"true\"><sie:Qualifications xmlns:sie=\"http://uri.etsi.org/TrstSvc/SvcInfoExt/eSigDir-1999-93-EC-TrustedList/#\"><sie:QualificationElement><sie:Qualifiers><sie:Qualifier uri=\"http://uri.etsi.org/TrstSvc/TrustedList/SvcInfoExt/NotQualified\"></sie:Qualifier></sie:Qualifiers><sie:CriteriaList assert=\"all\"><sie:KeyUsage><sie:KeyUsageBit name=\"digitalSignature\">true</sie:KeyUsageBit></sie:KeyUsage></sie:CriteriaList></sie:QualificationElement></sie:Qualifications></Extension>";

/// Norway's list: a CA in a state, with more extensions, and another that is granted.
struct Norway<'l> {
    sequence: u64,
    ca: (&'l str, &'l [u8]),
    state: &'l str,
    since: Timestamp,
    more: &'l str,
    other: (&'l str, &'l [u8]),
}

impl<'l> Norway<'l> {
    /// With the CA of this test's TPPs.
    fn new(sequence: u64, state: &'l str, since: Timestamp, more: &'l str) -> Self {
        Self {
            sequence,
            ca: ("CA of TPPs", world().issuing.der()),
            state,
            since,
            more,
            other: ("Another CA", world().tls_ca.der()),
        }
    }
}

fn list_of_norway(sequence: u64, state: &str, since: Timestamp, more: &str) -> String {
    Norway::new(sequence, state, since, more).sign()
}

impl Norway<'_> {
    fn sign(&self) -> String {
        let service = |name: &str, der: &[u8], state: &str, since: &str, more: &str| {
            let certificate = base64(der);
            format!(
                "<TSPService><ServiceInformation><ServiceTypeIdentifier>http://uri.etsi.org/TrstSvc/Svctype/CA/QC</ServiceTypeIdentifier><ServiceName><Name xml:lang=\"en\">{name}</Name></ServiceName><ServiceDigitalIdentity><DigitalId><X509Certificate>{certificate}</X509Certificate></DigitalId></ServiceDigitalIdentity><ServiceStatus>{TSL}/Svcstatus/{state}</ServiceStatus><StatusStartingTime>{since}</StatusStartingTime><ServiceInformationExtensions><Extension Critical=\"true\"><AdditionalServiceInformation><URI xml:lang=\"en\">{TSL}/SvcInfoExt/ForeSeals</URI></AdditionalServiceInformation></Extension>{more}</ServiceInformationExtensions></ServiceInformation></TSPService>"
            )
        };
        let services = [
            service(
                self.ca.0,
                self.ca.1,
                self.state,
                &self.since.to_string(),
                self.more,
            ),
            service(
                self.other.0,
                self.other.1,
                "granted",
                "2020-01-01T00:00:00Z",
                "",
            ),
        ];
        let content = format!(
            "{}<TrustServiceProviderList><TrustServiceProvider><TSPInformation><TSPName><Name xml:lang=\"en\">A QTSP</Name></TSPName></TSPInformation><TSPServices>{}</TSPServices></TrustServiceProvider></TrustServiceProviderList>",
            scheme("NO", "EUgeneric", self.sequence, ""),
            services.concat()
        );
        sign(&content, &norway())
    }
}

/// The program that imports, beside the gateway's own; `None` where it was not built.
fn importer() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_portvakt")).with_file_name("portvakt-lists");
    if !program.is_file() {
        missing("portvakt-lists is not built beside portvakt: cargo build --workspace");
        return None;
    }
    Some(program)
}

/// A folder of lists, from which the program imports into `bundles`.
struct Imports {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Imports {
    /// The list of lists and its pin; `None` where the program was not built.
    fn new() -> Option<Self> {
        let own = Self {
            program: importer()?,
            folder: tempfile::tempdir().unwrap(),
        };
        for name in ["pins", "lists"] {
            fs::create_dir(own.path(name)).unwrap();
        }
        fs::write(own.path("pins/commission.pem"), commission().pem).unwrap();
        fs::write(own.path("eu-lotl.xml"), list_of_lists()).unwrap();
        Some(own)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Imports this list of Norway; returns whether that succeeded, and what the program said.
    fn import(&self, norway: &str, more: &[&str]) -> (bool, String) {
        fs::write(self.path("lists/NO.xml"), norway).unwrap();
        let mut import = Command::new(&self.program);
        import.arg("import").args(more);
        import.arg("--list-of-lists").arg(self.path("eu-lotl.xml"));
        import.arg("--pins").arg(self.path("pins"));
        import.arg("--lists").arg(self.path("lists"));
        let output = import
            .arg("--out")
            .arg(self.path("bundles"))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        (output.status.success(), text)
    }

    /// A gateway that trusts the bundle in use alone.
    fn gate(&self) -> Gate {
        let gate = Gate::builder()
            .trust(&format!(
                "bundle: {}",
                self.path("bundles/current").display()
            ))
            .for_program();
        configure(&gate, &gate.yaml().replace("  anchors: anchors\n", ""));
        gate
    }
}

const GRANTED: Timestamp = Timestamp::from_unix(1_577_836_800);

/// The CA is granted, and its list says that the TPP's certificate is not what it says itself.
//= CRT-3 accepted
//= CRT-3 refused
#[test]
fn a_certificate_that_its_list_calls_not_qualified() {
    let Some(imports) = Imports::new() else {
        return;
    };
    let norway = list_of_norway(7, "granted", GRANTED, NOT_QUALIFIED);
    let (is_imported, text) = imports.import(&norway, &[]);
    assert!(is_imported, "{text}");
    let gate = imports.gate();
    let _program = gate.run_silently(&mut gate.program());
    let call = Call::accounts();
    refused(&gate, &call, 403, "FORBIDDEN", "certificate-wrong-type");
    let (is_imported, text) = imports.import(&list_of_norway(8, "granted", GRANTED, ""), &[]);
    assert!(is_imported, "{text}");
    assert_eq!(reload(&gate), json!([]));
    accepted(&gate, &Call::accounts());
}

/// The list grants the root still, and calls the CA below it, which issued the TPP's certificate, withdrawn.
//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn a_ca_that_is_withdrawn_below_a_root_that_is_granted() {
    let Some(imports) = Imports::new() else {
        return;
    };
    let below = |sequence, state| Norway {
        other: ("Root", world().root.der()),
        ..Norway::new(sequence, state, GRANTED, "")
    };
    let unnamed = Norway {
        ca: ("Root", world().root.der()),
        ..Norway::new(7, "granted", GRANTED, "")
    };
    let (is_imported, text) = imports.import(&unnamed.sign(), &[]);
    assert!(is_imported, "{text}");
    let gate = imports.gate();
    let _program = gate.run_silently(&mut gate.program());
    accepted(&gate, &Call::accounts());
    let take = |list: Norway<'_>| {
        let (is_imported, text) = imports.import(&list.sign(), &["--allow-shrink"]);
        assert!(is_imported, "{text}");
        assert_eq!(reload(&gate), json!([]));
    };
    take(below(8, "withdrawn"));
    let call = Call::accounts();
    refused(&gate, &call, 403, "FORBIDDEN", "certificate-untrusted");
    take(below(9, "granted"));
    accepted(&gate, &Call::accounts());
}

//= CRT-8 accepted
//= CRT-8 refused
//= CRT-13 accepted
//= CRT-13 refused
#[test]
fn a_service_that_its_list_withdraws_is_trusted_no_more() {
    let Some(imports) = Imports::new() else {
        return;
    };
    let path = |name: &str| imports.path(name);
    let norway = list_of_norway(7, "granted", GRANTED, "");
    let (is_imported, text) = imports.import(&norway, &[]);
    assert!(is_imported, "{text}");

    let gate = imports.gate();
    let _program = gate.run_silently(&mut gate.program());
    accepted(&gate, &Call::accounts());
    let seen = gate.folder().join("state/seen-certificates.jsonl");
    eventually("the gateway has noted the TPP", || {
        fs::read_to_string(&seen).is_ok_and(|text| text.contains("PSDNO-FSA-123456"))
    });
    let show = || {
        let mut show = Command::new(&imports.program);
        show.arg("show").arg(path("bundles"));
        let output = show.arg("--seen").arg(&seen).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };

    // The list withdraws the CA. Someone who alters it back is refused, and the last bundle stays.
    let now = Clock::System.now().unix();
    let since = Timestamp::from_unix(now - 3_600);
    let withdrawn = list_of_norway(8, "withdrawn", since, "");
    let altered = withdrawn.replacen("Svcstatus/withdrawn", "Svcstatus/granted", 1);
    let before = fs::read_link(path("bundles/current")).unwrap();
    let (is_imported, text) = imports.import(&altered, &["--allow-shrink"]);
    assert!(!is_imported, "{text}");
    assert_eq!(fs::read_link(path("bundles/current")).unwrap(), before);
    // The new bundle is held: the program says who would be hit, and nobody is.
    let (is_imported, text) = imports.import(&withdrawn, &["--allow-shrink", "--hold"]);
    assert!(is_imported, "{text}");
    assert_eq!(fs::read_link(path("bundles/current")).unwrap(), before);
    let text = show();
    let lost =
        "\nTPPs that would lose trust, of 1 seen within 30 days:\n  PSDNO-FSA-123456: certificate ";
    assert!(text.contains(lost), "{text}");
    assert!(text.contains("for seals: CA of TPPs\n"), "{text}");
    let named = " CA of TPPs (A QTSP), withdrawn since ";
    assert!(text.contains(named), "{text}");
    let withdrawn = "services that are granted no more, or under another name, since ";
    assert!(text.contains(withdrawn), "{text}");
    assert_eq!(reload(&gate), json!([]));
    accepted(&gate, &Call::accounts());
    // The operator switches, as docs/trust.md says.
    let held = text.lines().next().unwrap().rsplit('/').next().unwrap();
    symlink(held, path("bundles/next")).unwrap();
    fs::rename(path("bundles/next"), path("bundles/current")).unwrap();
    assert_ne!(fs::read_link(path("bundles/current")).unwrap(), before);
    accepted(&gate, &Call::accounts());
    assert_eq!(reload(&gate), json!([]));
    let call = Call::accounts();
    refused(&gate, &call, 403, "FORBIDDEN", "certificate-untrusted");
}
