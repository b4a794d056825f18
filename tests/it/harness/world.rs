//! CAs and TPPs, issued once for the whole test binary.

use super::pki::{Ca, CaSpec, Issued, Key, LeafSpec, Role};
use openssl::{
    pkey::PKey,
    rsa::Rsa,
    x509::{X509, X509NameEntryRef},
};
use portvakt::tools::tpp::TppIdentity;
use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{Arc, LazyLock, OnceLock},
};
use time::{OffsetDateTime, macros::datetime};
use uuid::Uuid;

/// A TPP: its certificate and its signer.
pub(crate) struct Tpp {
    /// Certificate and key.
    pub(crate) issued: Issued,
    /// The signer.
    pub(crate) identity: TppIdentity,
    id: OnceLock<Option<String>>,
}

impl Tpp {
    /// The TPP that signs with the key of an issued certificate.
    pub(crate) fn of(issued: Issued) -> Arc<Self> {
        let identity = TppIdentity::from_pem(&issued.pem, &issued.key_pem).unwrap();
        Arc::new(Self {
            issued,
            identity,
            id: OnceLock::new(),
        })
    }

    /// A TPP that presents this certificate and signs with this key, even if the certificate belongs to another.
    pub(crate) fn showing(der: Vec<u8>, key_pem: &str) -> Arc<Self> {
        let pem = to_pem(&der);
        let identity = TppIdentity::from_pem(&pem, key_pem).unwrap();
        Arc::new(Self {
            issued: Issued {
                der,
                pem,
                key_pem: key_pem.to_owned(),
            },
            identity,
            id: OnceLock::new(),
        })
    }
}

impl Tpp {
    /// The identity of the TPP (CRT-4), if the certificate has one.
    pub(crate) fn id(&self) -> Option<String> {
        let read = || self.read_id();
        // Each call asks for it, and OpenSSL takes as long for a certificate as for its signature.
        self.id.get_or_init(read).clone()
    }

    fn read_id(&self) -> Option<String> {
        let certificate = X509::from_der(&self.issued.der).ok()?;
        let is_identity =
            |entry: &&X509NameEntryRef| entry.object().to_string() == "organizationIdentifier";
        let entry = certificate
            .subject_name()
            .entries()
            .find(|entry| is_identity(entry))?;
        let text = entry.data().to_string().ok()?;
        Some(text.trim().to_ascii_uppercase())
    }

    /// A PSU-ID of this TPP.
    pub(crate) fn psu(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.id().hash(&mut hasher);
        Uuid::from_u64_pair(
            0x0192_f0c1_5a5b_7def,
            0x8000_0000_0000_0000 | hasher.finish() >> 1,
        )
        .to_string()
    }
}

/// A PKI: the CAs, the TPPs' certificates, and the gateway's TLS certificate.
pub(crate) struct World {
    /// The trust anchor.
    pub(crate) root: Ca,
    /// The key of the anchor, PEM.
    pub(crate) root_key: String,
    /// The intermediate CA that issues to TPPs.
    pub(crate) issuing: Ca,
    /// The key of the issuing CA, PEM.
    pub(crate) issuing_key: String,
    /// The anchor of TLS clients.
    pub(crate) tls_ca: Ca,
    /// The gateway's certificate for `localhost`.
    pub(crate) server: Issued,
    /// The shared key of TPPs that need no own key, PEM.
    pub(crate) tpp_key: String,
    /// A TPP with both roles.
    pub(crate) both: Arc<Tpp>,
    /// A TPP with the role PSP_AI.
    pub(crate) aisp: Arc<Tpp>,
    /// A TPP with the role PSP_PI.
    pub(crate) pisp: Arc<Tpp>,
}

/// The shared test PKI, made on the first call. All gates use this PKI unless a test names another.
pub(crate) fn world() -> &'static World {
    static WORLD: LazyLock<World> = LazyLock::new(World::mint);
    &WORLD
}

/// The issuing CA. Its name is ASCII, so keyId needs no encoded word (SIG-10); the name has a comma, so keyId needs an escape.
pub(crate) fn issuing_spec(key: &str) -> CaSpec {
    CaSpec {
        common_name: "Portvakt Test CA G1".into(),
        organization: "Portvakt Test CA, AS".into(),
        key: Key::RsaPem(key.into()),
        ..CaSpec::default()
    }
}

impl World {
    /// A new PKI with the same names and other keys.
    pub(crate) fn mint() -> Self {
        let (root_key, issuing_key, tpp_key) = (rsa_key(2048), rsa_key(2048), rsa_key(2048));
        let root = Ca::root(&CaSpec {
            key: Key::RsaPem(root_key.clone()),
            ..CaSpec::development_root()
        })
        .unwrap();
        let issuing = root.issue_ca(&issuing_spec(&issuing_key)).unwrap();
        let tls_ca = Ca::root(&CaSpec {
            common_name: "Portvakt Test TLS".into(),
            key: Key::EcP256,
            ..CaSpec::development_root()
        })
        .unwrap();
        let (from, to): (OffsetDateTime, OffsetDateTime) = (
            datetime!(2020-01-01 0:00 UTC),
            datetime!(2045-01-01 0:00 UTC),
        );
        let server = tls_ca.issue_server(&Key::EcP256, from, to).unwrap();
        let issue = |identifier: &str, roles: &[Role]| {
            let spec = LeafSpec {
                organization_identifier: Some(identifier.into()),
                roles: Some(roles.to_vec()),
                key: Key::RsaPem(tpp_key.clone()),
                ..LeafSpec::default()
            };
            Tpp::of(issuing.issue(&spec).unwrap())
        };
        let both = issue(
            "PSDNO-FSA-123456",
            &[Role::PaymentInitiation, Role::AccountInformation],
        );
        let aisp = issue("PSDNO-FSA-111111", &[Role::AccountInformation]);
        let pisp = issue("PSDNO-FSA-222222", &[Role::PaymentInitiation]);
        Self {
            root,
            root_key,
            issuing,
            issuing_key,
            tls_ca,
            server,
            tpp_key,
            both,
            aisp,
            pisp,
        }
    }

    /// The specification of a valid leaf with the shared key. A test changes the field that it is about.
    pub(crate) fn leaf(&self) -> LeafSpec {
        LeafSpec {
            key: Key::RsaPem(self.tpp_key.clone()),
            ..LeafSpec::default()
        }
    }

    /// Issues a certificate to a TPP.
    pub(crate) fn issue(&self, spec: &LeafSpec) -> Arc<Tpp> {
        Tpp::of(self.issuing.issue(spec).unwrap())
    }

    /// Writes the files that a gateway reads: `anchors/`, `intermediates/`, `server.pem` and `server.key`.
    pub(super) fn write(&self, folder: &Path) {
        for name in ["anchors", "intermediates"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("anchors/root.pem"), self.root.pem()).unwrap();
        fs::write(folder.join("intermediates/issuing.pem"), self.issuing.pem()).unwrap();
        fs::write(folder.join("server.pem"), &self.server.pem).unwrap();
        write_private(&folder.join("server.key"), &self.server.key_pem);
    }
}

/// Writes a file that only its owner may read: a key or a token.
pub(crate) fn write_private(path: &Path, content: impl AsRef<[u8]>) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A new RSA key, PKCS#8 PEM.
pub(crate) fn rsa_key(bits: u32) -> String {
    let key = PKey::from_rsa(Rsa::generate(bits).unwrap()).unwrap();
    String::from_utf8(key.private_key_to_pem_pkcs8().unwrap()).unwrap()
}

/// A certificate as PEM.
pub(super) fn to_pem(der: &[u8]) -> String {
    let base64 = openssl::base64::encode_block(der);
    let lines: Vec<_> = base64
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        lines.join("\n")
    )
}
