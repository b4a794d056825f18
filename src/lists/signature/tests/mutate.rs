//! Alters a list at each node that matters, one place at a time.

use quick_xml::{Reader, events::Event};
use std::{collections::BTreeSet, ops::Range};

/// An altered list.
pub(super) struct Mutant {
    /// The kind of change, and the node.
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// An element as it stands in a list's text.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// The name without its prefix.
    pub(super) local: String,
    /// The name of the element around it.
    parent: String,
    pub(super) whole: Range<usize>,
    /// What stands between the tags.
    pub(super) inner: Range<usize>,
    is_signature: bool,
    has_children: bool,
}

/// A list's text, and where its elements stand.
pub(super) struct Outline {
    pub(super) text: String,
    pub(super) pieces: Vec<Piece>,
}

impl Outline {
    /// Finds the elements of a list.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let text = text.trim_start_matches('\u{feff}').to_owned();
        let mut reader = Reader::from_str(&text);
        let mut pieces: Vec<Piece> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        loop {
            let start = usize::try_from(reader.buffer_position()).unwrap();
            let event = reader.read_event().unwrap();
            let end = usize::try_from(reader.buffer_position()).unwrap();
            match event {
                Event::Start(ref tag) | Event::Empty(ref tag) => {
                    let tag_text = tag.local_name();
                    let local: &str = tag_text.as_ref();
                    let parent = open.last().copied();
                    if let Some(parent) = parent {
                        pieces[parent].has_children = true;
                    }
                    let is_signature = local == "Signature"
                        || parent.is_some_and(|parent| pieces[parent].is_signature);
                    if matches!(event, Event::Start(_)) {
                        open.push(pieces.len());
                    }
                    pieces.push(Piece {
                        local: local.to_owned(),
                        parent: parent.map_or_else(String::new, |it| pieces[it].local.clone()),
                        whole: start..end,
                        inner: end..end,
                        is_signature,
                        has_children: false,
                    });
                }
                Event::End(_) => {
                    let position = open.pop().unwrap();
                    pieces[position].inner.end = start;
                    pieces[position].whole.end = end;
                }
                Event::Eof => return Self { text, pieces },
                _ => {}
            }
        }
    }

    /// The first element of this name.
    pub(super) fn first(&self, local: &str) -> &Piece {
        self.pieces.iter().find(|it| it.local == local).unwrap()
    }

    /// The text with a part replaced.
    pub(super) fn with(&self, range: Range<usize>, replacement: &str) -> String {
        let mut text = self.text.clone();
        text.replace_range(range, replacement);
        text
    }

    /// The list with each element that matters removed, doubled, moved, emptied, renamed, and its text altered or cut by a comment: all of
    /// the signature, and the first and the last of each name elsewhere.
    pub(super) fn mutants(&self) -> Vec<Mutant> {
        let all = || self.pieces.iter().enumerate().skip(1);
        let mut first = BTreeSet::new();
        let mut last = BTreeSet::new();
        let mut chosen: Vec<(usize, &Piece)> = all()
            .filter(|(_, it)| it.is_signature || first.insert(&it.local))
            .chain(all().rev().filter(|(_, it)| last.insert(&it.local)))
            .collect();
        chosen.sort_by_key(|(position, _)| *position);
        chosen.dedup_by_key(|(position, _)| *position);
        let mut mutants = Vec::new();
        for (position, piece) in chosen {
            self.alter(position, piece, &mut mutants);
        }
        mutants.extend(self.attributes());
        mutants.retain(|mutant| mutant.bytes != self.text.as_bytes());
        mutants
    }

    fn alter(&self, position: usize, piece: &Piece, mutants: &mut Vec<Mutant>) {
        let whole = &self.text[piece.whole.clone()];
        let inner = &self.text[piece.inner.clone()];
        let mut add = |change: &str, text: String| {
            mutants.push(Mutant {
                name: format!("{change} {}/{} ({position})", piece.parent, piece.local),
                bytes: text.into_bytes(),
            });
        };
        add("removed", self.with(piece.whole.clone(), ""));
        add("doubled", self.with(piece.whole.clone(), &whole.repeat(2)));
        let without = self.with(piece.whole.clone(), "");
        let end = without.rfind("</").unwrap();
        let (before, after) = without.split_at(end);
        add("moved to the end", format!("{before}{whole}{after}"));
        if piece.inner.is_empty() {
            return;
        }
        add("emptied", self.with(piece.inner.clone(), ""));
        let renamed = whole.replacen(&piece.local, &format!("{}x", piece.local), 1);
        let last = renamed.rfind(&piece.local).unwrap();
        let (before, after) = renamed.split_at(last);
        let after = after.replacen(&piece.local, &format!("{}x", piece.local), 1);
        add(
            "renamed",
            self.with(piece.whole.clone(), &format!("{before}{after}")),
        );
        if !piece.has_children && inner.trim().len() > 1 {
            let at = inner.char_indices().nth(1).unwrap().0;
            let (first, rest) = inner.split_at(at);
            let other = if first == "x" { "y" } else { "x" };
            add(
                "altered",
                self.with(piece.inner.clone(), &format!("{other}{rest}")),
            );
            let commented = format!("{first}<!-- -->{rest}");
            add("comment in", self.with(piece.inner.clone(), &commented));
            let instructed = format!("{first}<?x y?>{rest}");
            add(
                "instruction in",
                self.with(piece.inner.clone(), &instructed),
            );
        }
    }

    /// The list with each attribute of the signature, and some others, altered and removed.
    fn attributes(&self) -> Vec<Mutant> {
        let signature = self.first("Signature").whole.clone();
        let mut mutants = Vec::new();
        let mut others = 0;
        for piece in &self.pieces {
            others += usize::from(!piece.is_signature);
            if !signature.contains(&piece.whole.start) && others > 40 {
                continue;
            }
            let tag_end = self.text[piece.whole.start..].find('>').unwrap() + piece.whole.start;
            let tag = &self.text[piece.whole.start..tag_end];
            for part in tag.split(' ').skip(1).filter(|part| part.contains('=')) {
                // A declaration that is not used is no part of the canonical form.
                let Some((name, _)) = part.split_once('=') else {
                    continue;
                };
                let part = part.trim_end_matches('/');
                if name.starts_with("xmlns:ns") || !part.ends_with('"') {
                    continue;
                }
                let at = tag.find(part).unwrap() + piece.whole.start;
                let range = at..at + part.len();
                let altered = format!("{}x\"", part.trim_end_matches('"'));
                for (change, new) in [("altered", altered.as_str()), ("removed", "")] {
                    mutants.push(Mutant {
                        name: format!("{change} {}/{}/@{name}", piece.parent, piece.local),
                        bytes: self.with(range.clone(), new).into_bytes(),
                    });
                }
            }
        }
        mutants
    }
}

/// Numbers that look random, and are the same in each run (xorshift, Marsaglia 2003).
pub(super) struct Random(pub(super) u64);

impl Random {
    /// A number below a bound.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }
}

/// A list with a few bytes changed, dropped, doubled or swapped.
pub(super) fn scramble(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut altered = bytes.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(altered.len());
        let length = 1 + random.below(12);
        let end = (at + length).min(altered.len());
        match random.below(5) {
            0 => altered[at] = u8::try_from(random.below(256)).unwrap(),
            1 => altered[at] ^= 1 << random.below(8),
            2 => drop(altered.drain(at..end)),
            3 => {
                let piece = altered[at..end].to_vec();
                altered.splice(at..at, piece);
            }
            _ => {
                let other = random.below(altered.len());
                altered.swap(at, other);
            }
        }
    }
    altered
}
