//! SCA: the page, the keys, and the days of learning.

use super::*;

#[test]
#[allow(clippy::too_many_lines, reason = "a table is as long as its cases")]
fn pages_keys_and_days_of_sca() {
    let site = Site::new();
    site.write("config/bad.keys", "x");
    let learn = "unknown_psu: learn, ";
    let bad = [
        (
            "page: /sca",
            "page: found \"/sca\"; it must be an absolute URI",
        ),
        (
            "page: https://bank.example/sca#x",
            "page: found \"https://bank.example/sca#x\"; it may not have a fragment",
        ),
        (
            "page: https://u@bank.example",
            "page: found \"https://…@bank.example\"; it may not name a user",
        ),
        (
            "page: https://bank.example/?request=1",
            "page: its query may not have a parameter request",
        ),
        (
            "token_keys: bad.keys",
            "token_keys: bad.keys: line 1 is no key",
        ),
        (
            "token_lifetime: 59s",
            "token_lifetime: found \"59s\"; expected a duration",
        ),
        (
            "psu_present: always",
            "psu_present: found \"always\"; expected one of",
        ),
        (
            &format!("{learn}learn_since: 2027-01-01"),
            "learn_until: missing key",
        ),
        (
            &format!("{learn}learn_since: 2027-01-02, learn_until: 2027-01-01"),
            "learn_until: the last day of learning is before its first",
        ),
        (
            &format!("{learn}learn_since: 2027-01-02, learn_until: soon"),
            "learn_until: found \"soon\"; expected a day",
        ),
        (
            "learn_since: 2027-01-01",
            "learn_since: it has no effect without unknown_psu: learn",
        ),
    ];
    for (keys, expected) in bad {
        let key = keys.split(':').next().unwrap();
        let rest = [
            ("page", "page: 'https://bank.example'"),
            ("token_keys", "token_keys: good.keys"),
        ];
        let rest: Vec<_> = rest
            .iter()
            .filter(|(name, _)| *name != key)
            .map(|(_, text)| *text)
            .collect();
        let sca = format!("sca: {{{}, {keys}}}", rest.join(", "));
        let least = LEAST.lines().filter(|line| !line.starts_with("sca"));
        let text = least.chain([sca.as_str()]).collect::<Vec<_>>().join("\n");
        let faults = site.read(&text).unwrap_err();
        assert_eq!(faults.len(), 1, "{keys}: {faults:?}");
        assert!(
            faults[0].contains(&format!(": sca.{expected}")),
            "{keys}: {faults:?}"
        );
    }
}
