//! Which sources tell whether a certificate is revoked, and what is known from them at a moment.
//!
//! Invariants: a source that says "revoked" outweighs all others; what was signed by another than the issuing CA's very key, a responder's
//! (RFC 6960, 4.2.2.2.1) or another key of the same CA's (RFC 5280, 6.3.3 f), says "good" only while it is known that the signer's own
//! certificate is not revoked. That is judged without signers of this kind, so that nothing vouches for itself. Deliberately not here:
//! asking, which is the engine's.

use super::{
    RevocationSettings, RevocationStatus, SourceFault,
    backoff::AddressState,
    crl::{Chain, Crl, Scope, Signers, certificate as read_certificate},
    fetch::SourceUrl,
    member::PublishedAddresses,
    ocsp::Status,
    question::{Key, Question, SourceAnswer},
    source::{NoAnswer, Source},
};
use crate::clock::Timestamp;
use moka::sync::Cache;
use openssl::x509::{X509, X509Name, X509Ref};
use std::{cmp::Ordering, sync::Arc, time::Duration};

/// How many sources are kept: a few for each certificate that is kept ready.
const SOURCES_KEPT: u64 = 20_000;

/// Every source, shared by the requests that rest on it and the thread that asks it.
#[derive(Debug)]
pub(super) struct SourceCache {
    settings: RevocationSettings,
    /// The names (DER) of the issuers of the settings' lists, in their order.
    list_issuers: Vec<Option<Vec<u8>>>,
    by_key: Cache<Key, Arc<Source>>,
    addresses: Cache<SourceUrl, Arc<AddressState>>,
}

/// Where the revocation of each member of a chain is known from, the certificate's own first; the anchor has none.
#[derive(Debug)]
pub(crate) struct ChainSources(Box<[MemberSources]>);

/// Where the revocation of one certificate is known from.
#[derive(Debug)]
pub(super) struct MemberSources {
    serial: Box<[u8]>,
    sources: Vec<Arc<Source>>,
}

impl SourceCache {
    pub(super) fn new(settings: RevocationSettings) -> Self {
        let lists = settings.lists.iter();
        Self {
            list_issuers: lists.map(|list| Crl::issuer(list)).collect(),
            settings,
            by_key: Cache::new(SOURCES_KEPT),
            addresses: Cache::new(SOURCES_KEPT),
        }
    }

    pub(super) const fn settings(&self) -> &RevocationSettings {
        &self.settings
    }

    /// Every source that is kept.
    pub(super) fn all(&self) -> impl Iterator<Item = Arc<Source>> {
        self.by_key.iter().map(|(_, source)| source)
    }

    /// Those of a chain, the anchor last.
    pub(super) fn sources(
        &self,
        chain: &[X509],
        others: impl Fn(&X509Ref) -> Vec<Chain>,
    ) -> Result<ChainSources, SourceFault> {
        let pairs = chain.iter().zip(chain.iter().skip(1));
        pairs
            .map(|(certificate, issuer)| self.member(certificate, issuer, others(issuer)))
            .collect::<Result<_, _>>()
            .map(ChainSources)
    }

    /// Those of the certificate of a responder (DER): lists only, for what a responder says of itself proves nothing.
    pub(super) fn of_responder(
        &self,
        certificate: &[u8],
        issuer: &X509Ref,
    ) -> Result<ChainSources, SourceFault> {
        let mut published = PublishedAddresses::of(certificate)?;
        self.configure(&mut published, issuer);
        let above = issuer
            .to_der()
            .map_err(|_| SourceFault::Invalid("OpenSSL cannot write the certificate"))?;
        let signers = Signers::new(above.into(), Vec::new());
        let member = self.member_of(published, None, issuer, &signers);
        ChainSources(Box::new([member])).that_tell()
    }

    /// What a list says, and where the revocation of its signer is known from, if that is another than the issuing CA's very key.
    pub(super) fn vouched(&self, list: Crl) -> Result<SourceAnswer, SourceFault> {
        let sources = |chain: &Chain| {
            let chain = chain.iter().map(|der| read_certificate(der));
            let chain = chain.collect::<Result<Vec<_>, _>>()?;
            self.sources(&chain, |_| Vec::new())?.that_tell()
        };
        let signer = list.signer.as_ref().map(sources).transpose()?;
        Ok(SourceAnswer::Crl(list, signer))
    }

    fn member(
        &self,
        certificate: &X509Ref,
        issuer: &X509Ref,
        others: Vec<Chain>,
    ) -> Result<MemberSources, SourceFault> {
        let der = |certificate: &X509Ref| {
            certificate
                .to_der()
                .map(Arc::<[u8]>::from)
                .map_err(|_| SourceFault::Invalid("OpenSSL cannot write the certificate"))
        };
        let (own, above) = (der(certificate)?, der(issuer)?);
        let mut published = PublishedAddresses::of(&own)?;
        self.configure(&mut published, issuer);
        let signers = Signers::new(above, others);
        Ok(self.member_of(published, Some(own), issuer, &signers))
    }

    /// The operator's addresses take the place of those in the certificate.
    fn configure(&self, published: &mut PublishedAddresses, issuer: &X509Ref) {
        let key = |certificate: &X509Ref| {
            certificate
                .public_key()
                .and_then(|key| key.public_key_to_der())
                .ok()
        };
        for of in &self.settings.addresses {
            let name = of.issuer.subject_name();
            if key(&of.issuer) != key(issuer)
                || !name
                    .try_cmp(issuer.subject_name())
                    .is_ok_and(Ordering::is_eq)
            {
                continue;
            }
            if let Some(addresses) = &of.ocsp {
                published.ocsp.clone_from(addresses);
            }
            if let Some(addresses) = &of.crl {
                published.crls.clone_from(addresses);
            }
        }
    }

    fn member_of(
        &self,
        published: PublishedAddresses,
        certificate: Option<Arc<[u8]>>,
        issuer: &X509Ref,
        signers: &Signers,
    ) -> MemberSources {
        let ask =
            |question: Question| move |address: SourceUrl| self.source(address, question.clone());
        let ocsp = certificate.map(|certificate| {
            let question = Question::Ocsp {
                certificate,
                signers: signers.clone(),
            };
            published.ocsp.into_iter().map(ask(question))
        });
        let list = Question::Crl {
            signers: signers.clone(),
            scope: published.scope,
        };
        let files = self.files(issuer, &list);
        let crls = published.crls.into_iter().map(ask(list));
        MemberSources {
            serial: published.serial,
            sources: ocsp
                .into_iter()
                .flatten()
                .chain(crls)
                .chain(files)
                .collect(),
        }
    }

    fn source(&self, address: SourceUrl, question: Question) -> Arc<Source> {
        let address_state = self.addresses.get_with(address.clone(), Arc::default);
        let key = (Some(address), question);
        self.by_key
            .get_with(key.clone(), || Arc::new(Source::new(key, address_state)))
    }

    /// The files' list for this issuer: the first that counts.
    fn files(&self, issuer: &X509Ref, question: &Question) -> Option<Arc<Source>> {
        let Question::Crl { signers, scope } = question else {
            return None;
        };
        if self.settings.lists.is_empty() {
            return None;
        }
        let key = (None, question.clone());
        if let Some(known) = self.by_key.get(&key) {
            return Some(known);
        }
        let answer = self.listed(issuer, signers, scope)?;
        let source = Arc::new(Source::of_file(key.clone(), answer));
        self.by_key.insert(key, Arc::clone(&source));
        Some(source)
    }

    /// Reading a list costs as much as it is long: only those in the issuer's name are.
    fn listed(&self, issuer: &X509Ref, signers: &Signers, scope: &Scope) -> Option<SourceAnswer> {
        let name = issuer.subject_name();
        let is_same = |of: &Vec<u8>| {
            let of = X509Name::from_der(of);
            of.is_ok_and(|of| of.try_cmp(name).is_ok_and(Ordering::is_eq))
        };
        let lists = self.settings.lists.iter().zip(&self.list_issuers);
        lists
            .filter(|(_, of)| of.as_ref().is_some_and(is_same))
            .find_map(|(list, _)| self.vouched(Crl::read(list, signers, scope).ok()?).ok())
    }
}

impl ChainSources {
    /// These, if there are any for each member: others would never be known to be good.
    fn that_tell(self) -> Result<Self, SourceFault> {
        if self.0.iter().any(|member| member.sources.is_empty()) {
            return Err(SourceFault::Invalid(
                "nobody tells whether its signer's certificate is revoked: there is neither a CRL for it nor, for a responder, id-pkix-ocsp-nocheck",
            ));
        }
        Ok(self)
    }

    /// What is known of a chain at a moment. `stale`: how long what was said counts beyond its nextUpdate.
    pub(super) fn standing(&self, now: Timestamp, stale: Duration) -> RevocationStatus {
        let mut standing = RevocationStatus::Good;
        for (depth, member) in self.0.iter().enumerate() {
            let known = match member.standing(now, stale) {
                MemberStatus::Good => continue,
                MemberStatus::Revoked(since) => return RevocationStatus::Revoked { depth, since },
                MemberStatus::Awaited => RevocationStatus::Awaited { depth },
                MemberStatus::Unknown => RevocationStatus::Unknown { depth },
            };
            standing = standing.worse(known);
        }
        standing
    }

    /// The sources that have yet to say whether a member is good, those of their signers among them: none where every member is.
    pub(super) fn to_be_asked(&self, now: Timestamp, stale: Duration) -> Vec<Arc<Source>> {
        let members = self.0.iter();
        members
            .flat_map(|member| member.to_be_asked(now, stale))
            .collect()
    }
}

/// What is known of a certificate.
enum MemberStatus {
    Good,
    Revoked(Timestamp),
    /// A source that never answered is being asked.
    Awaited,
    Unknown,
}

/// Sources of one kind: any responder answers for the others, and so does any list, for each is complete (RFC 5280, 4.2.1.13).
#[derive(Clone, Copy, Default)]
struct KindAnswers {
    has_answered: bool,
    is_silent: bool,
}

impl KindAnswers {
    const fn is_missing(self) -> bool {
        self.is_silent && !self.has_answered
    }
}

impl MemberSources {
    /// What is known. A source that says "revoked" outweighs all others, however old it is: it was said, and nobody took it back. Only
    /// a signer that is itself revoked is not listened to. "Good" is said by none for the others (CRT-6): where a responder or a list is
    /// named and none of that kind ever answered, nothing is known; and an answer of "unknown" is not good, whatever a list says.
    fn standing(&self, now: Timestamp, stale: Duration) -> MemberStatus {
        let (mut is_good, mut is_in_doubt) = (false, false);
        let (mut is_awaited, mut is_signer_awaited) = (false, false);
        let (mut lists, mut responders) = (KindAnswers::default(), KindAnswers::default());
        for source in &self.sources {
            source.touch(now);
            let kind = if source.is_list() {
                &mut lists
            } else {
                &mut responders
            };
            let answer = source.answer();
            let Some(answer) = answer.as_ref() else {
                match source.no_answer() {
                    NoAnswer::Awaited => is_awaited = true,
                    NoAnswer::Failed => kind.is_silent = true,
                    NoAnswer::Unasked => is_in_doubt = true,
                }
                continue;
            };
            kind.has_answered = true;
            let signer = answer.signer().map(|own| own.standing(now, stale));
            if matches!(signer, Some(RevocationStatus::Revoked { .. })) {
                continue;
            }
            match answer.status(&self.serial) {
                Status::Revoked(since) => return MemberStatus::Revoked(since),
                Status::Unknown => is_in_doubt = true,
                Status::Good if now > answer.counts_until(stale) => {}
                Status::Good => match signer {
                    None | Some(RevocationStatus::Good) => is_good = true,
                    Some(RevocationStatus::Awaited { .. }) => is_signer_awaited = true,
                    Some(_) => {}
                },
            }
        }
        if is_awaited || is_signer_awaited && !is_good {
            return MemberStatus::Awaited;
        }
        if is_good && !is_in_doubt && !lists.is_missing() && !responders.is_missing() {
            return MemberStatus::Good;
        }
        MemberStatus::Unknown
    }

    /// Where it is not known to be good: its sources that have nothing to say now, and those of the signers of the others.
    fn to_be_asked(&self, now: Timestamp, stale: Duration) -> Vec<Arc<Source>> {
        if matches!(
            self.standing(now, stale),
            MemberStatus::Good | MemberStatus::Revoked(_)
        ) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for source in &self.sources {
            match source.answer().as_ref() {
                // It is not to be asked again: only its signer is in doubt.
                Some(answer)
                    if now <= answer.next_update()
                        && answer.status(&self.serial) != Status::Unknown =>
                {
                    let signer = answer.signer().map(|own| own.to_be_asked(now, stale));
                    found.extend(signer.unwrap_or_default());
                }
                _ => found.push(Arc::clone(source)),
            }
        }
        found
    }
}
