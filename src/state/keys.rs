//! Keyed hashes, which a store has in place of a PSU-ID, an account, a session id or a request id.
//!
//! The hash is HMAC-SHA-256, truncated to 128 bits, over the kind of the value and its parts, each with its length before it: different
//! values never have the same input. Without the key nobody can find out which PSU a row belongs to, not even by trying all national
//! identity numbers or all known UUIDs. Invariant: the key is never shown.

use super::{
    AccountHash, BlockHash, BlockScope, CorporateHash, CustomerHash, CustomerKey, EventKind, Hash,
    Known, ListHash, MoveHash, Named, PsuHash, QuotaHash, ReportHash, RequestHash, SessionHash,
    SoughtPsu, TokenHash, customer::NamedCustomer, event_key::EventKey,
};
use aws_lc_rs::hmac;
use portvakt_interface::{
    ForbiddenTpp, TppId,
    headers::{CorporateId, PsuId, RequestId, SessionId},
};
use std::fmt;

/// The key of a store's hashes, and the bank's key for customers in events.
pub struct Keys(hmac::Key, Option<EventKey>);

impl Keys {
    /// Keys from 32 secret bytes.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret), None)
    }

    /// The same, with the key for customers in events (CTL-3).
    pub(super) fn with_customers(self, key: Option<EventKey>) -> Self {
        Self(self.0, key)
    }

    /// The hash of a PSU by its PSU-ID, independent of its TPP (SCA-19).
    pub fn psu(&self, psu: Known<PsuId>) -> PsuHash {
        self.hash(b"psu", &[&psu.get().to_be_bytes()])
    }

    /// The hash of a corporate agreement by its PSU-Corporate-ID.
    pub fn corporate(&self, corporate: Known<CorporateId>) -> CorporateHash {
        self.hash(b"corporate", &[&corporate.get().to_be_bytes()])
    }

    /// The hash of the bank's own key for its customer (CTL-1).
    pub(super) fn customer(&self, customer: &CustomerKey) -> CustomerHash {
        self.hash(b"customer", &[customer.as_bytes()])
    }

    /// A customer as it is stored: by the hash, and as events name it if there is a key for it (CTL-3).
    pub(super) fn named_customer(&self, customer: &CustomerKey) -> NamedCustomer {
        let key = self.1.as_ref();
        NamedCustomer {
            customer: self.customer(customer),
            pseudonym: key.map(|key| key.pseudonym(customer.as_bytes())),
        }
    }

    /// The key of the mark of an observation (CTL-3).
    pub(super) fn observed(&self, kind: EventKind, tpp: &TppId, subject: &str) -> TokenHash {
        let parts = [kind.name().as_bytes(), tpp.as_bytes(), subject.as_bytes()];
        self.hash(b"observed", &parts)
    }

    /// The hash of a TPP-Session-ID of a TPP.
    pub fn session(&self, tpp: &TppId, session: &SessionId) -> SessionHash {
        self.hash(b"session", &[tpp.as_bytes(), session.as_bytes()])
    }

    /// The hash of an account by its percent-decoded id (QUO-15).
    pub fn account(&self, account: &str) -> AccountHash {
        self.hash(b"account", &[account.as_bytes()])
    }

    /// The hash of an X-Request-ID of a TPP (REP-1).
    pub fn request(&self, tpp: &TppId, id: &RequestId) -> RequestHash {
        self.hash(b"request", &[tpp.as_bytes(), id.as_bytes()])
    }

    /// The key of a quota (QUO-15): TPP, PSU, corporate id if any, account, operation, and the transaction if details are counted per
    /// transaction.
    pub fn quota(
        &self,
        tpp: &TppId,
        psu: Known<PsuId>,
        corporate: Option<Known<CorporateId>>,
        operation: &str,
        resources: &[&str],
    ) -> QuotaHash {
        let psu = psu.get().to_be_bytes();
        let corporate = corporate.map(|id| id.get().to_be_bytes());
        let corporate = corporate.as_ref().map_or(&[][..], |bytes| bytes);
        let mut parts = vec![tpp.as_bytes(), &psu, corporate, operation.as_bytes()];
        parts.extend(resources.iter().map(|resource| resource.as_bytes()));
        self.hash(b"quota", &parts)
    }

    /// The key of a quota while PSU or agreement is not known (SCA-22): TPP, operation, account, and the transaction if details are
    /// counted per transaction.
    pub fn quota_of_account(&self, tpp: &TppId, operation: &str, resources: &[&str]) -> QuotaHash {
        let mut parts = vec![tpp.as_bytes(), operation.as_bytes()];
        parts.extend(resources.iter().map(|resource| resource.as_bytes()));
        self.hash(b"quota of account", &parts)
    }

    /// The hash of a list that is read page by page (QUO-13): its quota, and its query without offset and limit.
    pub fn list(&self, quota: QuotaHash, query: &str) -> ListHash {
        self.hash(b"list", &[quota.as_bytes(), query.as_bytes()])
    }

    /// The hash by which a PSU is sought among the blocks (CTL-2), whoever names it.
    pub fn sought(&self, psu: Named<PsuId>) -> SoughtPsu {
        SoughtPsu(self.psu(psu.to_seek()))
    }

    /// The key of a block (CTL-2): the TPP in any spelling, and the scope.
    pub fn block(&self, tpp: &ForbiddenTpp, scope: BlockScope) -> BlockHash {
        let psu = scope.psu();
        let psu = psu.as_ref().map_or(&[][..], |psu| psu.as_bytes());
        let (tpp, scope) = (tpp.as_str().as_bytes(), scope.name().as_bytes());
        self.hash(b"block", &[tpp, scope, psu])
    }

    /// The key of a move (CTL-4): exactly this TPP.
    pub(super) fn moved(&self, from: &TppId) -> MoveHash {
        self.hash(b"moved", &[from.as_bytes()])
    }

    /// The hash of the report of a completed SCA (SCA-12), by its parts.
    pub fn completed(&self, parts: &[&[u8]]) -> ReportHash {
        self.hash(b"completed", parts)
    }

    /// The hash of the report of a failed SCA (SCA-12), by its parts.
    pub fn failed(&self, parts: &[&[u8]]) -> ReportHash {
        self.hash(b"failed", parts)
    }

    /// A value that identifies the key.
    fn check(&self) -> [u8; 16] {
        *self.hash::<()>(b"key check", &[]).as_bytes()
    }

    /// The same value as text, as it is stored beside the rows.
    pub(super) fn check_value(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.check()))
    }

    fn hash<K>(&self, kind: &[u8], parts: &[&[u8]]) -> Hash<K> {
        let mut context = hmac::Context::with_key(&self.0);
        for part in std::iter::once(&kind).chain(parts) {
            let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
            context.update(&length.to_be_bytes());
            context.update(part);
        }
        let tag = context.sign();
        let mut short = [0; 16];
        short
            .iter_mut()
            .zip(tag.as_ref())
            .for_each(|(to, from)| *to = *from);
        Hash::from_bytes(short)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Keys(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn different_values_have_different_hashes() {
        let keys = Keys::new(&[7; 32]);
        let [one, two] = [1, 2].map(|bits| Known::by_bank(PsuId::from_bits(bits)));
        let [tpp, other] = ["PSDNO-FSA-11", "PSDNO-FSA-1"].map(|id| TppId::parse(id).unwrap());
        let [blocked, other_blocked] = [&tpp, &other].map(ForbiddenTpp::of);
        let firm = Known::by_bank(CorporateId::from_bits(1));
        let session = |id| SessionId::from_text(id).unwrap();
        let request = RequestId::parse(&HeaderValue::from_static("a")).unwrap();
        let quota = |corporate, resources: &[&str]| {
            *keys
                .quota(&tpp, one, corporate, "balance-list", resources)
                .as_bytes()
        };
        let hashes = [
            *keys.psu(one).as_bytes(),
            *keys.psu(two).as_bytes(),
            *keys.corporate(firm).as_bytes(),
            *keys.session(&tpp, &session("a")).as_bytes(),
            *keys.session(&other, &session("1a")).as_bytes(),
            *keys.request(&tpp, &request).as_bytes(),
            *keys.account("a").as_bytes(),
            *keys.customer(&CustomerKey::parse("a").unwrap()).as_bytes(),
            quota(None, &["a"]),
            quota(Some(firm), &["a"]),
            quota(None, &["a", ""]),
            *keys
                .quota_of_account(&tpp, "balance-list", &["a"])
                .as_bytes(),
            *keys.list(QuotaHash::from_bytes([1; 16]), "a").as_bytes(),
            *keys.block(&blocked, BlockScope::All).as_bytes(),
            *keys.block(&blocked, BlockScope::Payments).as_bytes(),
            *keys.block(&other_blocked, BlockScope::All).as_bytes(),
            *keys
                .block(&blocked, BlockScope::Psu(keys.psu(one)))
                .as_bytes(),
            *keys
                .block(&blocked, BlockScope::Psu(keys.psu(two)))
                .as_bytes(),
            *keys.moved(&tpp).as_bytes(),
            *keys.moved(&other).as_bytes(),
            *keys.completed(&[b"a"]).as_bytes(),
            *keys.failed(&[b"a"]).as_bytes(),
            *Keys::new(&[8; 32]).psu(one).as_bytes(),
        ];
        for (index, hash) in hashes.iter().enumerate() {
            assert_eq!(hashes.iter().position(|other| other == hash), Some(index));
        }
        assert_eq!(keys.psu(one), Keys::new(&[7; 32]).psu(one));
        assert_eq!(format!("{keys:?}"), "Keys(***)");
    }
}
