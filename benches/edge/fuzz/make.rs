//! Random bytes, TLS records and HTTP/2 frames, and mutations of valid ones. The same seed makes the same bytes.

use super::encode;
use std::iter::repeat_with;

/// Reproducible random numbers (xorshift64*).
pub(super) struct Dice(u64);

impl Dice {
    /// Numbers of a seed; the nth connection has its own.
    pub(super) const fn new(seed: u64, connection: u64) -> Self {
        // Odd multipliers keep different pairs apart; the state may not be zero.
        let mixed = seed
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(connection.wrapping_mul(0xd1b5_4a32_d192_ed03));
        Self(mixed | 1)
    }

    /// A number below the limit.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap_or_default() % limit.max(1)
    }

    /// Whether one of so many chances came up.
    pub(super) fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap_or_default()
    }

    /// Up to this many random bytes.
    pub(super) fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most + 1);
        repeat_with(|| self.byte()).take(length).collect()
    }

    /// One of these.
    pub(super) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// A TLS record: of random bytes, or a mutation of this handshake message.
pub(super) fn record(dice: &mut Dice, handshake: &[u8]) -> Vec<u8> {
    if dice.one_in(3) {
        let mut bytes = handshake.to_vec();
        mutate(dice, &mut bytes);
        return bytes;
    }
    let payload = dice.bytes(400);
    let kind = match dice.one_in(8) {
        true => dice.byte(),
        false => *dice.pick(&[20, 21, 22, 23, 24]),
    };
    let length = match dice.one_in(4) {
        true => dice.below(65_536),
        false => payload.len(),
    };
    let [high, low] = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    let minor = *dice.pick(&[1, 3, 3, 3, 4, 0xff]);
    [&[kind, 3, minor, high, low][..], &payload].concat()
}

/// A frame: of any type, usually with a payload that its type could have.
pub(super) fn frame(dice: &mut Dice, block: &[u8]) -> Vec<u8> {
    let kind = match dice.one_in(12) {
        true => dice.byte(),
        false => *dice.pick(&[0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    };
    let mut payload = match kind {
        _ if dice.one_in(5) => dice.bytes(300),
        1 | 9 => block.to_vec(),
        2 => exactly(dice, 5),
        3 | 8 => exactly(dice, 4),
        4 => {
            let settings = dice.below(4);
            exactly(dice, 6 * settings)
        }
        6 => exactly(dice, 8),
        7 => exactly(dice, 8),
        _ => dice.bytes(200),
    };
    if dice.one_in(4) {
        mutate(dice, &mut payload);
    }
    let stream = match dice.below(10) {
        0..2 => 0,
        2..9 => 2 * dice.below(20) + 1,
        _ => dice.below(1 << 31),
    };
    let flags = match dice.one_in(2) {
        true => dice.byte(),
        false => *dice.pick(&[0, 1, 4, 5]),
    };
    let stream = u32::try_from(stream).unwrap_or_default();
    encode(kind, flags, stream, &payload)
}

fn exactly(dice: &mut Dice, length: usize) -> Vec<u8> {
    repeat_with(|| dice.byte()).take(length).collect()
}

/// Changes a few bytes: flips a bit, removes, repeats, inserts, or sets an edge value.
pub(super) fn mutate(dice: &mut Dice, bytes: &mut Vec<u8>) {
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len());
        let end = (at + dice.below(16)).min(bytes.len());
        match dice.below(6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << dice.below(8),
            1 if !bytes.is_empty() => {
                bytes[at] = *dice.pick(&[0, 1, 0x7f, 0x80, 0xff, b'\r', b'\n', b':'])
            }
            2 => drop(bytes.drain(at..end)),
            3 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            4 => {
                let more = dice.bytes(16);
                bytes.splice(at..at, more);
            }
            _ => bytes.truncate(end),
        }
    }
}

/// Mutates a sequence of frames: changes, repeats, leaves out or swaps whole frames.
pub(super) fn shuffle(dice: &mut Dice, frames: &mut Vec<Vec<u8>>) {
    for _ in 0..=dice.below(4) {
        let (at, other) = (dice.below(frames.len()), dice.below(frames.len()));
        match dice.below(4) {
            _ if frames.is_empty() => {}
            0 => mutate(dice, &mut frames[at]),
            1 => frames.insert(at, frames[other].clone()),
            2 => drop(frames.remove(at)),
            _ => frames.swap(at, other),
        }
    }
}
