//! The revocation sources of a chain, and the revocation status from their answers.
//!
//! Invariants: "revoked" from one source outweighs all other answers. An answer signed by a delegated responder (RFC 6960, 4.2.2.2.1) or by
//! another key of the issuing CA (RFC 5280, 6.3.3 f) counts as "good" only while the signer's own certificate is known to be not revoked.
//! The status of the signer does not rest on such signers, so that no signer confirms itself. Deliberately not here: the choice of the
//! sources, which the cache makes, and asking them, which the engine does.

use super::{
    RevocationStatus, SourceFault,
    ocsp::Status,
    source::{NoAnswer, Source},
};
use portvakt_base::clock::Timestamp;
use std::{sync::Arc, time::Duration};

/// The revocation sources of each member of a chain, the end-entity certificate first; the anchor has none.
#[derive(Debug)]
pub struct ChainSources(pub(super) Box<[MemberSources]>);

/// The revocation sources of one member of a chain.
#[derive(Debug)]
pub(super) struct MemberSources {
    pub(super) serial: Box<[u8]>,
    pub(super) sources: Vec<Arc<Source>>,
}

impl ChainSources {
    /// Returns the sources if each member has at least one: without a source, the status of a member never becomes good.
    ///
    /// # Errors
    /// A member has none.
    pub(super) fn require_each_member(self) -> Result<Self, SourceFault> {
        if self.0.iter().any(|member| member.sources.is_empty()) {
            return Err(SourceFault::Invalid(
                "the revocation status of its signer's certificate cannot be known: there is neither a CRL for it nor, for a responder, id-pkix-ocsp-nocheck",
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
