//! Countries of an address (PAY-8).
//!
//! The accepted set has the notation of §Country codes, and a test compares both.

/// The first letter, and the second letters of its codes.
pub(super) const ACCEPTED: [(&str, &str); 25] = [
    ("A", "F X L Z S D O I Q G R M W U T E"),
    ("B", "H S D B Y E Z J M T O Q A W V R N G F I L"),
    ("C", "M A V F L N X C O G D K R I U W Y Z H"),
    ("D", "Z K J M O E"),
    ("E", "C G R E T H S"),
    ("F", "K O J I R M"),
    ("G", "Q F A M E H I R L D P U T G N W Y S B"),
    ("H", "R T M N K U"),
    ("I", "O S N D R Q E M L T"),
    ("J", "M P E O"),
    ("K", "H Y M Z E I P R W G N"),
    ("L", "A V B S R Y I T U K C"),
    ("M", "O K G W Y V L T H Q R U X D C N E S A Z M P F"),
    ("N", "A R P L C Z I E G U F O"),
    ("O", "M"),
    ("P", "F K W S A G Y E H N L T R M"),
    ("Q", "A"),
    ("R", "E O U W S"),
    ("S", "V T A N C L G X K I B O Z J E H M R Y D S"),
    ("T", "D F G K O T N R M C V W J Z H L"),
    ("U", "M Y Z G A S"),
    ("V", "A C E N G I U"),
    ("W", "S F"),
    ("Y", "T E"),
    ("Z", "A M W"),
];

/// Whether a country is accepted.
pub(super) fn is_accepted(code: &str) -> bool {
    super::codes::is_listed(code, &ACCEPTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn countries() {
        for good in ["NO", "SE", "AF", "ZW", "RU"] {
            assert!(is_accepted(good), "{good}");
        }
        for bad in ["", "N", "no", "NOR", "XX", "N ", "AN", "\u{e6}"] {
            assert!(!is_accepted(bad), "{bad}");
        }
    }
}
