//! Statements that are sent together: one round trip for all of them.

use super::connect::Link;
use std::{future::poll_fn, pin::Pin, task::Poll};
use tokio_postgres::{Error, Statement, types::ToSql};

/// A parameter of a command.
pub(super) type Parameter = Box<dyn ToSql + Sync + Send>;

/// A prepared statement with its parameters.
pub(super) struct Command<'s> {
    statement: &'s Statement,
    parameters: Vec<Parameter>,
}

impl<'s> Command<'s> {
    /// A statement with parameters of different types.
    pub(super) fn of(statement: &'s Statement, parameters: Vec<Parameter>) -> Self {
        Self {
            statement,
            parameters,
        }
    }

    /// A statement with parameters of one type.
    pub(super) fn new<T, const N: usize>(statement: &'s Statement, parameters: [T; N]) -> Self
    where
        T: ToSql + Sync + Send + 'static,
    {
        let boxed = parameters
            .into_iter()
            .map(|parameter| -> Parameter { Box::new(parameter) });
        Self::of(statement, boxed.collect())
    }
}

/// Sends all commands at once, in their order, and waits for the responses. Returns the number of rows of the last one.
///
/// # Errors
/// The first error, with the number of commands after the failed one. These failed too, if all are of one transaction.
pub(super) async fn send(link: &Link, commands: Vec<Command<'_>>) -> Result<u64, (Error, usize)> {
    let mut responses: Vec<Option<Pin<Box<_>>>> = commands
        .into_iter()
        .map(|command| {
            let response = link
                .client
                .execute_raw(command.statement, command.parameters);
            Some(Box::pin(response))
        })
        .collect();
    // A command is sent when its response is polled for the first time.
    let mut last = 0;
    poll_fn(|context| {
        let count = responses.len();
        let mut is_waiting = false;
        for (index, slot) in responses.iter_mut().enumerate() {
            let Some(response) = slot else { continue };
            match response.as_mut().poll(context) {
                Poll::Ready(Ok(rows)) => {
                    *slot = None;
                    if index + 1 == count {
                        last = rows;
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err((error, count - index - 1))),
                Poll::Pending => is_waiting = true,
            }
        }
        if is_waiting {
            Poll::Pending
        } else {
            Poll::Ready(Ok(last))
        }
    })
    .await
}
