//! `portvakt-sandbox pki`: the folder of certificates and keys that a demo runs on.
//!
//! Invariant: a folder with a README.txt is whole, because that file is removed first and written last.
//! Deliberately not kept: the keys of the CAs. To change one certificate, make the whole PKI anew; it takes seconds.

use portvakt_base::terminal::Terminal;
use portvakt_development_pki::{Ca, CaSpec, Issued, Key, LeafSpec, PkiFault, QcType, Role};
use rsa::pkcs8::{EncodePrivateKey, LineEnding};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use time::{Duration, OffsetDateTime};

/// The line before each PEM block. Readers of PEM skip text outside the armour (RFC 7468 section 2).
const MARK: &str = "# Portvakt development PKI, made by portvakt-sandbox: for no other use.\n";

/// The validity of the development certificates, in days.
const VALIDITY_DAYS: i64 = 397;

/// The file that says that the folder is complete.
const MARKER: &str = "README.txt";

/// Fills `out`, unless it is complete and valid for another day; prints its content.
pub(crate) fn run(
    out: &Path,
    force: bool,
    now: OffsetDateTime,
) -> Result<(), Box<dyn std::error::Error>> {
    let kept = !force && is_complete(out, now);
    if !kept {
        write_all(out, now)?;
    }
    let verb = if kept {
        "kept (--force makes it anew)"
    } else {
        "made"
    };
    let table = fs::read_to_string(out.join(MARKER))?;
    writeln!(
        Terminal::output(),
        "development PKI in {} {verb}\n\n{table}",
        out.display()
    )?;
    Ok(())
}

/// Makes every file of the PKI in `out`.
pub(crate) fn write_all(out: &Path, now: OffsetDateTime) -> Result<(), Box<dyn std::error::Error>> {
    for folder in [out, &out.join("anchors"), &out.join("intermediates")] {
        fs::create_dir_all(folder)?;
    }
    remove(&out.join(MARKER))?;
    let mut table = String::new();
    let authorities = Authorities::new(now)?;
    for (file, what, ca) in authorities.public() {
        write_public(&out.join(file), &ca.pem())?;
        table.push_str(&format!("{file:<40} {what}\n"));
    }
    let server = authorities.tls.issue_server(
        &Key::EcP256,
        now - Duration::HOUR,
        now + Duration::days(VALIDITY_DAYS),
    )?;
    write_pair(out, "server", &server)?;
    table.push_str(&row(
        "server",
        "TLS of the gateway: localhost, 127.0.0.1 (ECDSA)",
    ));
    for (stem, what, spec) in leaves(now)? {
        let issuer = match stem {
            "foreign" => &authorities.foreign,
            _ => &authorities.issuing,
        };
        write_pair(out, stem, &issuer.issue(&spec)?)?;
        table.push_str(&row(stem, what));
    }
    write_public(&out.join(MARKER), &table)?;
    Ok(())
}

fn row(stem: &str, what: &str) -> String {
    format!("{:<40} {what}\n", format!("{stem}.pem, {stem}.key"))
}

struct Authorities {
    root: Ca,
    issuing: Ca,
    foreign: Ca,
    tls: Ca,
}

impl Authorities {
    fn new(now: OffsetDateTime) -> Result<Self, PkiFault> {
        let dated = |spec: CaSpec| CaSpec {
            not_before: now - Duration::days(400),
            not_after: now + Duration::days(3650),
            ..spec
        };
        let root = Ca::root(&dated(CaSpec::development_root()))?;
        let issuing = root.issue_ca(&dated(CaSpec::default()))?;
        let foreign = Ca::root(&dated(CaSpec {
            common_name: "Somebody Else's Root".into(),
            organization: "Somebody Else".into(),
            ..CaSpec::development_root()
        }))?;
        let tls = Ca::root(&dated(CaSpec {
            common_name: "Portvakt Development TLS Root".into(),
            key: Key::EcP256,
            ..CaSpec::development_root()
        }))?;
        Ok(Self {
            root,
            issuing,
            foreign,
            tls,
        })
    }

    /// The CA certificates that are written. The foreign root is not, so that no one trusts it.
    fn public(&self) -> [(&'static str, &'static str, &Ca); 3] {
        [
            (
                "anchors/root.pem",
                "trust anchor for TPP certificates",
                &self.root,
            ),
            (
                "intermediates/issuing.pem",
                "the CA that issued the TPP certificates",
                &self.issuing,
            ),
            (
                "server-ca.pem",
                "what a client trusts (curl --cacert)",
                &self.tls,
            ),
        ]
    }
}

type Leaf = (&'static str, &'static str, LeafSpec);

/// File stem, description and specification of every TPP certificate.
fn leaves(now: OffsetDateTime) -> Result<Vec<Leaf>, Box<dyn std::error::Error>> {
    let base = || LeafSpec {
        not_before: now - Duration::HOUR,
        not_after: now + Duration::days(VALIDITY_DAYS),
        ..LeafSpec::default()
    };
    Ok(right_leaves(&base)
        .into_iter()
        .chain(broken_leaves(&base, now)?)
        .collect())
}

fn right_leaves(base: &impl Fn() -> LeafSpec) -> [Leaf; 3] {
    let aisp = LeafSpec {
        common_name: "Kontoinnsikt".into(),
        organization: "Kontoinnsikt AS".into(),
        organization_identifier: Some("PSDNO-FSA-111111".into()),
        roles: Some(vec![Role::AccountInformation]),
        ..base()
    };
    let pisp = LeafSpec {
        common_name: "Betalingsstart".into(),
        organization: "Betalingsstart AS".into(),
        organization_identifier: Some("PSDNO-FSA-222222".into()),
        roles: Some(vec![Role::PaymentInitiation]),
        ..base()
    };
    [
        ("tpp-aisp", "a TPP with role PSP_AI", aisp),
        ("tpp-pisp", "a TPP with role PSP_PI", pisp),
        ("tpp-both", "a TPP with roles PSP_PI and PSP_AI", base()),
    ]
}

fn broken_leaves(
    base: &impl Fn() -> LeafSpec,
    now: OffsetDateTime,
) -> Result<Vec<Leaf>, Box<dyn std::error::Error>> {
    let expired = LeafSpec {
        not_before: now - Duration::days(390),
        not_after: now - Duration::DAY,
        ..base()
    };
    let early = LeafSpec {
        not_before: now + Duration::days(30),
        ..base()
    };
    let no_psd2 = LeafSpec {
        roles: None,
        ..base()
    };
    let no_roles = LeafSpec {
        roles: Some(Vec::new()),
        ..base()
    };
    let wrong_type = LeafSpec {
        qc_type: Some(QcType::Esign),
        ..base()
    };
    let weak = LeafSpec {
        key: Key::RsaPem(weak_key()?),
        ..base()
    };
    let ca_leaf = LeafSpec {
        is_ca: true,
        ..base()
    };
    Ok(vec![
        ("foreign", "broken: from another root", base()),
        ("expired", "broken: expired yesterday", expired),
        ("not-yet-valid", "broken: valid in 30 days", early),
        ("no-psd2", "broken: no PSD2 statement", no_psd2),
        (
            "no-roles",
            "broken: a PSD2 statement without roles",
            no_roles,
        ),
        ("wrong-type", "broken: QcType esign", wrong_type),
        ("weak-key", "broken: an RSA key of 1024 bits", weak),
        ("ca-leaf", "broken: says that it is a CA", ca_leaf),
    ])
}

/// An RSA key of 1024 bits, PKCS#8 PEM: aws-lc generates none so small.
fn weak_key() -> Result<String, Box<dyn std::error::Error>> {
    let key = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 1024)?;
    Ok(key.to_pkcs8_pem(LineEnding::LF)?.to_string())
}

/// Whether the folder is complete and its certificates are valid for at least another day.
pub(crate) fn is_complete(out: &Path, now: OffsetDateTime) -> bool {
    let lasts = |file: &str| {
        fs::read(out.join(file))
            .is_ok_and(|pem| not_after(&pem).is_some_and(|end| end > now + Duration::DAY))
    };
    out.join(MARKER).is_file() && lasts("server.pem") && lasts("tpp-both.pem")
}

fn not_after(pem: &[u8]) -> Option<OffsetDateTime> {
    let (_, pem) = x509_parser::pem::parse_x509_pem(pem).ok()?;
    Some(pem.parse_x509().ok()?.validity().not_after.to_datetime())
}

fn write_pair(out: &Path, stem: &str, issued: &Issued) -> io::Result<()> {
    write_public(&file(out, stem, "pem"), &issued.pem)?;
    write_with_mode(&file(out, stem, "key"), &issued.key_pem, 0o600)
}

fn file(out: &Path, stem: &str, extension: &str) -> PathBuf {
    out.join(format!("{stem}.{extension}"))
}

fn write_public(path: &Path, text: &str) -> io::Result<()> {
    write_with_mode(path, text, 0o644)
}

/// Creates a new file each time, because an existing file would keep its mode.
fn write_with_mode(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    remove(path)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    if text.starts_with("-----BEGIN ") {
        file.write_all(MARK.as_bytes())?;
    }
    file.write_all(text.as_bytes())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(fault),
        _ => Ok(()),
    }
}
