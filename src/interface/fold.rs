//! Names that some servers read as other names (QRY-3, PAY-14): letter case, compatibility and invisible characters are folded.
//!
//! A known name is ASCII. So the only relevant characters beyond ASCII are those whose NFKC and case folding consists of ASCII letters,
//! digits, points, hyphens and underscores, or is empty: the tables hold exactly these characters of Unicode 17. The default ignorable code
//! points fold to nothing, as in NFKC_Casefold. In addition ı and İ fold to i, because servers compare in capitals (Java) or by the simple
//! mapping. `make test-systems` compares the tables with those of Node.
//!
//! Deliberately not here: the comparison of identities, which folds ASCII only (CRT-4).

/// Whether a name folds to the same as a known one, which is ASCII.
pub(super) fn reads_as(name: &str, known: &str) -> bool {
    if name.is_ascii() {
        return name.eq_ignore_ascii_case(known);
    }
    fold(name).is_some_and(|folded| folded.eq_ignore_ascii_case(known))
}

/// A text folded to lower-case ASCII. `None` if it folds to something else.
pub fn fold(text: &str) -> Option<String> {
    let mut folded = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            folded.push(character.to_ascii_lowercase());
        } else {
            folded.push_str(ascii_of(character)?);
        }
    }
    Some(folded)
}

/// The ASCII character that a character beyond ASCII folds to, if there is one.
fn ascii_of(character: char) -> Option<&'static str> {
    let point = u32::from(character);
    if IGNORED
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&point))
    {
        return Some("");
    }
    let (letters, at) = run(&LETTERS, point)?;
    if let Some(letter) = letters.get(at..at.saturating_add(1)) {
        return Some(letter);
    }
    let (words, at) = run(&WORDS, point)?;
    words.split(' ').nth(at)
}

/// The last run that begins at or before a code point, and the offset in it.
fn run(runs: &[(u32, &'static str)], point: u32) -> Option<(&'static str, usize)> {
    let after = runs.partition_point(|(first, _)| *first <= point);
    let (first, text) = runs.get(after.checked_sub(1)?)?;
    let at = usize::try_from(point.checked_sub(*first)?).ok()?;
    Some((text, at))
}

/// The default ignorable code points, first to last.
const IGNORED: [(u32, u32); 17] = [
    (0x00ad, 0x00ad),
    (0x034f, 0x034f),
    (0x061c, 0x061c),
    (0x115f, 0x1160),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x200b, 0x200f),
    (0x202a, 0x202e),
    (0x2060, 0x206f),
    (0x3164, 0x3164),
    (0xfe00, 0xfe0f),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0xfff8),
    (0x1_bca0, 0x1_bca3),
    (0x1_d173, 0x1_d17a),
    (0xe_0000, 0xe_0fff),
];

/// Runs of code points that fold to one character each.
const LETTERS: [(u32, &str); 89] = [
    (0x00aa, "a"),
    (0x00b2, "23"),
    (0x00b9, "1o"),
    (0x0130, "ii"),
    (0x017f, "s"),
    (0x02b0, "h"),
    (0x02b2, "jr"),
    (0x02b7, "wy"),
    (0x02e1, "lsx"),
    (0x1d2c, "a"),
    (0x1d2e, "b"),
    (0x1d30, "de"),
    (0x1d33, "ghijklmn"),
    (0x1d3c, "o"),
    (0x1d3e, "prtuwa"),
    (0x1d47, "bde"),
    (0x1d4d, "g"),
    (0x1d4f, "km"),
    (0x1d52, "o"),
    (0x1d56, "ptu"),
    (0x1d5b, "v"),
    (0x1d62, "iruv"),
    (0x1d9c, "c"),
    (0x1da0, "f"),
    (0x1dbb, "z"),
    (0x2024, "."),
    (0x2070, "0i"),
    (0x2074, "456789"),
    (0x207f, "n0123456789"),
    (0x2090, "aeox"),
    (0x2095, "hklmnpst"),
    (0x2102, "c"),
    (0x210a, "ghhhh"),
    (0x2110, "iill"),
    (0x2115, "n"),
    (0x2119, "pqrrr"),
    (0x2124, "z"),
    (0x2128, "z"),
    (0x212a, "k"),
    (0x212c, "bc"),
    (0x212f, "eef"),
    (0x2133, "mo"),
    (0x2139, "i"),
    (0x2145, "ddeij"),
    (0x2160, "i"),
    (0x2164, "v"),
    (0x2169, "x"),
    (0x216c, "lcdmi"),
    (0x2174, "v"),
    (0x2179, "x"),
    (0x217c, "lcdm"),
    (0x2460, "123456789"),
    (
        0x24b6,
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0",
    ),
    (0x2c7c, "jv"),
    (0xa7f1, "scfq"),
    (0xfe33, "__"),
    (0xfe4d, "___"),
    (0xfe52, "."),
    (0xfe63, "-"),
    (0xff0d, "-."),
    (0xff10, "0123456789"),
    (0xff21, "abcdefghijklmnopqrstuvwxyz"),
    (0xff3f, "_"),
    (0xff41, "abcdefghijklmnopqrstuvwxyz"),
    (0x1_07a5, "q"),
    (0x1_ccd6, "abcdefghijklmnopqrstuvwxyz0123456789"),
    (
        0x1_d400,
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefg",
    ),
    (
        0x1_d456,
        "ijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyza",
    ),
    (0x1_d49e, "cd"),
    (0x1_d4a2, "g"),
    (0x1_d4a5, "jk"),
    (0x1_d4a9, "nopq"),
    (0x1_d4ae, "stuvwxyzabcd"),
    (0x1_d4bb, "f"),
    (0x1_d4bd, "hijklmn"),
    (
        0x1_d4c5,
        "pqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzab",
    ),
    (0x1_d507, "defg"),
    (0x1_d50d, "jklmnopq"),
    (0x1_d516, "stuvwxy"),
    (0x1_d51e, "abcdefghijklmnopqrstuvwxyzab"),
    (0x1_d53b, "defg"),
    (0x1_d540, "ijklm"),
    (0x1_d546, "o"),
    (0x1_d54a, "stuvwxy"),
    (
        0x1_d552,
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzi",
    ),
    (
        0x1_d7ce,
        "01234567890123456789012345678901234567890123456789",
    ),
    (0x1_f12b, "cr"),
    (0x1_f130, "abcdefghijklmnopqrstuvwxyz"),
    (0x1_fbf0, "0123456789"),
];

/// Runs of code points that fold to several characters each.
const WORDS: [(u32, &str); 43] = [
    (0x00df, "ss"),
    (0x0132, "ij ij"),
    (0x01c7, "lj lj lj nj nj nj"),
    (0x01f1, "dz dz dz"),
    (0x1e9e, "ss"),
    (0x2025, ".. ..."),
    (0x20a8, "rs"),
    (0x2116, "no"),
    (0x2120, "sm tel tm"),
    (0x213b, "fax"),
    (0x2161, "ii iii iv"),
    (0x2165, "vi vii viii ix"),
    (0x216a, "xi xii"),
    (0x2171, "ii iii iv"),
    (0x2175, "vi vii viii ix"),
    (0x217a, "xi xii"),
    (0x2469, "10 11 12 13 14 15 16 17 18 19 20"),
    (
        0x2488,
        "1. 2. 3. 4. 5. 6. 7. 8. 9. 10. 11. 12. 13. 14. 15. 16. 17. 18. 19. 20.",
    ),
    (0x3250, "pte 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35"),
    (0x32b1, "36 37 38 39 40 41 42 43 44 45 46 47 48 49 50"),
    (0x32cc, "hg erg ev ltd"),
    (0x3371, "hpa da au bar ov pc dm dm2 dm3 iu"),
    (0x3380, "pa na"),
    (0x3383, "ma ka kb mb gb cal kcal pf nf"),
    (0x338e, "mg kg hz khz mhz ghz thz"),
    (0x3396, "ml dl kl fm nm"),
    (0x339c, "mm cm km mm2 cm2 m2 km2 mm3 cm3 m3 km3"),
    (0x33a9, "pa kpa mpa gpa rad"),
    (0x33b0, "ps ns"),
    (0x33b3, "ms pv nv"),
    (0x33b7, "mv kv mv pw nw"),
    (0x33bd, "mw kw mw"),
    (0x33c2, "a.m. bq cc cd"),
    (
        0x33c7,
        "co. db gy ha hp in kk km kt lm ln log lx mb mil mol ph p.m. ppm pr sr sv wb",
    ),
    (0x33ff, "gal"),
    (0xfb00, "ff fi fl ffi ffl st st"),
    (0xfe19, "..."),
    (0xfe30, ".."),
    (0x1_f100, "0."),
    (0x1_f12d, "cd wz"),
    (0x1_f14a, "hv mv sd ss ppv wc"),
    (0x1_f16a, "mc md mr"),
    (0x1_f190, "dj"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_read_as_another() {
        for name in [
            "InstructedAmount",
            "INSTRUCTEDAMOUNT",
            "in\u{17f}tructedAmount",
            "instructed\u{200b}Amount",
            "\u{feff}instructedAmount\u{ad}",
            "\u{ff49}nstructedAmount",
            "instructed\u{1d4d0}mount",
            "ınstructedAmount",
            "İnstructedAmount",
            "\u{24d8}\u{24dd}structedAmount",
        ] {
            assert!(reads_as(name, "instructedAmount"), "{name}");
        }
        assert!(reads_as("\u{212a}", "k"));
        assert!(reads_as("addre\u{df}", "address"));
        assert!(reads_as("o\u{fb00}set", "offset"));
        assert!(reads_as("re\u{fb01}\u{338f}", "refikg"));
        for other in [
            "instructedAmoun",
            "instructedAmountt",
            "",
            "ìnstructedAmount",
            "instructedAmount\u{301}",
            "\u{456}nstructedAmount",
            "\u{200b}",
        ] {
            assert!(!reads_as(other, "instructedAmount"), "{other}");
        }
    }

    #[test]
    fn what_stands_beside_a_run_folds_to_nothing_known() {
        for (text, folded) in [
            ("\u{24b5}", None),
            ("\u{24b6}", Some("a")),
            ("\u{24ea}", Some("0")),
            ("\u{24eb}", None),
            ("\u{2490}", Some("9.")),
            ("\u{249b}", Some("20.")),
            ("\u{249c}", None),
            ("\u{80}", None),
            ("æ", None),
        ] {
            assert_eq!(fold(text).as_deref(), folded, "{text}");
        }
    }

    #[test]
    fn runs_are_in_order_and_apart() {
        let ends = |runs: &[(u32, &str)], count: fn(&str) -> usize| {
            let ends = runs
                .iter()
                .map(|(first, text)| (*first, *first + u32::try_from(count(text)).unwrap()));
            ends.collect::<Vec<_>>()
        };
        for ends in [
            ends(&LETTERS, str::len),
            ends(&WORDS, |text| text.split(' ').count()),
        ] {
            assert!(ends.windows(2).all(|two| two[0].1 <= two[1].0), "{ends:x?}");
            assert!(ends[0].0 >= 0x80);
        }
    }
}
