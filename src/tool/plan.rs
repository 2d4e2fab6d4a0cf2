//! What a tool would do, apart from doing it. A dry run makes the same plan and has no permit to perform it with.

use std::cell::RefCell;

use parking_lot::MutexGuard;

use super::answer::{Operation, Refusal};
use super::result::{AnyResult, ToolResult};
use crate::error::Result;

type Outcome = Result<Box<dyn AnyResult>, Refusal>;

type Perform<'a> = Box<dyn FnOnce(&Permit<'_>) -> Outcome + 'a>;

/// What a tool would do: the operations, what it can say without doing them, and how to do them.
pub struct Plan<'a> {
    log: Vec<Operation>,
    preview: Box<dyn AnyResult>,
    perform: Option<Perform<'a>>,
}

impl<'a> Plan<'a> {
    /// The plan of a tool that only looks, and has looked.
    #[must_use]
    pub fn looked(log: Vec<Operation>, result: impl ToolResult) -> Self {
        Self { log, preview: Box::new(result), perform: None }
    }

    /// The plan of a change. `preview` is the result of a dry run, `perform` makes the change.
    #[must_use]
    pub fn change<R: ToolResult>(
        log: Vec<Operation>,
        preview: impl ToolResult,
        perform: impl FnOnce(&Permit<'_>) -> Result<R, Refusal> + 'a,
    ) -> Self {
        let perform = |permit: &Permit<'_>| -> Outcome { Ok(Box::new(perform(permit)?)) };
        Self { log, preview: Box::new(preview), perform: Some(Box::new(perform)) }
    }

    /// What would be done, and what is known of it.
    pub(super) fn preview(self) -> (Vec<Operation>, Box<dyn AnyResult>) {
        (self.log, self.preview)
    }

    /// Performs the plan. The log then holds what was done, also when it failed.
    pub(super) fn perform(self, permit: &Permit<'_>) -> (Vec<Operation>, Outcome) {
        let Some(perform) = self.perform else {
            return (self.log, Ok(self.preview));
        };
        let done = perform(permit);
        let mut log: Vec<Operation> = self.log.into_iter().filter(|o| !o.changes).collect();
        log.append(&mut permit.log.borrow_mut());
        (log, done)
    }
}

/// The permission to change something. Only the dispatcher makes one, and never in a dry run.
pub struct Permit<'a> {
    log: RefCell<Vec<Operation>>,
    turn: RefCell<Option<MutexGuard<'a, ()>>>,
}

impl<'a> Permit<'a> {
    /// The permission of a call whose turn it is to write, where its tool writes in the checkout.
    pub(super) fn new(turn: Option<MutexGuard<'a, ()>>) -> Self {
        Self { log: RefCell::default(), turn: RefCell::new(turn) }
    }

    /// Logs a change that was made.
    pub fn did(&self, op: &'static str) {
        self.log.borrow_mut().push(Operation::changes(op));
    }

    /// Logs that something was looked at.
    pub fn looked(&self, op: &'static str) {
        self.log.borrow_mut().push(Operation::reads(op));
    }

    /// Lets other calls write in the checkout while this one goes on with what needs no turn, such as a push.
    pub fn end_turn(&self) {
        self.turn.borrow_mut().take();
    }
}
