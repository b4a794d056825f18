//! The causes of an error. Libraries name the reason of a failed connection in the innermost cause.

use std::error::Error;

/// The error, and its causes from the outermost to the innermost.
pub fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

/// The text of the error and of its causes, without a cause that the text before already contains.
pub fn describe(error: &(dyn Error + 'static)) -> String {
    chain(error).fold(String::new(), |text, error| {
        let more = error.to_string();
        match text.as_str() {
            "" => more,
            before if before.contains(&more) => text,
            before => format!("{before}: {more}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug, thiserror::Error)]
    enum Fault {
        #[error("no answer")]
        NoAnswer(#[source] io::Error),
        #[error("not read: {0}")]
        Repeated(#[source] io::Error),
    }

    #[test]
    fn each_cause_is_written_once() {
        let inner = || io::Error::other("connection refused");
        for (error, text) in [
            (Fault::NoAnswer(inner()), "no answer: connection refused"),
            (Fault::Repeated(inner()), "not read: connection refused"),
        ] {
            assert_eq!(describe(&error), text);
            assert!(chain(&error).any(|cause| cause.is::<io::Error>()));
        }
    }
}
