//! QcStatements (RFC 3739, ETSI EN 319 412-5) and the PSD2 statement in them (ETSI TS 119 495): CRT-3 and CRT-4.
//!
//! Read strictly: a certificate that is nearly right is refused. The extension is a few dozen bytes of DER, read one
//! element at a time.

use super::{
    CertificateFault, Roles,
    der::{Element, tag},
};

/// The object identifier of the extension qcStatements, 1.3.6.1.5.5.7.1.3.
pub const EXTENSION: &str = "1.3.6.1.5.5.7.1.3";

/// 0.4.0.1862.1.1, the certificate is qualified.
const QC_COMPLIANCE: &[u8] = &[4, 0, 0x8e, 0x46, 1, 1];
/// 0.4.0.1862.1.6, its types.
const QC_TYPE: &[u8] = &[4, 0, 0x8e, 0x46, 1, 6];
/// 0.4.0.19495.2, the PSD2 statement.
const PSD2: &[u8] = &[4, 0, 0x81, 0x98, 0x27, 2];
/// 0.4.0.19495.1, to which one more number makes a role.
const ROLE: &[u8] = &[4, 0, 0x81, 0x98, 0x27, 1];

/// What the statements say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statements {
    /// Is QcCompliance there?
    pub qualified: bool,
    /// QcType names eseal.
    pub eseal: bool,
    /// QcType names web.
    pub web: bool,
    /// The PSD2 statement.
    pub psd2: Option<Psd2>,
}

/// The PSD2 statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Psd2 {
    /// The roles by their object identifiers; the names beside them do not count.
    pub roles: Roles,
    /// The name of the competent authority.
    pub nca_name: String,
    /// The id of the competent authority, such as `NO-FSA`.
    pub nca_id: String,
}

impl Statements {
    /// Reads the value of the extension.
    ///
    /// # Errors
    /// [`CertificateFault::NotPsd2`] where it is not the DER that the standards describe.
    pub fn parse(extension: &[u8]) -> Result<Self, CertificateFault> {
        read(extension).ok_or(CertificateFault::NotPsd2(
            "its QcStatements are not those of ETSI EN 319 412-5 and TS 119 495",
        ))
    }
}

fn read(extension: &[u8]) -> Option<Statements> {
    let mut found = Statements::default();
    let mut statements = Element::only(extension)?.content_of(tag::SEQUENCE)?;
    while !statements.is_empty() {
        let mut statement = take(&mut statements, tag::SEQUENCE)?;
        match take(&mut statement, tag::OBJECT_IDENTIFIER)? {
            QC_COMPLIANCE => found.qualified = true,
            QC_TYPE => types(last(statement, tag::SEQUENCE)?, &mut found)?,
            PSD2 => found.psd2 = Some(psd2(last(statement, tag::SEQUENCE)?)?),
            _ => {}
        }
    }
    Some(found)
}

fn types(mut list: &[u8], found: &mut Statements) -> Option<()> {
    while !list.is_empty() {
        let kind = take(&mut list, tag::OBJECT_IDENTIFIER)?.strip_prefix(QC_TYPE)?;
        found.eseal |= kind == [2];
        found.web |= kind == [3];
    }
    Some(())
}

fn psd2(mut statement: &[u8]) -> Option<Psd2> {
    let mut roles = Roles::default();
    let mut list = take(&mut statement, tag::SEQUENCE)?;
    while !list.is_empty() {
        let mut role = take(&mut list, tag::SEQUENCE)?;
        if let Some([number]) = take(&mut role, tag::OBJECT_IDENTIFIER)?.strip_prefix(ROLE) {
            roles = roles.with(*number);
        }
        // A role is one OID and one name: behind them nothing may stand that another reader would take for a second role.
        last(role, tag::UTF8_STRING)?;
    }
    let nca_name = text(take(&mut statement, tag::UTF8_STRING)?)?;
    let nca_id = text(last(statement, tag::UTF8_STRING)?)?;
    Some(Psd2 {
        roles,
        nca_name,
        nca_id,
    })
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

    #[test]
    fn a_seal_of_an_account_information_provider() {
        let statements = Statements::parse(&tlv(
            tag::SEQUENCE,
            &[eseal(), statement(3, "NO-FSA")].concat(),
        ))
        .unwrap();
        assert!(statements.qualified && statements.eseal && !statements.web);
        let psd2 = statements.psd2.unwrap();
        assert_eq!(psd2.nca_id, "NO-FSA");
        assert_eq!(psd2.roles.to_string(), "PSP_AI");
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
            assert!(Statements::parse(bad).is_err(), "{bad:02x?}");
        }
        for cut in 1..good.len() {
            assert!(Statements::parse(&good[..cut]).is_err());
        }
    }
}
