//! The number of SCA tokens that each key has sealed, and the limit at which the key must be rotated.

use crate::sca::{MOST_SEALS, SEALS_ALERT};
use std::fmt::Write;

/// Writes the samples in Prometheus' text format. The label is the key's id, which every token contains.
pub(super) fn write(keys: &[(String, u64)], out: &mut String) -> std::fmt::Result {
    let name = "portvakt_sca_token_seals";
    writeln!(
        out,
        "# HELP {name} Tokens that a key of SCA links has sealed, by the key's id; rounded up at each start.\n\
         # TYPE {name} gauge"
    )?;
    for (key, count) in keys {
        writeln!(out, "{name}{{key=\"{key}\"}} {count}")?;
    }
    writeln!(
        out,
        "# HELP {name}_alert Tokens of one key at which the keys are to be rotated.\n\
         # TYPE {name}_alert gauge\n\
         {name}_alert {SEALS_ALERT}\n\
         # HELP {name}_limit Tokens of one key at which it seals no more.\n\
         # TYPE {name}_limit gauge\n\
         {name}_limit {MOST_SEALS}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_a_sample() {
        let keys = [("0000000a".to_owned(), 7), ("00000009".to_owned(), 0)];
        let mut text = String::new();
        write(&keys, &mut text).unwrap();
        let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                r#"portvakt_sca_token_seals{key="0000000a"} 7"#,
                r#"portvakt_sca_token_seals{key="00000009"} 0"#,
                "portvakt_sca_token_seals_alert 2147483648",
                "portvakt_sca_token_seals_limit 4294967296",
            ]
        );
    }
}
