//! Keyed hashes, which a store has in place of a PSU-ID, an account, a session id or a request id.
//!
//! The hash is HMAC-SHA-256, truncated to 128 bits, over the kind of the value and its parts, each with its length before it: different
//! values never have the same input. Without the key nobody can find out which PSU a row belongs to, not even by trying all national
//! identity numbers or all known UUIDs.
//!
//! There are several keys where the hash key was rotated. The hash of level 1 is that of the value under the first key. The hash of the
//! next level is that of the hash before under the next key, so that a stored hash moves to the next level by itself. A state has one
//! level.
//!
//! Invariants: a key is never shown. A hash that has hashes as parts has those of level 1, which nobody sees but this file; so its own
//! level is that of the state. Two keys of rows are exceptions, and [`NextLevel`] needs to know neither: a block has its PSU in its row,
//! from which its key is computed anew, and nobody compares the mark of a removal with that of another level (`rules/removal.rs`).

use super::{
    AccountHash, BlockHash, BlockScope, CorporateHash, CustomerHash, CustomerKey, EventKind, Hash,
    Known, ListHash, MoveHash, Named, PsuHash, QuotaHash, ReportHash, RequestHash, SessionHash,
    SoughtPsu, TokenHash,
    customer::NamedCustomer,
    event_key::EventKey,
    settings::{KEY_ROW, LEVEL_ROW},
};
use aws_lc_rs::hmac;
use portvakt_interface::{
    ForbiddenTpp, TppId,
    headers::{CorporateId, PsuId, RequestId, SessionId},
};
use std::fmt;

/// The keys of a store's hashes, and the bank's key for customers in events.
pub struct Keys {
    first: hmac::Key,
    /// The keys of the further levels, up to that of the state.
    later: Vec<hmac::Key>,
    /// The keys of levels that the state has not reached.
    prepared: Vec<hmac::Key>,
    customers: Option<EventKey>,
}

/// The key of a quota, and its hash of level 1, on which the lists of the quota hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaKey {
    first: QuotaHash,
    hash: QuotaHash,
}

impl QuotaKey {
    /// The key of the row.
    pub const fn hash(self) -> QuotaHash {
        self.hash
    }
}

/// A step of the hash key: from the hashes of one level to those of the next.
pub(super) struct NextLevel {
    key: hmac::Key,
    /// The keys of the next level.
    pub(super) keys: Keys,
}

impl NextLevel {
    /// The hash of the next level.
    pub(super) fn of<K>(&self, hash: Hash<K>) -> Hash<K> {
        next(&self.key, hash)
    }
}

impl Keys {
    /// Keys of level 1 from 32 secret bytes.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self::of_level(secret, &[], &[])
    }

    /// Keys from those of all levels: the first, the further ones up to the level of the state, and those that are prepared.
    pub(super) fn of_level(first: &[u8; 32], later: &[[u8; 32]], prepared: &[[u8; 32]]) -> Self {
        let key = |secret: &[u8; 32]| hmac::Key::new(hmac::HMAC_SHA256, secret);
        Self {
            first: key(first),
            later: later.iter().map(key).collect(),
            prepared: prepared.iter().map(key).collect(),
            customers: None,
        }
    }

    /// The same, with the key for customers in events (CTL-3).
    pub(super) fn with_customers(self, key: Option<EventKey>) -> Self {
        Self {
            customers: key,
            ..self
        }
    }

    /// The step to the next level; `None` if no key for it is prepared.
    pub(super) fn next_level(&self) -> Option<NextLevel> {
        let (key, prepared) = self.prepared.split_first()?;
        let mut later = self.later.clone();
        later.push(key.clone());
        Some(NextLevel {
            key: key.clone(),
            keys: Self {
                first: self.first.clone(),
                later,
                prepared: prepared.to_vec(),
                customers: None,
            },
        })
    }

    /// The level of the state: the number of its keys.
    pub(super) fn level(&self) -> usize {
        self.later.len().saturating_add(1)
    }

    /// The hashes of a PSU of every level for which there is a key, the first level first: the audit has records of each
    /// (docs/audit.md).
    pub fn psu_of_every_level(&self, psu: Known<PsuId>) -> Vec<PsuHash> {
        let mut hash = self.first_hash(b"psu", &[&psu.get().to_be_bytes()]);
        let mut hashes = vec![hash];
        for key in self.later.iter().chain(&self.prepared) {
            hash = next(key, hash);
            hashes.push(hash);
        }
        hashes
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
        let key = self.customers.as_ref();
        NamedCustomer {
            customer: self.customer(customer),
            pseudonym: key.map(|key| (key.pseudonym(customer.as_bytes()), key.check())),
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
    ) -> QuotaKey {
        let psu = psu.get().to_be_bytes();
        let corporate = corporate.map(|id| id.get().to_be_bytes());
        let corporate = corporate.as_ref().map_or(&[][..], |bytes| bytes);
        let mut parts = vec![tpp.as_bytes(), &psu, corporate, operation.as_bytes()];
        parts.extend(resources.iter().map(|resource| resource.as_bytes()));
        self.quota_key(b"quota", &parts)
    }

    /// The key of a quota while PSU or agreement is not known (SCA-22): TPP, operation, account, and the transaction if details are
    /// counted per transaction.
    pub fn quota_of_account(&self, tpp: &TppId, operation: &str, resources: &[&str]) -> QuotaKey {
        let mut parts = vec![tpp.as_bytes(), operation.as_bytes()];
        parts.extend(resources.iter().map(|resource| resource.as_bytes()));
        self.quota_key(b"quota of account", &parts)
    }

    fn quota_key(&self, kind: &[u8], parts: &[&[u8]]) -> QuotaKey {
        let first = self.first_hash(kind, parts);
        QuotaKey {
            first,
            hash: self.of_own_level(first),
        }
    }

    /// The hash of a list that is read page by page (QUO-13): its quota, and its query without offset and limit.
    pub fn list(&self, quota: QuotaKey, query: &str) -> ListHash {
        self.hash(b"list", &[quota.first.as_bytes(), query.as_bytes()])
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

    /// The key of an SCA's token by its id (SCA-12). The id is random, so it is stored without hashing at level 1.
    pub fn token(&self, id: [u8; 16]) -> TokenHash {
        self.of_own_level(Hash::from_bytes(id))
    }

    /// The hash of the report of a completed SCA (SCA-12), by its parts, and by the customer if the report names one. A report without a
    /// customer has the hash that versions before CTL-1 gave it. With one, the hash of the other parts is a part: none of them can be taken
    /// for the customer.
    pub fn completed(&self, parts: &[&[u8]], customer: Option<&str>) -> ReportHash {
        let report: ReportHash = self.first_hash(b"completed", parts);
        self.of_own_level(match customer {
            None => report,
            Some(customer) => {
                let parts: [&[u8]; 3] = [b"customer", report.as_bytes(), customer.as_bytes()];
                self.first_hash(b"completed", &parts)
            }
        })
    }

    /// The hash of a report that says nothing, of the mark of an observation (CTL-3).
    pub(super) fn no_report(&self) -> ReportHash {
        self.of_own_level(Hash::from_bytes([0; 16]))
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

    /// The rows of `meta` of a state with these keys: names and values.
    pub(super) fn records(&self) -> Vec<(&'static str, String)> {
        let check = (KEY_ROW, self.check_value());
        let level = (LEVEL_ROW, self.level().to_string());
        match self.level() {
            1 => vec![check],
            _ => vec![check, level],
        }
    }

    fn hash<K>(&self, kind: &[u8], parts: &[&[u8]]) -> Hash<K> {
        self.of_own_level(self.first_hash(kind, parts))
    }

    fn first_hash<K>(&self, kind: &[u8], parts: &[&[u8]]) -> Hash<K> {
        hash(&self.first, kind, parts)
    }

    /// The hash of the state's level, of one of level 1.
    fn of_own_level<K>(&self, first: Hash<K>) -> Hash<K> {
        self.later.iter().fold(first, |hash, key| next(key, hash))
    }
}

/// The hash of the level that has this key, of the hash of the level before.
fn next<K>(key: &hmac::Key, before: Hash<K>) -> Hash<K> {
    hash(key, b"rotated", &[before.as_bytes()])
}

fn hash<K>(key: &hmac::Key, kind: &[u8], parts: &[&[u8]]) -> Hash<K> {
    let mut context = hmac::Context::with_key(key);
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
                .hash
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
                .hash
                .as_bytes(),
            *keys
                .list(keys.quota_of_account(&tpp, "balance-list", &["a"]), "a")
                .as_bytes(),
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
            *keys.completed(&[b"a"], None).as_bytes(),
            *keys.completed(&[b"a"], Some("a")).as_bytes(),
            *keys.failed(&[b"a"]).as_bytes(),
            *Keys::new(&[8; 32]).psu(one).as_bytes(),
        ];
        for (index, hash) in hashes.iter().enumerate() {
            assert_eq!(hashes.iter().position(|other| other == hash), Some(index));
        }
        assert_eq!(keys.psu(one), Keys::new(&[7; 32]).psu(one));
        assert_eq!(format!("{keys:?}"), "Keys(***)");
    }

    /// One value of each kind of hash: its name, and its hash at level 1, as versions before the first rotation made it, under a key of 32
    /// bytes of 7.
    const ONE_OF_EACH: [(&str, u128); 17] = [
        ("psu", 0x9fda_c927_6520_ac97_2ec4_f12b_d756_e4b9),
        ("corporate", 0x63d3_dc9e_72a5_1770_dd2d_cebf_78c7_1d8b),
        ("customer", 0x655e_e7eb_6d22_2329_d268_bf1a_6c8d_066c),
        ("session", 0x981d_727e_0590_2799_17c9_d05f_c2c8_e928),
        ("account", 0xd7ad_73a5_00cb_e8b7_b3e1_9b91_c6d6_8141),
        ("request", 0x8d53_402e_5151_d0a7_eadd_8cd9_b84f_500a),
        ("quota", 0x0349_b591_0580_5b8f_48ce_81b3_04c6_e34c),
        (
            "quota of account",
            0x8071_f2c0_9241_559e_807f_d417_03ba_9771,
        ),
        ("list", 0x79f2_2f82_90af_9bc2_172f_995b_7171_21f5),
        ("moved", 0xb953_5583_04ec_d1a4_b186_8c6e_292d_8f05),
        ("completed", 0x5894_0506_420e_8065_ddcd_5022_6e75_b91e),
        (
            "completed of a customer",
            0xa077_9600_b710_e5d0_27d0_25a2_820b_eadb,
        ),
        ("failed", 0x1bb2_7120_544f_cb59_5c6e_e1c4_0a10_abe4),
        ("observed", 0x32ce_a741_230f_f501_4b57_752e_ccc8_2e74),
        ("token", 7),
        ("no report", 0),
        ("key check", 0x8189_c147_8a58_fc99_8480_3e3c_e10e_40b7),
    ];

    fn of_kind(keys: &Keys, kind: &str) -> [u8; 16] {
        let psu = Known::by_bank(PsuId::from_bits(1));
        let tpp = TppId::parse("PSDNO-FSA-11").unwrap();
        let request = RequestId::parse(&HeaderValue::from_static("a")).unwrap();
        let quota = keys.quota(&tpp, psu, None, "balance-list", &["a"]);
        match kind {
            "psu" => *keys.psu(psu).as_bytes(),
            "corporate" => *keys
                .corporate(Known::by_bank(CorporateId::from_bits(1)))
                .as_bytes(),
            "customer" => *keys.customer(&CustomerKey::parse("a").unwrap()).as_bytes(),
            "session" => *keys
                .session(&tpp, &SessionId::from_text("a").unwrap())
                .as_bytes(),
            "account" => *keys.account("a").as_bytes(),
            "request" => *keys.request(&tpp, &request).as_bytes(),
            "quota" => *quota.hash().as_bytes(),
            "quota of account" => *keys
                .quota_of_account(&tpp, "balance-list", &["a"])
                .hash()
                .as_bytes(),
            "list" => *keys.list(quota, "a").as_bytes(),
            "moved" => *keys.moved(&tpp).as_bytes(),
            "completed" => *keys.completed(&[b"a"], None).as_bytes(),
            "completed of a customer" => *keys.completed(&[b"a"], Some("c")).as_bytes(),
            "failed" => *keys.failed(&[b"a"]).as_bytes(),
            "observed" => *keys.observed(EventKind::RoleLost, &tpp, "x").as_bytes(),
            "token" => *keys.token(7_u128.to_be_bytes()).as_bytes(),
            "no report" => *keys.no_report().as_bytes(),
            "key check" => keys.check(),
            other => panic!("{other}"),
        }
    }

    /// States that were never rotated stay as they are.
    #[test]
    fn hashes_of_the_first_level_are_those_of_versions_before() {
        let keys = Keys::new(&[7; 32]);
        for (kind, before) in ONE_OF_EACH {
            assert_eq!(of_kind(&keys, kind), before.to_be_bytes(), "{kind}");
        }
        let tpp = ForbiddenTpp::of(&TppId::parse("PSDNO-FSA-11").unwrap());
        let psu = keys.psu(Known::by_bank(PsuId::from_bits(1)));
        for (scope, before) in [
            (BlockScope::All, BLOCK),
            (BlockScope::Psu(psu), BLOCK_OF_PSU),
        ] {
            assert_eq!(keys.block(&tpp, scope).as_bytes(), &before.to_be_bytes());
        }
    }

    const BLOCK: u128 = 0xd963_5f75_4a59_2359_ec74_d6d4_eadc_3b83;
    const BLOCK_OF_PSU: u128 = 0x0542_17e2_0eea_5742_ffb6_9a1e_9054_dd4d;

    /// A row is found after a rotation because its stored hash, moved alone, is the hash that the next request computes.
    #[test]
    fn a_moved_hash_is_the_one_of_the_next_level() {
        let (first, later) = ([7; 32], &[[8; 32], [9; 32]][..]);
        for level in 0..2 {
            let (used, prepared) = later.split_at(level);
            let keys = Keys::of_level(&first, used, prepared);
            assert_eq!(keys.level(), level + 1);
            let next = keys.next_level().unwrap();
            let expected = Keys::of_level(&first, &later[..=level], &later[level + 1..]);
            for (kind, _) in ONE_OF_EACH {
                let moved = next.of(Hash::<()>::from_bytes(of_kind(&keys, kind)));
                assert_eq!(*moved.as_bytes(), of_kind(&expected, kind), "{kind}");
                assert_eq!(of_kind(&next.keys, kind), of_kind(&expected, kind));
            }
            let psu = Known::by_bank(PsuId::from_bits(1));
            let every = keys.psu_of_every_level(psu);
            assert_eq!((every.len(), every[level]), (3, keys.psu(psu)));
            assert_eq!(every[level + 1], next.keys.psu(psu));
        }
        assert!(Keys::of_level(&first, later, &[]).next_level().is_none());
    }

    /// Each kind of hash that is stored is one of `ONE_OF_EACH`, or a block, whose key is computed anew.
    #[test]
    fn every_kind_is_tested() {
        let tested = [
            "OfPsu",
            "OfCorporate",
            "OfCustomer",
            "OfSession",
            "OfAccount",
            "OfRequest",
            "OfQuota",
            "OfList",
            "OfToken",
            "OfBlock",
            "OfMove",
            "OfReport",
        ];
        assert_eq!(crate::hash::KINDS, tested);
    }
}
