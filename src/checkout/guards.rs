//! What the settings of a repository have to say on a check-in before it is made.

use super::open::Checkout;
use crate::error::{Error, Kind, Result};
use crate::repo::setting::REFUSE_HOOKS;

impl Checkout {
    /// Refuses any check-in where a setting forbids it.
    ///
    /// # Errors
    /// [`Kind::Refused`], naming the setting.
    pub fn refuse_if_forbidden(&self) -> Result<()> {
        let settings = self.settings();
        if settings.is_on("dont-commit")? {
            return Err(Error::new(
                Kind::Refused,
                "the setting `dont-commit` is on here, so nothing is checked in",
            )
            .with_hint("Nothing was saved. Work in another repository, or have that setting turned off."));
        }
        let hooks = settings.hooks()?;
        if let Some(hook) = hooks.first()
            && settings.is_on(REFUSE_HOOKS)?
        {
            let what = format!("the {hook} would not run, and the setting `{REFUSE_HOOKS}` is on here");
            return Err(Error::new(Kind::Refused, what)
                .with_hint("Nothing was saved. Check in by plain Fossil, which runs hooks, or have that setting turned off."));
        }
        Ok(())
    }

    /// What plain Fossil would do around a check-in here and OCX does not, one line each.
    ///
    /// # Errors
    /// [`Kind::Busy`], [`Kind::Corrupt`].
    pub fn passed_over(&self) -> Result<Vec<String>> {
        let settings = self.settings();
        let mut lines: Vec<String> =
            settings.hooks()?.iter().map(|hook| format!("the {hook} is not run")).collect();
        if settings.is_on("clearsign")? {
            lines.push("the check-in is not signed, though the setting `clearsign` is on".to_owned());
        }
        if settings.is_on("th1-hooks")? {
            lines.push("no TH1 hook is run, though the setting `th1-hooks` is on".to_owned());
        }
        Ok(lines)
    }
}
