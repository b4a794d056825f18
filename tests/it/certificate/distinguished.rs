//! One certificate has one spelling (CRT-1): each of its parts, written in another form of BER, is refused before anything is judged.

use super::showing;
use crate::harness::{Call, Gate, accepted, refused, world};
use openssl::base64::{decode_block, encode_block};
use portvakt::{
    clock::Timestamp,
    trust::{Anchors, CertificateFault, Trust},
};
use std::{fs, path::Path};

/// An element, as a writer of BER sees it.
struct Node {
    tag: u8,
    /// What stands before the members: the octet of unused bits of a BIT STRING.
    before: Vec<u8>,
    content: Vec<u8>,
    members: Vec<Node>,
}

/// Another form of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A length with one octet more than it needs.
    LongLength,
    /// A length of four octets.
    FourOctets,
    /// A length that is not said, with a mark at the end.
    NoLength,
    /// An integer with zeros before it.
    Padded,
    /// A true that is not FF.
    OtherTrue,
}

const FORMS: [Form; 5] = [
    Form::LongLength,
    Form::FourOctets,
    Form::NoLength,
    Form::Padded,
    Form::OtherTrue,
];

impl Node {
    /// Reads the elements in `der`; `None` if it is not made of elements.
    fn read(mut der: &[u8]) -> Option<Vec<Self>> {
        let mut nodes = Vec::new();
        while let [tag, first, rest @ ..] = der {
            let count = usize::from(first.saturating_sub(0x80));
            let length = match first {
                0..0x80 => usize::from(*first),
                _ => rest
                    .get(..count)?
                    .iter()
                    .fold(0, |sum, octet| sum << 8 | usize::from(*octet)),
            };
            let content = rest.get(count..count.checked_add(length)?)?;
            der = &rest[count + length..];
            nodes.push(Self::of(*tag, content)?);
        }
        der.is_empty().then_some(nodes)
    }

    fn of(tag: u8, content: &[u8]) -> Option<Self> {
        // A public key begins with a SEQUENCE, and so do most extensions; one is a BIT STRING, and one an OCTET STRING.
        let (before, inner) = match (tag, content) {
            (0x03, [0, inner @ ..]) if inner.first() == Some(&0x30) => (vec![0], Some(inner)),
            (0x04, inner) if matches!(inner.first(), Some(0x30 | 0x03 | 0x04)) => {
                (Vec::new(), Some(inner))
            }
            (tag, inner) if tag & 0x20 != 0 => (Vec::new(), Some(inner)),
            _ => (Vec::new(), None),
        };
        let members = inner.and_then(Self::read);
        // A signature or an identifier of a key can begin like an element.
        (members.is_some() || tag & 0x20 == 0).then(|| Self {
            tag,
            before,
            content: content.to_vec(),
            members: members.unwrap_or_default(),
        })
    }

    fn count(&self) -> usize {
        1 + self.members.iter().map(Self::count).sum::<usize>()
    }

    /// The element, with that of this number, depth first, in another form. `None` if that has no such form.
    fn write(&self, number: &mut usize, form: Form) -> Option<Vec<u8>> {
        let is_it = *number == 0;
        *number = number.wrapping_sub(1);
        let mut content = match self.members.is_empty() {
            true => self.content.clone(),
            false => {
                let members = self.members.iter().map(|one| one.write(number, form));
                let members: Option<Vec<_>> = members.collect();
                [self.before.clone(), members?.concat()].concat()
            }
        };
        if !is_it {
            return Some([&[self.tag][..], &length(content.len()), &content].concat());
        }
        let size = content.len();
        let octets = length(size);
        let length = match form {
            Form::LongLength if size < 0x80 => vec![0x81, octets[0]],
            Form::LongLength => [&[octets[0] + 1, 0], &octets[1..]].concat(),
            Form::FourOctets => [&[0x84][..], &u32::try_from(size).unwrap().to_be_bytes()].concat(),
            Form::NoLength if self.tag & 0x20 != 0 => {
                content.extend([0, 0]);
                vec![0x80]
            }
            Form::Padded if self.tag == 0x02 => {
                content.insert(0, 0);
                self::length(content.len())
            }
            Form::OtherTrue if self.tag == 0x01 => {
                content = vec![1];
                octets
            }
            _ => return None,
        };
        Some([&[self.tag][..], &length, &content].concat())
    }
}

/// The length of DER.
fn length(size: usize) -> Vec<u8> {
    match size {
        0..0x80 => vec![u8::try_from(size).unwrap()],
        0x80..0x100 => vec![0x81, u8::try_from(size).unwrap()],
        _ => [&[0x82][..], &u16::try_from(size).unwrap().to_be_bytes()].concat(),
    }
}

/// Every other spelling of a certificate in which one element has another form.
fn others(der: &[u8]) -> Vec<Vec<u8>> {
    let [node] = &Node::read(der).unwrap()[..] else {
        panic!("a certificate is one element");
    };
    let mut none = usize::MAX;
    let unchanged = node.write(&mut none, Form::LongLength);
    assert_eq!(unchanged.as_deref(), Some(der));
    let numbers = 0..node.count();
    let each = numbers.flat_map(|number| FORMS.map(|form| (number, form)));
    each.filter_map(|(mut number, form)| node.write(&mut number, form))
        .collect()
}

fn judge(trust: &Trust, der: &[u8]) -> Result<(), CertificateFault> {
    let now = Timestamp::from_unix(1_790_000_000);
    let presented = encode_block(der);
    trust.find(presented.as_bytes(), None, now).map(|_| ())
}

fn trust() -> Trust {
    Trust::new(Anchors::of_operator(Vec::new(), Vec::new()).unwrap())
}

//= CRT-1 refused
#[test]
fn every_part_in_another_form() {
    let trust = trust();
    let world = world();
    let certificates = [&world.both, &world.aisp, &world.pisp].map(|tpp| tpp.issued.der.clone());
    let mut count = 0;
    for der in &certificates {
        assert_eq!(judge(&trust, der), Ok(()));
        for other in others(der) {
            assert_ne!(other, *der);
            let fault = judge(&trust, &other).unwrap_err();
            assert!(matches!(fault, CertificateFault::NotDer(_)), "{fault}");
            let said = fault.to_string();
            assert!(said.starts_with("it is not DER: ") && said.contains(", at byte "));
            count += 1;
        }
    }
    println!("{count} spellings of {} certificates", certificates.len());
    assert!(count >= 500, "{count}");
    // A sample of them, at a gateway that knows the certificate.
    let gate = Gate::start();
    accepted(&gate, &Call::accounts());
    for other in others(&certificates[0]).iter().step_by(20) {
        let call = showing(Call::accounts(), &encode_block(other));
        let answer = refused(&gate, &call, 400, "FORMAT_ERROR", "certificate-malformed");
        let text = answer.json()["faults"][0]["text"].to_string();
        assert!(text.contains("it is not DER: "), "{text}");
    }
}

/// The certificates of trusted lists, where they lie beside this checkout, are DER.
//= CRT-1 accepted
#[test]
fn certificates_that_were_issued_are_der() {
    let trust = trust();
    for der in [world().root.der(), world().issuing.der()] {
        assert!(!matches!(
            judge(&trust, der),
            Err(CertificateFault::NotDer(_))
        ));
    }
    let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/trusted-lists");
    let Ok(folder) = fs::read_dir(&lists) else {
        return crate::harness::skipped("no trusted lists lie beside this checkout");
    };
    let mut count = 0;
    for file in folder.map(|file| file.unwrap().path()) {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        for part in text.split("X509Certificate>").skip(1).step_by(2) {
            let base64 = part.split('<').next().unwrap();
            let base64: String = base64.split_whitespace().collect();
            let der = decode_block(&base64).unwrap();
            let found = judge(&trust, &der);
            let is_der = !matches!(found, Err(CertificateFault::NotDer(_)));
            assert!(is_der, "{}: {found:?}", file.display());
            count += 1;
        }
    }
    println!("{count} certificates of trusted lists");
}
