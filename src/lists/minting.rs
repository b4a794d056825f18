//! Lists signed by the tests, by OpenSSL: an implementation of the algorithms that the verifier does not use.

use crate::{Certificate, Document, canonical::write_canonical};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use openssl::{
    asn1::Asn1Time,
    bn::BigNum,
    ec::{EcGroup, EcKey},
    ecdsa::EcdsaSig,
    hash::{MessageDigest, hash},
    nid::Nid,
    pkey::{PKey, Private},
    rsa::{Padding, Rsa},
    sign::{RsaPssSaltlen, Signer as Signing},
    x509::{
        X509, X509NameBuilder,
        extension::{BasicConstraints, ExtendedKeyUsage},
    },
};

/// A signer of lists: a key and its certificate.
pub(crate) struct Signer {
    pub(crate) certificate: Certificate,
    key: PKey<Private>,
}

impl Signer {
    /// A signer with an RSA key of so many bits.
    pub(crate) fn rsa(name: &str, bits: u32) -> Self {
        Self::of(name, PKey::from_rsa(Rsa::generate(bits).unwrap()).unwrap())
    }

    /// A signer with a key on a curve.
    pub(crate) fn ecdsa(name: &str, curve: Nid) -> Self {
        let group = EcGroup::from_curve_name(curve).unwrap();
        let key = EcKey::generate(&group).unwrap();
        Self::of(name, PKey::from_ec_key(key).unwrap())
    }

    fn of(name: &str, key: PKey<Private>) -> Self {
        let profile = Profile {
            subject: &[("CN", name)],
            ..Profile::default()
        };
        Self::issue(key, &profile)
    }

    /// A signer with a new key and a certificate of this profile.
    pub(crate) fn of_profile(profile: &Profile<'_>) -> Self {
        let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
        let key = EcKey::generate(&group).unwrap();
        Self::issue(PKey::from_ec_key(key).unwrap(), profile)
    }

    fn issue(key: PKey<Private>, profile: &Profile<'_>) -> Self {
        let mut subject = X509NameBuilder::new().unwrap();
        for (name, value) in profile.subject {
            subject.append_entry_by_text(name, value).unwrap();
        }
        let subject = subject.build();
        let mut builder = X509::builder().unwrap();
        builder.set_version(2).unwrap();
        let serial = BigNum::from_u32(7).unwrap().to_asn1_integer().unwrap();
        builder.set_serial_number(&serial).unwrap();
        builder.set_subject_name(&subject).unwrap();
        builder.set_issuer_name(&subject).unwrap();
        builder.set_pubkey(&key).unwrap();
        let begin = Asn1Time::from_str_x509(profile.begin).unwrap();
        let end = Asn1Time::from_str_x509(profile.end).unwrap();
        if profile.is_ca {
            let constraints = BasicConstraints::new().critical().ca().build().unwrap();
            builder.append_extension(constraints).unwrap();
        }
        if !profile.usage.is_empty() {
            let usage = ExtendedKeyUsage::new().other(profile.usage).build();
            builder.append_extension(usage.unwrap()).unwrap();
        }
        builder.set_not_before(&begin).unwrap();
        builder.set_not_after(&end).unwrap();
        builder.sign(&key, MessageDigest::sha256()).unwrap();
        let der = builder.build().to_der().unwrap();
        Self {
            certificate: Certificate::from_der(der).unwrap(),
            key,
        }
    }
}

/// What stands in the certificate of a signer.
#[derive(Clone, Copy)]
pub(crate) struct Profile<'p> {
    /// The subject: the short name of each attribute, and its value.
    pub(crate) subject: &'p [(&'p str, &'p str)],
    /// The first and the last second of its validity, as X.509 writes them.
    pub(crate) begin: &'p str,
    pub(crate) end: &'p str,
    pub(crate) is_ca: bool,
    /// The object identifier of an extended key usage; empty for none.
    pub(crate) usage: &'p str,
}

impl Default for Profile<'_> {
    fn default() -> Self {
        Self {
            subject: &[],
            begin: "20200101000000Z",
            end: "20400101000000Z",
            is_ca: false,
            usage: "",
        }
    }
}

/// How a list is signed.
#[derive(Clone)]
pub(crate) struct Mint<'s> {
    pub(crate) signer: &'s Signer,
    /// The element SignatureMethod.
    pub(crate) method: String,
    /// The hash of the signature.
    pub(crate) hash: MessageDigest,
    /// The bytes of salt of RSASSA-PSS; `None` for PKCS#1.
    pub(crate) salt: Option<i32>,
    /// SigningCertificateV2, or the first version.
    pub(crate) is_v2: bool,
    /// The URI of the reference to the root.
    pub(crate) root: &'static str,
}

impl<'s> Mint<'s> {
    /// RSA by PKCS#1 with SHA-512 and SigningCertificateV2, as the list of lists of 2026 has them.
    pub(crate) fn new(signer: &'s Signer) -> Self {
        Self {
            signer,
            method: method("http://www.w3.org/2001/04/xmldsig-more#rsa-sha512"),
            hash: MessageDigest::sha512(),
            salt: None,
            is_v2: true,
            root: "",
        }
    }

    /// Signs a list: the signature becomes the last element of its root.
    pub(crate) fn sign(&self, list: &str) -> Vec<u8> {
        self.fill(&self.with_template(list)).into_bytes()
    }

    /// A list with a signature whose digests and value are `@ROOT@`, `@PROPERTIES@` and `@VALUE@`.
    pub(crate) fn with_template(&self, list: &str) -> String {
        let (body, end) = list.split_at(list.rfind("</").unwrap());
        format!("{body}{}{end}", self.template())
    }

    /// The signature, with digests and value left open.
    pub(crate) fn template(&self) -> String {
        let Self { method, root, .. } = self;
        let certificate = STANDARD.encode(self.signer.certificate.der());
        let digest = hash(MessageDigest::sha512(), self.signer.certificate.der()).unwrap();
        let digest = STANDARD.encode(digest);
        let version = if self.is_v2 { "V2" } else { "" };
        let sha512 = r#"<ds:DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha512"/>"#;
        let exclusive = r#"Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>"#;
        let enveloped = r#"Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"/>"#;
        format!(
            r##"<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#" Id="minted"><ds:SignedInfo><ds:CanonicalizationMethod {exclusive}{method}<ds:Reference Id="whole" URI="{root}"><ds:Transforms><ds:Transform {enveloped}<ds:Transform {exclusive}</ds:Transforms>{sha512}<ds:DigestValue>@ROOT@</ds:DigestValue></ds:Reference><ds:Reference Type="http://uri.etsi.org/01903#SignedProperties" URI="#properties"><ds:Transforms><ds:Transform {exclusive}</ds:Transforms>{sha512}<ds:DigestValue>@PROPERTIES@</ds:DigestValue></ds:Reference></ds:SignedInfo><ds:SignatureValue>@VALUE@</ds:SignatureValue><ds:KeyInfo><ds:X509Data><ds:X509Certificate>{certificate}</ds:X509Certificate></ds:X509Data></ds:KeyInfo><ds:Object><xades:QualifyingProperties xmlns:xades="http://uri.etsi.org/01903/v1.3.2#" Target="#minted"><xades:SignedProperties Id="properties"><xades:SignedSignatureProperties><xades:SigningTime>2026-07-01T07:13:25Z</xades:SigningTime><xades:SigningCertificate{version}><xades:Cert><xades:CertDigest>{sha512}<ds:DigestValue>{digest}</ds:DigestValue></xades:CertDigest></xades:Cert></xades:SigningCertificate{version}></xades:SignedSignatureProperties></xades:SignedProperties></xades:QualifyingProperties></ds:Object></ds:Signature>"##
        )
    }

    /// Computes the digests and the value of a signature from [`Mint::with_template`], wherever it stands and however it was altered.
    pub(crate) fn fill(&self, text: &str) -> String {
        let root = STANDARD.encode(self.digest(text, None));
        let text = text.replace("@ROOT@", &root);
        let properties = STANDARD.encode(self.digest(&text, Some("SignedProperties")));
        let text = text.replace("@PROPERTIES@", &properties);
        let value = self.value(&canonical(&text, Some("SignedInfo")));
        text.replace("@VALUE@", &STANDARD.encode(value))
    }

    fn digest(&self, text: &str, local: Option<&str>) -> Vec<u8> {
        let digest = hash(MessageDigest::sha512(), canonical(text, local).as_bytes());
        digest.unwrap().to_vec()
    }

    fn value(&self, message: &str) -> Vec<u8> {
        if let Ok(key) = self.signer.key.ec_key() {
            let digest = hash(self.hash, message.as_bytes()).unwrap();
            let signature = EcdsaSig::sign(&digest, &key).unwrap();
            let width = i32::try_from(key.group().degree().div_ceil(8)).unwrap();
            let halves = [signature.r(), signature.s()];
            return halves
                .iter()
                .flat_map(|half| half.to_vec_padded(width).unwrap())
                .collect();
        }
        let mut signing = Signing::new(self.hash, &self.signer.key).unwrap();
        if let Some(salt) = self.salt {
            signing.set_rsa_padding(Padding::PKCS1_PSS).unwrap();
            let salt = RsaPssSaltlen::custom(salt);
            signing.set_rsa_pss_saltlen(salt).unwrap();
        }
        signing.sign_oneshot_to_vec(message.as_bytes()).unwrap()
    }
}

/// The element SignatureMethod for an identifier.
pub(crate) fn method(identifier: &str) -> String {
    format!(r#"<ds:SignatureMethod Algorithm="{identifier}"/>"#)
}

/// The canonical form of the first element of this name, which is empty if there is none, or of the root without its signature.
pub(crate) fn canonical(text: &str, local: Option<&str>) -> String {
    let document = Document::parse(text.as_bytes().to_vec()).unwrap();
    let root = document.root();
    let target = match local {
        Some(local) => root.descendants().find(|it| it.local() == local),
        None => Some(root),
    };
    let Some(target) = target else {
        return String::new();
    };
    let signature = root.children().find(|it| it.local() == "Signature");
    let mut form = String::new();
    write_canonical(target, signature.filter(|_| local.is_none()), &mut |text| {
        form.push_str(text);
    });
    form
}
