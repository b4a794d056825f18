//! Currencies (PAY-5) and their minor units (PAY-4).
//!
//! The accepted set has the notation of §Currency codes, and a test compares both. The set differs from ISO 4217: some members were
//! withdrawn from ISO 4217, some were never in it, and some current codes of ISO 4217 are missing (EEK, LTL, BYN).

/// The first letter, and the other two letters of each of its codes.
pub(super) const ACCEPTED: [(&str, &str); 26] = [
    ("A", "ED FN LL MD NG OA RS UD WG ZN"),
    ("B", "AM BD DT GN HD IF MD ND OB RL SD TN WP YR ZD"),
    ("C", "AD DF HF LP NY OP RC UC UP VE ZK"),
    ("D", "JF KK OP ZD"),
    ("E", "GP RN TB UR"),
    ("F", "JD KP"),
    ("G", "BP EL GP HS IP MD NF TQ YD"),
    ("H", "KD NL RK TG UF"),
    ("I", "DR LS MP NR QD RR SK"),
    ("J", "EP MD OD PY"),
    ("K", "ES GS HR MF PW RW WD YD ZT"),
    ("L", "AK BP KR RD SL YD"),
    ("M", "AD DL GA KD MK NT OP RO UR VR WK XN YR ZN"),
    ("N", "AD GN IO OK PR ZD"),
    ("O", "MR"),
    ("P", "AB EN GK HP KR LN YG"),
    ("Q", "AR"),
    ("R", "ON SD UB WF"),
    ("S", "AR BD CR DG EK GD HP LL OS PL RD TD VC YP ZL"),
    ("T", "HB JS MT ND OP RY TD VD WD ZS"),
    ("U", "AH GX SD YU ZS"),
    ("V", "EF ND UV"),
    ("W", "ST"),
    ("X", "AF CD DR OF PF"),
    ("Y", "ER"),
    ("Z", "AR MW WD"),
];

/// Currencies without minor units. BYR had none.
const NONE: &str = "BIF BYR CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF";

/// Currencies with three fraction digits.
const THREE: &str = "BHD IQD JOD KWD LYD OMR TND";

/// The number of fraction digits of an amount (PAY-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MinorUnits {
    /// Exactly this number.
    Exactly(usize),
    /// Up to the maximum of an amount: the special drawing right, for which ISO 4217 defines no minor units.
    Any,
}

/// The minor units of an accepted currency; `None` for another currency.
pub(super) fn minor_units(code: &str) -> Option<MinorUnits> {
    if !super::codes::is_listed(code, &ACCEPTED) {
        return None;
    }
    let units = if code == "XDR" {
        MinorUnits::Any
    } else if NONE.split(' ').any(|known| known == code) {
        MinorUnits::Exactly(0)
    } else if THREE.split(' ').any(|known| known == code) {
        MinorUnits::Exactly(3)
    } else {
        MinorUnits::Exactly(2)
    };
    Some(units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iso_currency::Currency;

    fn accepted() -> impl Iterator<Item = String> {
        let rows = ACCEPTED.iter();
        rows.flat_map(|(first, rest)| rest.split(' ').map(move |two| format!("{first}{two}")))
    }

    /// Compares the current currencies of ISO 4217 with an independent implementation, and the withdrawn ones with the rule.
    #[test]
    fn minor_units_are_those_of_iso_4217() {
        for code in accepted() {
            let expected = match (code.as_str(), Currency::from_code(&code)) {
                ("XDR", _) => MinorUnits::Any,
                ("BYR", _) => MinorUnits::Exactly(0),
                ("ANG" | "BGN" | "CUC" | "HRK" | "MRO" | "SLL" | "STD" | "VEF" | "ZWD", _) => {
                    MinorUnits::Exactly(2)
                }
                ("GGP" | "IMP" | "JEP" | "SPL" | "TVD", _) => MinorUnits::Exactly(2),
                (_, Some(currency)) => MinorUnits::Exactly(currency.exponent().unwrap().into()),
                (_, None) => panic!("{code} has no minor units"),
            };
            assert_eq!(minor_units(&code), Some(expected), "{code}");
        }
    }

    #[test]
    fn strangers() {
        for code in [
            "EEK", "LTL", "LVL", "BYN", "SLE", "VES", "XXX", "nok", "NOKK", "NO", "N K", "",
            "\u{e6}K",
        ] {
            assert_eq!(minor_units(code), None, "{code}");
        }
    }
}
