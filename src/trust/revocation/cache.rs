//! All sources, and the choice of those that tell the status of a certificate: the addresses that the operator sets for its issuer,
//! otherwise those in the certificate, and the CRLs from files.

use super::{
    RevocationSettings, SourceFault,
    answer::SourceAnswer,
    backoff::AddressState,
    crl::{Chain, Crl, Scope, Signers, certificate as read_certificate},
    fetch::SourceUrl,
    member::PublishedAddresses,
    question::{Key, Question},
    source::Source,
    sources::{ChainSources, MemberSources},
};
use moka::sync::Cache;
use openssl::x509::{X509, X509Name, X509Ref};
use portvakt_base::clock::Timestamp;
use std::{cmp::Ordering, sync::Arc};

/// The number of sources in memory: a few for each cached certificate.
const SOURCES_KEPT: u64 = 20_000;

/// All sources, shared by requests and the thread of the engine.
#[derive(Debug)]
pub(super) struct SourceCache {
    settings: RevocationSettings,
    /// The issuer names (DER) of the CRLs in the settings, in the same order.
    list_issuers: Vec<Option<Vec<u8>>>,
    /// The nextUpdate of each of these CRLs, with the name of its issuer for display.
    list_ends: Vec<(String, Timestamp)>,
    by_key: Cache<Key, Arc<Source>>,
    addresses: Cache<SourceUrl, Arc<AddressState>>,
}

impl SourceCache {
    pub(super) fn new(settings: RevocationSettings) -> Self {
        let lists = settings.lists.iter();
        Self {
            list_issuers: lists.clone().map(|list| Crl::issuer(list)).collect(),
            list_ends: lists
                .filter_map(|list| Crl::inspect(list).ok())
                .map(|(issuer, period)| (issuer, period.not_after))
                .collect(),
            settings,
            by_key: Cache::new(SOURCES_KEPT),
            addresses: Cache::new(SOURCES_KEPT),
        }
    }

    pub(super) const fn settings(&self) -> &RevocationSettings {
        &self.settings
    }

    /// The nextUpdate of each CRL in the settings, with the name of its issuer for display.
    pub(super) fn file_ends(&self) -> &[(String, Timestamp)] {
        &self.list_ends
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
        ChainSources(Box::new([member])).require_each_member()
    }

    /// A CRL as an answer, with the sources of its signer if another key than that of the issuing certificate signed it.
    pub(super) fn vouched(&self, list: Crl) -> Result<SourceAnswer, SourceFault> {
        let sources = |chain: &Chain| {
            let chain = chain.iter().map(|der| read_certificate(der));
            let chain = chain.collect::<Result<Vec<_>, _>>()?;
            self.sources(&chain, |_| Vec::new())?.require_each_member()
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
