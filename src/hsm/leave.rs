//! The end of a process that has loaded modules.
//!
//! The threads of a library may still run, or wait in it for ever, while the destructors of the process run: that ends by a segmentation fault,
//! or does not end. So such a process finalises its modules and ends without destructors.

use crate::module;
use portvakt_base::terminal;
use std::{process::ExitCode, time::Duration};

/// The longest time that calls under way may take, before the process ends without them.
pub const END_WITHIN: Duration = Duration::from_secs(2);

/// Ends the process with this status if a module was loaded, otherwise returns the status. All that is to be written must be written, except
/// standard output.
pub fn leave(status: ExitCode) -> ExitCode {
    if module::end(END_WITHIN) {
        terminal::flush();
        signal_hook::low_level::exit(number_of(status));
    }
    status
}

/// The number of a status: the standard library compares statuses, and shows no number.
fn number_of(status: ExitCode) -> i32 {
    let number = (0..=u8::MAX).find(|number| ExitCode::from(*number) == status);
    i32::from(number.unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_statuses() {
        for number in [0, 1, 2, 255] {
            assert_eq!(number_of(ExitCode::from(number)), i32::from(number));
        }
    }
}
