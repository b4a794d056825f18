//! The report: a line for each check, with what to mend.

use serde_json::{Value, json};
use std::fmt::Write;

/// The group of the checks of the assertion.
pub(super) const ASSERTION: &str = "assertion";

/// The group of the checks of answers.
pub(super) const ANSWERS: &str = "answers";

/// The number of answers that a line of the report names.
pub(super) const NAMED: usize = 3;

/// A property of the core.
#[derive(Clone, Debug)]
pub(super) struct Check {
    /// The group of the check: `assertion`, `answers` or `endurance`.
    pub(super) area: &'static str,
    /// Its stable name.
    pub(super) name: &'static str,
    /// What the core did.
    pub(super) found: String,
    /// What to mend, if the core has a fault.
    pub(super) mend: Option<String>,
}

impl Check {
    /// A check with its result: `mend` counts where it has not passed.
    pub(super) fn new(
        area: &'static str,
        name: &'static str,
        found: String,
        passed: bool,
        mend: &str,
    ) -> Self {
        let mend = (!passed).then(|| mend.to_owned());
        Self {
            area,
            name,
            found,
            mend,
        }
    }
}

/// The report for people.
pub(super) fn written(core: &str, checks: &[Check]) -> String {
    let mut text = format!("probe of the core at {core}\n");
    let mut area = "";
    for check in checks {
        if check.area != area {
            area = check.area;
            let _ = write!(text, "\n{area}\n");
        }
        let word = if check.mend.is_some() { "MEND" } else { "ok" };
        let _ = writeln!(text, "  {word:<4}  {:<20} {}", check.name, check.found);
        if let Some(mend) = &check.mend {
            let _ = writeln!(text, "        -> {mend}");
        }
    }
    let faults = to_mend(checks);
    let _ = match faults {
        0 => writeln!(text, "\n{} checks, nothing to mend", checks.len()),
        _ => writeln!(text, "\n{} checks, {faults} to mend", checks.len()),
    };
    text
}

/// The report for programs.
pub(super) fn json(core: &str, checks: &[Check]) -> Value {
    let list: Vec<_> = checks
        .iter()
        .map(|check| {
            json!({
                "area": check.area, "name": check.name, "passed": check.mend.is_none(),
                "found": check.found, "mend": check.mend,
            })
        })
        .collect();
    json!({"core": core, "to_mend": to_mend(checks), "checks": list})
}

/// The number of faults.
pub(super) fn to_mend(checks: &[Check]) -> usize {
    checks.iter().filter(|check| check.mend.is_some()).count()
}
