//! The revocation sources of a chain, and the revocation status from their answers.
//!
//! Invariants: "revoked" from one source outweighs all other answers. An answer signed by a delegated responder (RFC 6960, 4.2.2.2.1) or by
//! another key of the issuing CA (RFC 5280, 6.3.3 f) counts as "good" only while the signer's own certificate is known to be not revoked.
//! The status of the signer does not rest on such signers, so that no signer confirms itself. Deliberately not here: asking the sources,
//! which the engine does.

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

/// The number of sources in memory: a few for each cached certificate.
const SOURCES_KEPT: u64 = 20_000;

/// All sources, shared by requests and the thread of the engine.
#[derive(Debug)]
pub(super) struct SourceCache {
    settings: RevocationSettings,
    /// The issuer names (DER) of the CRLs in the settings, in the same order.
    list_issuers: Vec<Option<Vec<u8>>>,
    by_key: Cache<Key, Arc<Source>>,
    addresses: Cache<SourceUrl, Arc<AddressState>>,
}

/// The revocation sources of each member of a chain, the end-entity certificate first; the anchor has none.
#[derive(Debug)]
pub(crate) struct ChainSources(Box<[MemberSources]>);

/// The revocation sources of one member of a chain.
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

    /// All sources in memory.
    pub(super) fn all(&self) -> impl Iterator<Item = Arc<Source>> {
        self.by_key.iter().map(|(_, source)| source)
    }

    /// The sources of a chain, the anchor last.
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

    /// The sources of a responder's certificate (DER): CRLs only, because a responder's answer about itself proves nothing.
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

    /// A CRL as an answer, with the sources of its signer if another key than that of the issuing certificate signed it.
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

    /// Replaces the addresses in the certificate by the configured ones, if there are any for the issuer.
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

    /// The source for the first valid CRL of this issuer from the files of the settings.
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

    /// Reads only the CRLs with the name of the issuer, because the time to read a CRL grows with its length.
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
    /// Returns the sources if each member has one: without a source, a member never becomes good.
    fn that_tell(self) -> Result<Self, SourceFault> {
        if self.0.iter().any(|member| member.sources.is_empty()) {
            return Err(SourceFault::Invalid(
                "nobody tells whether its signer's certificate is revoked: there is neither a CRL for it nor, for a responder, id-pkix-ocsp-nocheck",
            ));
        }
        Ok(self)
    }

    /// The revocation status of the chain. `stale`: how long an answer counts after its nextUpdate.
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

    /// The sources to be asked for the members that are not known to be good, with the sources of their signers.
    pub(super) fn to_be_asked(&self, now: Timestamp, stale: Duration) -> Vec<Arc<Source>> {
        let members = self.0.iter();
        members
            .flat_map(|member| member.to_be_asked(now, stale))
            .collect()
    }
}

/// The revocation status of one member of a chain.
enum MemberStatus {
    Good,
    Revoked(Timestamp),
    /// A source that has never answered is being asked.
    Awaited,
    Unknown,
}

/// The answers of one kind of source, OCSP or CRL. One answer of a kind is enough, because each CRL is complete (RFC 5280, 4.2.1.13).
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
    /// The revocation status. "Revoked" outweighs all other answers at any age, unless the signer's certificate is itself revoked. OCSP
    /// and CRL do not replace each other (CRT-6): if the certificate names sources of one kind and none of them has ever answered, the
    /// status is unknown. An OCSP answer "unknown" makes the status unknown even if a CRL says "good".
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

    /// If the member is not known to be good: its sources without a current answer, and the sources of the signers of the others.
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
                // The answer is current: only the status of its signer is open.
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
