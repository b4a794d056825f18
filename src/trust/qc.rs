//! QcStatements (RFC 3739, ETSI EN 319 412-5) and the PSD2 statement in them (ETSI TS 119 495): CRT-3 and CRT-4.
//!
//! The reader is strict: any fault is an error, unless a tolerant policy accepts exactly this fault.

use super::{
    CertificateFault, CertificatePolicy, Roles,
    der::{Element, dotted, tag},
    tolerance::{Tolerance, Tolerated},
};

/// The object identifier of the extension qcStatements, 1.3.6.1.5.5.7.1.3.
pub const EXTENSION: &str = "1.3.6.1.5.5.7.1.3";

/// 0.4.0.1862.1.1: the certificate is qualified.
const QC_COMPLIANCE: &[u8] = &[4, 0, 0x8e, 0x46, 1, 1];
/// 0.4.0.1862.1.4: the private key is in a qualified device.
const QC_SSCD: &[u8] = &[4, 0, 0x8e, 0x46, 1, 4];
/// 0.4.0.1862.1.6: the types of the certificate.
const QC_TYPE: &[u8] = &[4, 0, 0x8e, 0x46, 1, 6];
/// 0.4.0.19495.2: the PSD2 statement.
const PSD2: &[u8] = &[4, 0, 0x81, 0x98, 0x27, 2];
/// 0.4.0.19495.1: the prefix of the roles; one more arc identifies the role.
const ROLE: &[u8] = &[4, 0, 0x81, 0x98, 0x27, 1];

/// The types of certificate that may sign requests (CRT-3): by default both. TLS-3 has the rules for the QWAC of a TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateTypes {
    /// Certificates for electronic seals, QcType eseal.
    pub eseal: bool,
    /// Certificates for website authentication, QcType web.
    pub web: bool,
}

impl CertificateTypes {
    /// That of TLS connections (TLS-3).
    pub const WEB: Self = Self {
        eseal: false,
        web: true,
    };
}

impl Default for CertificateTypes {
    fn default() -> Self {
        Self {
            eseal: true,
            web: true,
        }
    }
}

/// The content of the extension qcStatements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QcStatements {
    /// QcCompliance is present.
    pub qualified: bool,
    /// QcSSCD is present: the certificate says that its private key is in a qualified device. No rule judges it.
    pub sscd: bool,
    /// QcType names eseal.
    pub eseal: bool,
    /// QcType names web.
    pub web: bool,
    /// The PSD2 statement.
    pub psd2: Option<Psd2Statement>,
}

/// The PSD2 statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Psd2Statement {
    /// The roles, by object identifier; the role names are ignored.
    pub roles: Roles,
    /// The object identifier of the first role that is none of ETSI TS 119 495, in dotted decimal.
    pub unknown_role: Option<String>,
    /// The name of the competent authority.
    pub nca_name: String,
    /// The id of the competent authority, such as `NO-FSA`.
    pub nca_id: String,
}

impl QcStatements {
    /// Reads the value of the extension.
    ///
    /// # Errors
    /// [`CertificateFault::NotPsd2`] if the value does not have the form of the standards.
    pub fn parse(extension: &[u8]) -> Result<Self, CertificateFault> {
        Self::parse_by(extension, &mut Tolerance::of(CertificatePolicy::Strict))
    }

    /// The same, but accepts the faults that a policy tolerates.
    pub(crate) fn parse_by(
        extension: &[u8],
        tolerance: &mut Tolerance,
    ) -> Result<Self, CertificateFault> {
        read(extension, tolerance).ok_or(CertificateFault::NotPsd2(
            "its QcStatements are not those of ETSI EN 319 412-5 and TS 119 495".into(),
        ))
    }
}

fn read(extension: &[u8], tolerance: &mut Tolerance) -> Option<QcStatements> {
    let (mut found, mut typed) = (QcStatements::default(), false);
    let mut statements = Element::only(extension)?.content_of(tag::SEQUENCE)?;
    if begins_with_identifier(statements) {
        tolerance.allows(Tolerated::StatementUnwrapped)?;
        statements = extension;
    }
    while !statements.is_empty() {
        let mut statement = take(&mut statements, tag::SEQUENCE)?;
        match take(&mut statement, tag::OBJECT_IDENTIFIER)? {
            QC_COMPLIANCE => found.qualified = true,
            QC_SSCD => found.sscd = true,
            // Two statements of one kind are ambiguous: another reader may use the other one.
            QC_TYPE if typed => return None,
            PSD2 if found.psd2.is_some() => return None,
            QC_TYPE => {
                types(last(statement, tag::SEQUENCE)?, &mut found)?;
                typed = true;
            }
            PSD2 => {
                found.psd2 = Some(psd2(last(statement, tag::SEQUENCE)?, tolerance)?);
            }
            _ => {}
        }
    }
    Some(found)
}

fn types(mut list: &[u8], found: &mut QcStatements) -> Option<()> {
    while !list.is_empty() {
        let kind = take(&mut list, tag::OBJECT_IDENTIFIER)?.strip_prefix(QC_TYPE)?;
        found.eseal |= kind == [2];
        found.web |= kind == [3];
    }
    Some(())
}

fn psd2(mut statement: &[u8], tolerance: &mut Tolerance) -> Option<Psd2Statement> {
    let mut found = RolesFound::default();
    let mut list = take(&mut statement, tag::SEQUENCE)?;
    if begins_with_identifier(list) {
        tolerance.allows(Tolerated::RolesFlattened)?;
        while !list.is_empty() {
            found.take_role(&mut list)?;
        }
    }
    while !list.is_empty() {
        let mut one = take(&mut list, tag::SEQUENCE)?;
        found.take_role(&mut one)?;
        // A role is one OID and one name. Another reader could take anything after them for a second role.
        if !one.is_empty() {
            return None;
        }
    }
    let nca_name = text(take(&mut statement, tag::UTF8_STRING)?)?;
    let nca_id = text(last(statement, tag::UTF8_STRING)?)?;
    Some(Psd2Statement {
        roles: found.roles,
        unknown_role: found.unknown,
        nca_name,
        nca_id,
    })
}

/// The roles read so far.
#[derive(Default)]
struct RolesFound {
    roles: Roles,
    unknown: Option<String>,
}

impl RolesFound {
    /// Reads the next role. The name beside the object identifier is ignored.
    fn take_role(&mut self, list: &mut &[u8]) -> Option<()> {
        let identifier = take(list, tag::OBJECT_IDENTIFIER)?;
        take(list, tag::UTF8_STRING)?;
        let role = match identifier.strip_prefix(ROLE) {
            Some([number]) => Roles::default().with(*number),
            _ => Roles::default(),
        };
        if role.is_empty() && self.unknown.is_none() {
            self.unknown = dotted(identifier);
        }
        self.roles = self.roles.or(role);
        Some(())
    }
}

/// Whether an object identifier stands where a SEQUENCE belongs.
fn begins_with_identifier(content: &[u8]) -> bool {
    content.first() == Some(&tag::OBJECT_IDENTIFIER)
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec())
        .ok()
        .filter(|text| !text.trim().is_empty())
}

/// The content of the only element that is left, which must have this tag.
fn last(rest: &[u8], tag: u8) -> Option<&[u8]> {
    Element::only(rest)?.content_of(tag)
}

/// Takes the content of the next element, which must have this tag.
fn take<'a>(rest: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    Element::take(rest)?.content_of(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, u8::try_from(content.len()).unwrap()], content].concat()
    }

    fn statement(role: u8, nca: &str) -> Vec<u8> {
        let role = tlv(
            tag::SEQUENCE,
            &[
                tlv(tag::OBJECT_IDENTIFIER, &[ROLE, &[role]].concat()),
                tlv(tag::UTF8_STRING, b"PSP_XX"),
            ]
            .concat(),
        );
        let psd2 = [
            tlv(tag::SEQUENCE, &role),
            tlv(tag::UTF8_STRING, b"Finanstilsynet"),
            tlv(tag::UTF8_STRING, nca.as_bytes()),
        ]
        .concat();
        tlv(
            tag::SEQUENCE,
            &[tlv(tag::OBJECT_IDENTIFIER, PSD2), tlv(tag::SEQUENCE, &psd2)].concat(),
        )
    }

    fn eseal() -> Vec<u8> {
        let kind = tlv(
            tag::SEQUENCE,
            &tlv(tag::OBJECT_IDENTIFIER, &[QC_TYPE, &[2]].concat()),
        );
        [
            tlv(tag::SEQUENCE, &tlv(tag::OBJECT_IDENTIFIER, QC_COMPLIANCE)),
            tlv(
                tag::SEQUENCE,
                &[tlv(tag::OBJECT_IDENTIFIER, QC_TYPE), kind].concat(),
            ),
        ]
        .concat()
    }

    //= ERR-10 refused
    #[test]
    fn a_role_that_portvakt_does_not_know_is_a_role() {
        let parse = |role| {
            let statements = [eseal(), statement(role, "NO-FSA")].concat();
            let parsed = QcStatements::parse(&tlv(tag::SEQUENCE, &statements)).unwrap();
            crate::judgement::roles(&parsed.psd2.unwrap())
        };
        assert_eq!(parse(3), Ok(()));
        let said = parse(9).unwrap_err().to_string();
        assert!(
            said.contains("the role 0.4.0.19495.1.9 alone") && !said.contains("no role"),
            "{said}"
        );
    }

    #[test]
    fn a_seal_of_an_account_information_provider() {
        let statements = QcStatements::parse(&tlv(
            tag::SEQUENCE,
            &[eseal(), statement(3, "NO-FSA")].concat(),
        ))
        .unwrap();
        assert!(statements.qualified && statements.eseal && !statements.web);
        assert!(!statements.sscd);
        let psd2 = statements.psd2.unwrap();
        assert_eq!(psd2.nca_id, "NO-FSA");
        assert_eq!(psd2.roles.to_string(), "PSP_AI");
    }

    #[test]
    fn the_key_is_in_a_device() {
        let device = tlv(tag::SEQUENCE, &tlv(tag::OBJECT_IDENTIFIER, QC_SSCD));
        let all = tlv(tag::SEQUENCE, &[eseal(), device].concat());
        let read = QcStatements::parse(&all).unwrap();
        assert!(read.sscd && read.qualified && read.eseal, "{read:?}");
    }

    /// Reads the extension by a tolerant policy: the tolerated faults and the roles, or `None` if the extension is refused.
    fn tolerated(extension: &[u8]) -> Option<(Vec<&'static str>, String)> {
        let mut tolerance = Tolerance::of(CertificatePolicy::Tolerant);
        let found = QcStatements::parse_by(extension, &mut tolerance).ok()?;
        let names = tolerance.used().iter().map(Tolerated::name).collect();
        Some((names, found.psd2?.roles.to_string()))
    }

    #[test]
    fn shapes_that_test_certificates_have() {
        let identifier = |number| tlv(tag::OBJECT_IDENTIFIER, &[ROLE, &[number]].concat());
        let name = |text: &str| tlv(tag::UTF8_STRING, text.as_bytes());
        let psd2 = |roles: &[u8], nca: &str| {
            let info = [tlv(tag::SEQUENCE, roles), name("NCA"), name(nca)].concat();
            let psd2 = [tlv(tag::OBJECT_IDENTIFIER, PSD2), tlv(tag::SEQUENCE, &info)];
            tlv(tag::SEQUENCE, &psd2.concat())
        };
        let whole = |statement: &[u8]| tlv(tag::SEQUENCE, &[&eseal(), statement].concat());
        let one = tlv(tag::SEQUENCE, &[identifier(3), name("PSP_AI")].concat());
        let flat = [identifier(2), name("PSP_PI"), identifier(3), name("PSP_AI")].concat();
        let right = [
            // The object identifier counts, not the name beside it.
            tlv(tag::SEQUENCE, &[identifier(3), name("PSP_PI")].concat()),
            tlv(
                tag::SEQUENCE,
                &[identifier(3), name("Account Information")].concat(),
            ),
            // PSP_CB and PSP_PA permit nothing in this interface.
            [
                tlv(tag::SEQUENCE, &[identifier(5), name("PSP_CB")].concat()),
                one.clone(),
            ]
            .concat(),
        ];
        for (roles, read) in right.into_iter().zip(["PSP_AI", "PSP_AI", "PSP_AI,PSP_CB"]) {
            let extension = whole(&psd2(&roles, "NO-FSA"));
            assert!(QcStatements::parse(&extension).is_ok());
            assert_eq!(tolerated(&extension), Some((vec![], read.into())));
        }
        let malformed = [
            (
                whole(&psd2(&flat, "NO-FSA")),
                vec!["roles-flattened"],
                "PSP_PI,PSP_AI",
            ),
            (psd2(&one, "NO-FSA"), vec!["statement-unwrapped"], "PSP_AI"),
            (
                psd2(&flat, "NO-FSA"),
                vec!["statement-unwrapped", "roles-flattened"],
                "PSP_PI,PSP_AI",
            ),
        ];
        for (extension, names, roles) in malformed {
            assert!(QcStatements::parse(&extension).is_err(), "{names:?}");
            assert_eq!(tolerated(&extension), Some((names, roles.into())));
        }
        // A policy does not tolerate an ambiguous statement.
        let half = [identifier(2), name("PSP_PI"), identifier(3)].concat();
        let two_in_one = tlv(tag::SEQUENCE, &flat);
        for extension in [
            whole(&psd2(&half, "NO-FSA")),
            whole(&psd2(&two_in_one, "NO-FSA")),
            whole(&psd2(&one, " ")),
            vec![0x30, 0],
        ] {
            assert_eq!(tolerated(&extension), None);
        }
    }

    #[test]
    fn a_statement_that_stands_twice_is_refused() {
        let whole = |statements: &[Vec<u8>]| tlv(tag::SEQUENCE, &statements.concat());
        let [ai, pi] = [statement(3, "NO-FSA"), statement(2, "NO-FSA")];
        let kind = tlv(
            tag::SEQUENCE,
            &tlv(tag::OBJECT_IDENTIFIER, &[QC_TYPE, &[3]].concat()),
        );
        let web = [tlv(tag::OBJECT_IDENTIFIER, QC_TYPE), kind].concat();
        let web = tlv(tag::SEQUENCE, &web);
        let once = whole(&[eseal(), ai.clone()]);
        assert!(QcStatements::parse(&once).is_ok());
        for twice in [
            whole(&[eseal(), ai.clone(), pi]),
            whole(&[eseal(), ai.clone(), ai.clone()]),
            whole(&[eseal(), web, ai]),
        ] {
            assert!(QcStatements::parse(&twice).is_err());
            assert_eq!(tolerated(&twice), None);
        }
    }

    #[test]
    fn what_is_nearly_right_is_refused() {
        let good = tlv(tag::SEQUENCE, &[eseal(), statement(3, "NO-FSA")].concat());
        let trailing = [&good[..], &[0]].concat();
        let without_outer = statement(3, "NO-FSA");
        let no_nca = tlv(tag::SEQUENCE, &statement(3, " "));
        for bad in [
            &trailing[..],
            &without_outer,
            &no_nca,
            &[],
            &[0x30],
            &[0x30, 0x81, 0x01, 0x00],
            &[0x30, 0x84, 1, 1, 1, 1],
        ] {
            assert!(QcStatements::parse(bad).is_err(), "{bad:02x?}");
        }
        for cut in 1..good.len() {
            assert!(QcStatements::parse(&good[..cut]).is_err());
        }
    }
}
