//! The text of one reason.

/// The guide to one reason.
#[derive(Clone, Copy, Debug)]
pub struct Guide {
    /// The rules that it stands for.
    pub rules: &'static str,
    /// When it is given.
    pub when: &'static str,
    /// The remedy.
    pub remedy: &'static str,
    /// A request that gets it.
    pub example: &'static str,
}
