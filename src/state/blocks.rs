//! TPPs that the bank blocks by a call (CTL-2), as every gateway of the state holds them in memory.
//!
//! Invariants: a block of a TPP applies to every spelling of its identity, because what forbids forgives ([`ForbiddenTpp`]); a block that this process made is in memory before it is answered, and one of another process as soon as a change of a PSU is.
//! Deliberately not here: the bank's own list in a file, which stands beside these blocks, and the answers to callers (admission).

use super::{BlockHash, Hash, Move, MoveHash, PsuHash, hash::HashKind, lock::lock, moves::Moves};
use arc_swap::ArcSwap;
use portvakt_base::clock::Timestamp;
use portvakt_interface::{Forbidden, ForbiddenTpp, TppId};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// A block by the bank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The TPP, in every spelling.
    pub tpp: ForbiddenTpp,
    /// The requests that are refused.
    pub scope: BlockScope,
    /// The bank's reason, for its operators.
    pub reason: String,
    /// The time of the call.
    pub since: Timestamp,
    /// The first second in which the block no longer applies; `None` for no end.
    pub until: Option<Timestamp>,
}

/// The outcome of blocking a TPP (CTL-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// There was no such block.
    New,
    /// The block has another reason or another end now.
    Changed,
    /// The same block was made before: nothing changed.
    Before,
}

/// The outcome of unblocking a TPP (CTL-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifted {
    /// The block is gone.
    Done,
    /// There was no such block.
    Unknown,
}

impl Block {
    /// Whether the block has not ended.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    /// Whether another block of the same scope holds for longer.
    pub(super) fn ends_before(&self, other: &Self) -> bool {
        let own = self.until;
        own.is_some_and(|own| other.until.is_none_or(|other| own < other))
    }
}

/// The requests that a block refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockScope {
    /// Every request.
    All,
    /// Requests for which a payment service has to be authorised (PSP_PI).
    Payments,
    /// Requests and SCAs of one PSU.
    Psu(PsuHash),
}

impl BlockScope {
    /// The name in calls and in the tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Payments => "payments",
            Self::Psu(_) => "psu",
        }
    }

    /// The PSU, if the block is of one.
    pub const fn psu(self) -> Option<PsuHash> {
        match self {
            Self::Psu(psu) => Some(psu),
            Self::All | Self::Payments => None,
        }
    }

    /// The scope of a stored row; `None` if no version wrote it.
    pub(super) fn stored(name: &str, psu: Option<PsuHash>) -> Option<Self> {
        match (name, psu) {
            ("all", None) => Some(Self::All),
            ("payments", None) => Some(Self::Payments),
            ("psu", Some(psu)) => Some(Self::Psu(psu)),
            _ => None,
        }
    }
}

/// A PSU that a request or a link names, known or only claimed, as it is sought among the blocks: a claim that names a blocked PSU is refused,
/// and nothing else follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoughtPsu(pub(super) PsuHash);

/// The bank's words about TPPs as an engine stores them.
#[derive(Debug, Default)]
pub(super) struct Standing {
    pub(super) blocks: Vec<(BlockHash, Block)>,
    pub(super) moves: Vec<(MoveHash, Move)>,
}

/// The blocks of a moment, by TPP, and the TPPs that have another identity now (CTL-4).
#[derive(Debug, Default)]
pub struct Blocks {
    by_tpp: Forbidden<Vec<Block>>,
    moves: Moves,
}

impl Blocks {
    pub(super) fn new<'a>(
        blocks: impl Iterator<Item = &'a Block>,
        moves: impl Iterator<Item = &'a Move>,
    ) -> Self {
        let moves = Moves::new(moves);
        let mut by_tpp: Forbidden<Vec<Block>> = Forbidden::default();
        let mut add = |tpp: &ForbiddenTpp, block: &Block| match by_tpp.get_mut(tpp) {
            Some(others) => others.push(block.clone()),
            None => {
                by_tpp.insert(tpp.clone(), vec![block.clone()]);
            }
        };
        for block in blocks {
            add(&block.tpp, block);
            // A block of a former identity is one of the TPP.
            for owner in moves.owners_of(&block.tpp) {
                add(&owner, block);
            }
        }
        Self { by_tpp, moves }
    }

    /// Whether no TPP is blocked or has another identity.
    pub fn is_empty(&self) -> bool {
        self.by_tpp.is_empty() && self.moves.is_empty()
    }

    /// The TPPs that have another identity now.
    pub(super) const fn moves(&self) -> &Moves {
        &self.moves
    }

    /// Whether a block refuses a request of this TPP now, or it has another identity. `psus` are the PSUs that the request concerns, hashed
    /// only if a block is of one.
    pub fn refuses(
        &self,
        tpp: &TppId,
        is_payment: bool,
        psus: impl Fn() -> Vec<SoughtPsu>,
        now: Timestamp,
    ) -> bool {
        if self.moves.is_former(tpp) {
            return true;
        }
        let blocks = self.by_tpp.get(tpp).map_or(&[][..], Vec::as_slice);
        blocks.iter().any(|block| {
            block.holds(now)
                && match block.scope {
                    BlockScope::All => true,
                    BlockScope::Payments => is_payment,
                    BlockScope::Psu(psu) => psus().contains(&SoughtPsu(psu)),
                }
        })
    }
}

/// The blocks in the memory of a process.
#[derive(Default)]
pub(super) struct LiveBlocks {
    current: ArcSwap<Blocks>,
    known: Mutex<Known>,
}

/// The rows, and the number of changes by this process.
#[derive(Default)]
struct Known {
    generation: u64,
    blocks: BTreeMap<BlockHash, Block>,
    moves: BTreeMap<MoveHash, Move>,
}

/// The generation at the start of a reading: see [`LiveBlocks::reading`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading(u64);

impl LiveBlocks {
    pub(super) fn current(&self) -> Arc<Blocks> {
        self.current.load_full()
    }

    /// Starts a reading of all rows. Call this before they are read.
    pub(super) fn reading(&self) -> Reading {
        Reading(lock(&self.known).generation)
    }

    /// Takes the rows that were read. False, and nothing changed, if this process changed a row since: they must be read again.
    pub(super) fn replace(&self, read: Reading, rows: Standing) -> bool {
        let mut known = lock(&self.known);
        if known.generation != read.0 {
            return false;
        }
        known.blocks = rows.blocks.into_iter().collect();
        known.moves = rows.moves.into_iter().collect();
        self.show(&known);
        true
    }

    /// Applies rows that this process has committed; `None` stands for a removed one.
    pub(super) fn apply<'a>(
        &self,
        blocks: impl Iterator<Item = (BlockHash, Option<&'a Block>)>,
        moves: impl Iterator<Item = (MoveHash, Option<&'a Move>)>,
    ) {
        let (mut blocks, mut moves) = (blocks.peekable(), moves.peekable());
        if blocks.peek().is_none() && moves.peek().is_none() {
            return;
        }
        let mut known = lock(&self.known);
        known.generation = known.generation.wrapping_add(1);
        apply(&mut known.blocks, blocks);
        apply(&mut known.moves, moves);
        self.show(&known);
    }

    fn show(&self, known: &Known) {
        let blocks = Blocks::new(known.blocks.values(), known.moves.values());
        self.current.store(Arc::new(blocks));
    }
}

fn apply<'a, K: HashKind, R: Clone + 'a>(
    known: &mut BTreeMap<Hash<K>, R>,
    changed: impl Iterator<Item = (Hash<K>, Option<&'a R>)>,
) {
    for (key, row) in changed {
        match row {
            Some(row) => known.insert(key, row.clone()),
            None => known.remove(&key),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_unix(1_800_000_000);

    fn block(tpp: &str, scope: BlockScope, until: Option<Timestamp>) -> Block {
        Block {
            tpp: ForbiddenTpp::parse(tpp).unwrap(),
            scope,
            reason: "fraud".into(),
            since: NOW,
            until,
        }
    }

    #[test]
    fn what_a_block_refuses() {
        let psu = PsuHash::from_bytes([7; 16]);
        let rows = [
            block("PSDNO-FSA-12-34 56", BlockScope::All, None),
            block("PSDNO-FSA-2", BlockScope::Payments, None),
            block("PSDNO-FSA-3", BlockScope::Psu(psu), None),
            block(
                "PSDNO-FSA-4",
                BlockScope::All,
                Some(Timestamp::from_unix(NOW.unix() + 1)),
            ),
            block("PSDNO-FSA-5", BlockScope::All, Some(NOW)),
        ];
        let blocks = Blocks::new(rows.iter(), std::iter::empty());
        let refuses = |tpp: &str, is_payment, psu: Option<PsuHash>| {
            let tpp = TppId::parse(tpp).unwrap();
            blocks.refuses(
                &tpp,
                is_payment,
                || psu.into_iter().map(SoughtPsu).collect(),
                NOW,
            )
        };
        assert!(refuses("PSDNO-FSA-123456", false, None));
        assert!(refuses("PSDNO-FSA-1234-56", true, None));
        assert!(!refuses("PSDSE-FSA-123456", true, None));
        assert!(refuses("PSDNO-FSA-2", true, None));
        assert!(!refuses("PSDNO-FSA-2", false, Some(psu)));
        assert!(refuses("PSDNO-FSA-3", false, Some(psu)));
        assert!(!refuses("PSDNO-FSA-3", true, None));
        assert!(!refuses("PSDNO-FSA-6", true, Some(psu)));
        assert!(refuses("PSDNO-FSA-4", false, None));
        assert!(!refuses("PSDNO-FSA-5", false, None));
    }

    /// CTL-4: a TPP that has another identity is refused, in exactly this spelling, and its blocks are those of the other.
    #[test]
    fn a_block_follows_a_tpp_to_its_new_identity() {
        let tpp = |name| TppId::parse(name).unwrap();
        let moves = [
            ("PSDNO-FSA-1", "PSDNO-FSA-2"),
            ("PSDNO-FSA-12-34", "PSDNO-FSA-1234"),
        ];
        let moves = moves.map(|(from, to)| Move {
            from: tpp(from),
            to: tpp(to),
            since: NOW,
        });
        let rows = [block("PSDNO-FSA-1", BlockScope::Payments, None)];
        let blocks = Blocks::new(rows.iter(), moves.iter());
        let refuses = |name, is_payment| blocks.refuses(&tpp(name), is_payment, Vec::new, NOW);
        assert!(refuses("PSDNO-FSA-1", false));
        assert!(refuses("PSDNO-FSA-2", true) && !refuses("PSDNO-FSA-2", false));
        assert!(refuses("PSDNO-FSA-12-34", false));
        assert!(!refuses("PSDNO-FSA-1234", true) && !refuses("PSDNO-FSA-3", true));
        assert!(!blocks.is_empty());
    }

    /// What was read before a change of this process does not undo it.
    #[test]
    fn an_old_reading_is_not_taken() {
        let live = LiveBlocks::default();
        let key: BlockHash = Hash::from_bytes([1; 16]);
        let reading = live.reading();
        let row = block("PSDNO-FSA-1", BlockScope::All, None);
        live.apply(std::iter::once((key, Some(&row))), std::iter::empty());
        assert!(!live.replace(reading, Standing::default()));
        assert!(!live.current().is_empty());
        assert!(live.replace(live.reading(), Standing::default()));
        assert!(live.current().is_empty());
    }
}
