//! What every tool is: a declaration, and a plan of what a call would do.

use serde_json::{Map, Value};

use super::answer::{NextCall, Refusal};
use super::call::Call;
use super::declare::{Acts, Declaration};
use super::input::Input;
use super::plan::Plan;
use crate::error::Result;

/// One tool: what it is, and what it would do.
pub trait Tool: Sync {
    /// What it is.
    fn declaration(&self) -> &'static Declaration;

    /// The call that input of these fields was probably meant to be. The fields stand under their real names.
    fn repair(&self, _call: &Call<'_>, fields: Map<String, Value>) -> NextCall {
        NextCall::new(self.declaration().name, Value::Object(fields))
    }

    /// What a call with this input acts on.
    fn acts(&self, _input: &Input) -> Acts {
        self.declaration().acts
    }

    /// Checks what the fields say together, as far as nothing but the input is needed. The dispatcher asks it before each
    /// plan, and of each call that an answer offers.
    ///
    /// # Errors
    /// `Invalid` or `Unchanged`.
    fn judge(&self, _input: &Input) -> Result<()> {
        Ok(())
    }

    /// Reads and checks, and says what would be done.
    ///
    /// # Errors
    /// Whatever stands in the way, with the call that helps.
    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal>;
}
