//! The rows of the table, by their numbers in the list of attacks; "gone" measures the times of row 1, and row 4.

mod control;
mod crowd;
mod flight;
mod flood;
mod gone;
mod goodput;
mod memory;
mod records;
mod slowhttp;

use crate::{arena::Arena, table::Line};

/// A row: its number on the command line, and its measurement.
pub type Row = (&'static str, fn(&Arena) -> Vec<Line>);

/// Every row, in the order of the table.
pub const ALL: [Row; 11] = [
    ("gone", gone::run),
    ("1", crowd::slow),
    ("2", crowd::descriptors),
    ("3", flight::run),
    ("5", records::run),
    ("6", memory::run),
    ("7", flood::run),
    ("10", control::noise),
    ("11", control::probes),
    ("slowhttptest", slowhttp::run),
    ("goodput", goodput::run),
];
