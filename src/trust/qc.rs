//! QcStatements (RFC 3739, ETSI EN 319 412-5) and the PSD2 statement in them (ETSI TS 119 495): CRT-3 and CRT-4.
//!
//! Read strictly: a certificate that is nearly right is refused. The extension is a few dozen bytes of DER, read here
//! with a small reader of tags and lengths rather than a general one.

use super::{CertificateFault, Roles};

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

const SEQUENCE: u8 = 0x30;
const OID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;

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
    let mut statements = Der::sequence_in(extension)?;
    while !statements.is_empty() {
        let mut statement = Der(statements.take(SEQUENCE)?);
        match statement.take(OID)? {
            QC_COMPLIANCE => found.qualified = true,
            QC_TYPE => {
                let mut types = Der(statement.take(SEQUENCE)?);
                while !types.is_empty() {
                    let [.., kind] = types.take(OID)?.strip_prefix(QC_TYPE)? else {
                        return None;
                    };
                    found.eseal |= *kind == 2;
                    found.web |= *kind == 3;
                }
            }
            PSD2 => found.psd2 = Some(psd2(Der(statement.take(SEQUENCE)?))?),
            _ => {}
        }
    }
    Some(found)
}

fn psd2(mut statement: Der<'_>) -> Option<Psd2> {
    let mut roles = Roles::default();
    let mut list = Der(statement.take(SEQUENCE)?);
    while !list.is_empty() {
        let mut role = Der(list.take(SEQUENCE)?);
        if let Some([number]) = role.take(OID)?.strip_prefix(ROLE) {
            roles = roles.with(*number);
        }
        role.take(UTF8_STRING)?;
    }
    let mut text = || {
        String::from_utf8(statement.take(UTF8_STRING)?.to_vec())
            .ok()
            .filter(|text| !text.trim().is_empty())
    };
    Some(Psd2 {
        roles,
        nca_name: text()?,
        nca_id: text()?,
    })
}

/// The rest of a run of DER values.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The content of a SEQUENCE that is followed by nothing.
    fn sequence_in(bytes: &'a [u8]) -> Option<Self> {
        let mut outer = Self(bytes);
        let content = outer.take(SEQUENCE)?;
        outer.is_empty().then_some(Self(content))
    }

    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the content of the next value, which must have this tag.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        // The extension is short: a length of more than two bytes is none of ours.
        let (length, rest) = match (*first, rest) {
            (short @ 0..=0x7f, rest) => (usize::from(short), rest),
            (0x81, [length, rest @ ..]) if *length >= 0x80 => (usize::from(*length), rest),
            (0x82, [high, low, rest @ ..]) if *high > 0 => {
                (usize::from(u16::from_be_bytes([*high, *low])), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        (*found == tag).then_some(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, u8::try_from(content.len()).unwrap()], content].concat()
    }

    fn statement(role: u8, nca: &str) -> Vec<u8> {
        let role = tlv(
            SEQUENCE,
            &[
                tlv(OID, &[ROLE, &[role]].concat()),
                tlv(UTF8_STRING, b"PSP_XX"),
            ]
            .concat(),
        );
        let psd2 = [
            tlv(SEQUENCE, &role),
            tlv(UTF8_STRING, b"Finanstilsynet"),
            tlv(UTF8_STRING, nca.as_bytes()),
        ]
        .concat();
        tlv(SEQUENCE, &[tlv(OID, PSD2), tlv(SEQUENCE, &psd2)].concat())
    }

    fn eseal() -> Vec<u8> {
        let kind = tlv(SEQUENCE, &tlv(OID, &[QC_TYPE, &[2]].concat()));
        [
            tlv(SEQUENCE, &tlv(OID, QC_COMPLIANCE)),
            tlv(SEQUENCE, &[tlv(OID, QC_TYPE), kind].concat()),
        ]
        .concat()
    }

    #[test]
    fn a_seal_of_an_account_information_provider() {
        let statements =
            Statements::parse(&tlv(SEQUENCE, &[eseal(), statement(3, "NO-FSA")].concat())).unwrap();
        assert!(statements.qualified && statements.eseal && !statements.web);
        let psd2 = statements.psd2.unwrap();
        assert_eq!(psd2.nca_id, "NO-FSA");
        assert_eq!(psd2.roles.to_string(), "PSP_AI");
    }

    #[test]
    fn what_is_nearly_right_is_refused() {
        let good = tlv(SEQUENCE, &[eseal(), statement(3, "NO-FSA")].concat());
        let trailing = [&good[..], &[0]].concat();
        let without_outer = statement(3, "NO-FSA");
        let no_nca = tlv(SEQUENCE, &statement(3, " "));
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
