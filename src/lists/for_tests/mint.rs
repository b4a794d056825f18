//! Trusted lists that tests write, for what the real lists have not. `minting` signs them.

use crate::{
    Certificate,
    minting::{self, Mint, Profile, method},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use openssl::{hash::MessageDigest, nid::Nid};

/// How a list is signed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scheme {
    /// RSA, PKCS#1, SHA-512.
    Rsa,
    /// RSA, PSS, SHA-256.
    Pss,
    /// ECDSA, P-256, SHA-256.
    Ecdsa,
}

/// Someone who signs lists.
pub(crate) struct Signer {
    pub(crate) certificate: Certificate,
    signer: minting::Signer,
    scheme: Scheme,
    /// Whether the signer is named by SigningCertificateV2.
    pub(crate) is_v2: bool,
}

impl Signer {
    /// A new signer.
    pub(crate) fn new(name: &str, scheme: Scheme) -> Self {
        let signer = match scheme {
            Scheme::Rsa | Scheme::Pss => minting::Signer::rsa(name, 2048),
            Scheme::Ecdsa => minting::Signer::ecdsa(name, Nid::X9_62_PRIME256V1),
        };
        Self {
            certificate: signer.certificate.clone(),
            signer,
            scheme,
            is_v2: true,
        }
    }

    /// A new signer whose certificate has this profile.
    pub(crate) fn of_profile(profile: &Profile<'_>) -> Self {
        let signer = minting::Signer::of_profile(profile);
        Self {
            certificate: signer.certificate.clone(),
            signer,
            scheme: Scheme::Ecdsa,
            is_v2: true,
        }
    }

    fn mint(&self) -> Mint<'_> {
        let mut mint = Mint::new(&self.signer);
        mint.is_v2 = self.is_v2;
        match self.scheme {
            Scheme::Rsa => {}
            Scheme::Pss => {
                mint.method = method("http://www.w3.org/2007/05/xmldsig-more#sha256-rsa-MGF1");
                mint.hash = MessageDigest::sha256();
                mint.salt = Some(32);
            }
            Scheme::Ecdsa => {
                mint.method = method("http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256");
                mint.hash = MessageDigest::sha256();
            }
        }
        mint
    }
}

/// A new certificate of a service.
pub(crate) fn certificate(name: &str) -> Certificate {
    minting::Signer::ecdsa(name, Nid::X9_62_PRIME256V1).certificate
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

/// Signs a root element with this content.
pub(crate) fn sign(content: &str, signer: &Signer) -> String {
    let list = format!(
        "<TrustServiceStatusList xmlns=\"http://uri.etsi.org/02231/v2#\" Id=\"list\" TSLTag=\"http://uri.etsi.org/19612/TSLTag\">{content}</TrustServiceStatusList>"
    );
    String::from_utf8(signer.mint().sign(&list)).unwrap()
}
