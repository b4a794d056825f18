//! The members of a payment, as the product of a deployment declares them.

/// A member of a payment, as a product declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Whether every payment of the product has it.
    pub required: bool,
    /// Its accepted values.
    pub kind: MemberKind,
}

/// The accepted values of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// A member of the interface: those that the interface's rule accepts.
    Interface,
    /// A string: one of these, or if there are none, any of this length in characters.
    Text {
        /// The least length.
        least: usize,
        /// The greatest length.
        most: usize,
        /// The only values, where there are any.
        one_of: Vec<String>,
    },
    /// A date as in 2027-01-31.
    Date,
    /// True or false.
    Boolean,
    /// An amount object (PAY-4, PAY-5).
    Amount,
    /// An account reference (PAY-5, PAY-6).
    Account,
    /// The payments of a bulk, at least one, each judged by the rules that all payments share (PAY-14).
    Payments,
}
