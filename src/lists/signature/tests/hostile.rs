//! Hostile lists.
