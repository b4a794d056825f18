//! The schemas of a state file, as the steps from one to the next.

/// The steps from one schema to the next. The first makes schema 1 from an empty file. A step that was released never
/// changes.
pub(super) const MIGRATIONS: [&str; 6] = [
    include_str!("schema.sql"),
    include_str!("learned.sql"),
    BLOCKS,
    ORIGIN,
    CUSTOMERS_AND_MOVES,
    EVENTS,
];

/// CTL-2: the part of step 2 to 3 that makes the table of blocks.
const BLOCKS: &str = include_str!("blocks.sql");

/// SCA-17, SCA-22: the step from 3 to 4, which records who confirmed a context.
const ORIGIN: &str = include_str!("origin.sql");

/// CTL-1, CTL-4: the step from 4 to 5, for the keys of the bank's customers, the days of last use, and moves of TPPs.
const CUSTOMERS_AND_MOVES: &str = include_str!("customers_and_moves.sql");

/// CTL-3: the step from 5 to 6, for the stream of events and the customers in them.
const EVENTS: &str = include_str!("events.sql");
