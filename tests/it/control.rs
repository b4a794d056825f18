//! SCA-10 to SCA-12, SCA-19, ERR-7: the control listener, asked as the bank's services ask it.

/// A control listener with a store behind it, and who asks it.
mod bank;

/// Who may ask, over what, how much and how slowly.
mod doors;

/// By which name, and from which page.
mod hosts;

/// The end of an SCA.
mod sca;

/// PSUs, one by one and from a file.
mod psu;

/// What the keys of SCA links have sealed is counted.
mod seals;

/// `portvakt sca` and `portvakt psu`, as an operator runs them.
mod program;
