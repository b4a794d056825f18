//! `portvakt-lists`: imports the EU's trusted lists into a bundle of anchors (CRT-13).

fn main() {}
