//! The file of a register: read as a stream, with a warning of its age.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use super::super::value::Value;
use super::super::warning::{Condition, Period};
use crate::clock::Timestamp;
use crate::expiring::{Expiring, Level};
use crate::private_file;
use crate::trust::register::{Register, WhenStale};
use crate::trust::{Registers, Validity};

/// The shortest maximum age: the EBA publishes its register once a day.
pub(super) const LEAST_AGE: Duration = Duration::from_secs(24 * 3_600);

/// The longest maximum age: a year.
pub(super) const MOST_AGE: Duration = Duration::from_secs(366 * 24 * 3_600);

/// How far the register's date may lie ahead: the EBA writes no time zone.
const AHEAD: Duration = Duration::from_secs(24 * 3_600);

/// Reads the file of a register, and warns of its age; `None` after a fault.
pub(super) fn take<'r>(
    value: &Value<'_>,
    base: &Path,
    registers: &'r mut Registers,
    read: impl FnOnce(&mut Registers, BufReader<File>, Timestamp) -> Result<(), String>,
) -> Option<&'r Register> {
    let path = value.path(base)?;
    let shown = path.display();
    let opened = private_file::open(&path).and_then(|file| {
        let modified = file.metadata()?.modified()?;
        Ok((file, Timestamp::from(modified)))
    });
    let (file, modified) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            value.fault(format!("{shown} cannot be read: {error}"));
            return None;
        }
    };
    if let Err(fault) = read(registers, BufReader::new(file), modified) {
        value.fault(format!("{shown}: {fault}"));
        return None;
    }
    let register = registers.each().last()?;
    warn_of_age(value, register, registers.settings().stale);
    Some(register)
}

/// Warns of a file that is soon or already past its age: the registers decide by the same time.
fn warn_of_age(value: &Value<'_>, register: &Register, stale: WhenStale) {
    let (as_of, last) = (register.as_of(), register.good_until());
    let (effect, at_end) = match stale {
        WhenStale::Refuse => (
            "every TPP is refused that the bank's own list does not allow, and no other register has; get a new one",
            Level::Over,
        ),
        WhenStale::Pass => ("it still decides; get a new one", Level::Soon),
    };
    let texts = [
        format!(
            "the file and its newest entry are dated {as_of}, which lies ahead: the register's age does not count until then"
        ),
        format!("the register is older than its max_age from {last} on: get a new one"),
        format!("the register is older than its max_age since {last}: {effect}"),
    ];
    value.warn_while(Condition::Period(Period {
        of: Expiring::Register,
        validity: Validity {
            not_before: Timestamp::from_unix(as_of.unix().saturating_sub(AHEAD.as_secs())),
            not_after: last,
        },
        at_end,
        texts,
    }));
}
