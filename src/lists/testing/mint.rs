//! Lists that tests write and sign, for what the real lists have not.
//!
//! The text is written in canonical form from the start, so that what is signed is the text itself: the tests do not sign with the code
//! that they test.

use crate::Certificate;
use aws_lc_rs::{
    rand::SystemRandom,
    rsa,
    signature::{self, EcdsaKeyPair},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use sha2::{Digest as _, Sha256};

/// How a list is signed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scheme {
    /// RSA, PKCS#1, SHA-256.
    Rsa,
    /// RSA, PSS, SHA-256.
    Pss,
    /// ECDSA, P-256, SHA-256.
    Ecdsa,
}

enum Key {
    Rsa(rsa::KeyPair),
    Ecdsa(EcdsaKeyPair),
}

/// Someone who signs lists.
pub(crate) struct Signer {
    pub(crate) certificate: Certificate,
    key: Key,
    scheme: Scheme,
    /// Whether the signer is named by SigningCertificateV2.
    pub(crate) is_v2: bool,
}

impl Signer {
    /// A new signer.
    pub(crate) fn new(name: &str, scheme: Scheme) -> Self {
        let algorithm = match scheme {
            Scheme::Rsa | Scheme::Pss => &rcgen::PKCS_RSA_SHA256,
            Scheme::Ecdsa => &rcgen::PKCS_ECDSA_P256_SHA256,
        };
        let pair = KeyPair::generate_for(algorithm).unwrap();
        let pkcs8 = pair.serialize_der();
        let key = match scheme {
            Scheme::Rsa | Scheme::Pss => Key::Rsa(rsa::KeyPair::from_pkcs8(&pkcs8).unwrap()),
            Scheme::Ecdsa => Key::Ecdsa(
                EcdsaKeyPair::from_pkcs8(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8)
                    .unwrap(),
            ),
        };
        Self {
            certificate: self_signed(name, &pair),
            key,
            scheme,
            is_v2: true,
        }
    }

    fn identifier(&self) -> &'static str {
        match self.scheme {
            Scheme::Rsa => "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
            Scheme::Pss => "http://www.w3.org/2007/05/xmldsig-more#sha256-rsa-MGF1",
            Scheme::Ecdsa => "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256",
        }
    }

    fn sign(&self, text: &str) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.key {
            Key::Ecdsa(pair) => {
                let signature = pair.sign(&random, text.as_bytes()).unwrap();
                signature.as_ref().to_vec()
            }
            Key::Rsa(pair) => {
                let padding: &'static dyn signature::RsaEncoding = match self.scheme {
                    Scheme::Pss => &signature::RSA_PSS_SHA256,
                    _ => &signature::RSA_PKCS1_SHA256,
                };
                let mut bytes = vec![0; pair.public_modulus_len()];
                pair.sign(padding, &random, text.as_bytes(), &mut bytes)
                    .unwrap();
                bytes
            }
        }
    }
}

/// A new certificate of a service or signer.
pub(crate) fn certificate(name: &str) -> Certificate {
    self_signed(name, &KeyPair::generate().unwrap())
}

fn self_signed(name: &str, pair: &KeyPair) -> Certificate {
    let mut params = CertificateParams::default();
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    let certificate = params.self_signed(pair).unwrap();
    Certificate::from_der(certificate.der().to_vec()).unwrap()
}

/// A service that is minted.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) name: &'static str,
    pub(crate) service_type: &'static str,
    pub(crate) certificate: Option<Certificate>,
    /// State and since when; the current one first.
    pub(crate) states: Vec<(&'static str, &'static str)>,
    /// Such as `ForeSeals`.
    pub(crate) additional: Vec<&'static str>,
    /// More extensions, as XML.
    pub(crate) extensions: String,
}

impl Service {
    /// A service that issues certificates for seals, granted since 2020.
    pub(crate) fn for_seals(name: &'static str) -> Self {
        Self {
            name,
            service_type: "CA/QC",
            certificate: Some(certificate(name)),
            states: vec![("granted", "2020-01-01T00:00:00Z")],
            additional: vec!["ForeSeals"],
            extensions: String::new(),
        }
    }

    fn xml(&self) -> String {
        let states: Vec<_> = self.states.iter().map(|it| self.state(*it)).collect();
        let (current, history) = states.split_first().unwrap();
        let history: String = history
            .iter()
            .map(|it| format!("<ServiceHistoryInstance>{it}</ServiceHistoryInstance>"))
            .collect();
        format!(
            "<TSPService><ServiceInformation>{current}</ServiceInformation><ServiceHistory>{history}</ServiceHistory></TSPService>"
        )
    }

    fn state(&self, (status, since): (&str, &str)) -> String {
        let identity = match &self.certificate {
            Some(certificate) => format!(
                "<X509Certificate>{}</X509Certificate>",
                STANDARD.encode(certificate.der())
            ),
            None => "<X509SKI>AAAA</X509SKI>".to_owned(),
        };
        let additional: String = self
            .additional
            .iter()
            .map(|it| {
                format!(
                    "<Extension Critical=\"true\"><AdditionalServiceInformation><URI xml:lang=\"en\">http://uri.etsi.org/TrstSvc/TrustedList/SvcInfoExt/{it}</URI></AdditionalServiceInformation></Extension>"
                )
            })
            .collect();
        format!(
            "<ServiceTypeIdentifier>http://uri.etsi.org/TrstSvc/Svctype/{}</ServiceTypeIdentifier><ServiceName><Name xml:lang=\"en\">{}</Name></ServiceName><ServiceDigitalIdentity><DigitalId>{identity}</DigitalId></ServiceDigitalIdentity><ServiceStatus>http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/{status}</ServiceStatus><StatusStartingTime>{since}</StatusStartingTime><ServiceInformationExtensions>{additional}{}</ServiceInformationExtensions>",
            self.service_type, self.name, self.extensions
        )
    }
}

/// A list that is minted.
#[derive(Clone)]
pub(crate) struct List {
    pub(crate) version: u64,
    pub(crate) sequence: u64,
    pub(crate) list_type: &'static str,
    pub(crate) territory: &'static str,
    pub(crate) information: Vec<String>,
    pub(crate) issued: &'static str,
    /// `None`: the list is closed.
    pub(crate) next_update: Option<&'static str>,
    /// Type, country, address and signers.
    pub(crate) pointers: Vec<(&'static str, &'static str, String, Vec<Certificate>)>,
    pub(crate) services: Vec<Service>,
}

impl List {
    /// A list of lists that names the signers of countries.
    pub(crate) fn of_lists(countries: &[(&'static str, &Certificate)]) -> Self {
        let pointers = countries.iter().map(|(country, signer)| {
            let address = format!("https://lists.example/{country}.xml");
            ("EUgeneric", *country, address, vec![(*signer).clone()])
        });
        Self {
            list_type: "EUlistofthelists",
            territory: "EU",
            pointers: pointers.collect(),
            ..Self::national("EU", Vec::new())
        }
    }

    /// A national list, issued on 2026-06-01, up to 2026-12-01.
    pub(crate) fn national(territory: &'static str, services: Vec<Service>) -> Self {
        Self {
            version: 6,
            sequence: 7,
            list_type: "EUgeneric",
            territory,
            information: vec!["https://lists.example/about".to_owned()],
            issued: "2026-06-01T00:00:00Z",
            next_update: Some("2026-12-01T00:00:00Z"),
            pointers: Vec::new(),
            services,
        }
    }

    /// The list, signed.
    pub(crate) fn sign(&self, signer: &Signer) -> String {
        sign(&self.content(), signer)
    }

    /// Everything in the root element but the signature.
    pub(crate) fn content(&self) -> String {
        let services: String = self.services.iter().map(Service::xml).collect();
        let providers = match services.is_empty() {
            true => String::new(),
            false => format!(
                "<TrustServiceProviderList><TrustServiceProvider><TSPInformation><TSPName><Name xml:lang=\"en\">Provider of {}</Name></TSPName></TSPInformation><TSPServices>{services}</TSPServices></TrustServiceProvider></TrustServiceProviderList>",
                self.territory
            ),
        };
        format!("{}{providers}", self.scheme())
    }

    fn scheme(&self) -> String {
        let information: String = self
            .information
            .iter()
            .map(|it| format!("<URI xml:lang=\"en\">{it}</URI>"))
            .collect();
        let pointers: String = self.pointers.iter().map(pointer).collect();
        let next = self
            .next_update
            .map(|next| format!("<dateTime>{next}</dateTime>"))
            .unwrap_or_default();
        format!(
            "<SchemeInformation><TSLVersionIdentifier>{}</TSLVersionIdentifier><TSLSequenceNumber>{}</TSLSequenceNumber><TSLType>http://uri.etsi.org/TrstSvc/TrustedList/TSLType/{}</TSLType><SchemeOperatorName><Name xml:lang=\"en\">Operator of {}</Name></SchemeOperatorName><SchemeOperatorAddress></SchemeOperatorAddress><SchemeName></SchemeName><SchemeInformationURI>{information}</SchemeInformationURI><StatusDeterminationApproach>http://uri.etsi.org/TrstSvc/TrustedList/StatusDetn/EUappropriate</StatusDeterminationApproach><SchemeTerritory>{}</SchemeTerritory><HistoricalInformationPeriod>65535</HistoricalInformationPeriod><PointersToOtherTSL>{pointers}</PointersToOtherTSL><ListIssueDateTime>{}</ListIssueDateTime><NextUpdate>{next}</NextUpdate></SchemeInformation>",
            self.version,
            self.sequence,
            self.list_type,
            self.territory,
            self.territory,
            self.issued
        )
    }
}

fn pointer(
    (list_type, territory, address, signers): &(&str, &str, String, Vec<Certificate>),
) -> String {
    let identities: String = signers
        .iter()
        .map(|signer| {
            format!(
                "<ServiceDigitalIdentity><DigitalId><X509Certificate>{}</X509Certificate></DigitalId></ServiceDigitalIdentity>",
                STANDARD.encode(signer.der())
            )
        })
        .collect();
    format!(
        "<OtherTSLPointer><ServiceDigitalIdentities>{identities}</ServiceDigitalIdentities><TSLLocation>{address}</TSLLocation><AdditionalInformation><OtherInformation><TSLType>http://uri.etsi.org/TrstSvc/TrustedList/TSLType/{list_type}</TSLType></OtherInformation><OtherInformation><SchemeTerritory>{territory}</SchemeTerritory></OtherInformation><OtherInformation><ext:MimeType xmlns:ext=\"http://uri.etsi.org/02231/v2/additionaltypes#\">application/vnd.etsi.tsl+xml</ext:MimeType></OtherInformation></AdditionalInformation></OtherTSLPointer>"
    )
}

/// Signs the content of a root element, which is in canonical form.
pub(crate) fn sign(content: &str, signer: &Signer) -> String {
    const ROOT: &str = "<TrustServiceStatusList xmlns=\"http://uri.etsi.org/02231/v2#\" Id=\"list\" TSLTag=\"http://uri.etsi.org/19612/TSLTag\">";
    const END: &str = "</TrustServiceStatusList>";
    let properties = properties(signer);
    let info = signed_info(
        &digest(&format!("{ROOT}{content}{END}")),
        &digest(&properties),
        signer,
    );
    let value = STANDARD.encode(signer.sign(&info));
    let certificate = STANDARD.encode(signer.certificate.der());
    format!(
        "{ROOT}{content}<ds:Signature xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\" Id=\"sig\">{info}<ds:SignatureValue>{value}</ds:SignatureValue><ds:KeyInfo><ds:X509Data><ds:X509Certificate>{certificate}</ds:X509Certificate></ds:X509Data></ds:KeyInfo><ds:Object><xades:QualifyingProperties xmlns:xades=\"http://uri.etsi.org/01903/v1.3.2#\" Target=\"#sig\">{properties}</xades:QualifyingProperties></ds:Object></ds:Signature>{END}"
    )
}

fn properties(signer: &Signer) -> String {
    const DS: &str = "xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\"";
    let name = match signer.is_v2 {
        true => "SigningCertificateV2",
        false => "SigningCertificate",
    };
    let serial = match signer.is_v2 {
        true => String::new(),
        false => format!(
            "<xades:IssuerSerial><ds:X509IssuerName {DS}>CN=x</ds:X509IssuerName><ds:X509SerialNumber {DS}>1</ds:X509SerialNumber></xades:IssuerSerial>"
        ),
    };
    let digest = STANDARD.encode(signer.certificate.sha256());
    format!(
        "<xades:SignedProperties xmlns:xades=\"http://uri.etsi.org/01903/v1.3.2#\" Id=\"props\"><xades:SignedSignatureProperties><xades:SigningTime>2026-06-01T00:00:00Z</xades:SigningTime><xades:{name}><xades:Cert><xades:CertDigest><ds:DigestMethod {DS} Algorithm=\"http://www.w3.org/2001/04/xmlenc#sha256\"></ds:DigestMethod><ds:DigestValue {DS}>{digest}</ds:DigestValue></xades:CertDigest>{serial}</xades:Cert></xades:{name}></xades:SignedSignatureProperties></xades:SignedProperties>"
    )
}

fn signed_info(list: &str, properties: &str, signer: &Signer) -> String {
    const EXCLUSIVE: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";
    let digest_method =
        "<ds:DigestMethod Algorithm=\"http://www.w3.org/2001/04/xmlenc#sha256\"></ds:DigestMethod>";
    format!(
        "<ds:SignedInfo xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\"><ds:CanonicalizationMethod Algorithm=\"{EXCLUSIVE}\"></ds:CanonicalizationMethod><ds:SignatureMethod Algorithm=\"{}\"></ds:SignatureMethod><ds:Reference URI=\"#list\"><ds:Transforms><ds:Transform Algorithm=\"http://www.w3.org/2000/09/xmldsig#enveloped-signature\"></ds:Transform><ds:Transform Algorithm=\"{EXCLUSIVE}\"></ds:Transform></ds:Transforms>{digest_method}<ds:DigestValue>{list}</ds:DigestValue></ds:Reference><ds:Reference Type=\"http://uri.etsi.org/01903#SignedProperties\" URI=\"#props\"><ds:Transforms><ds:Transform Algorithm=\"{EXCLUSIVE}\"></ds:Transform></ds:Transforms>{digest_method}<ds:DigestValue>{properties}</ds:DigestValue></ds:Reference></ds:SignedInfo>",
        signer.identifier()
    )
}

fn digest(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}
