//! A progress bar for long work.

use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};

use super::terminal::Terminal;
use crate::transfer::Progress;

/// The number of artifacts from which a progress bar is worth showing.
const LONG_WORK: u64 = 500;

/// A progress bar on standard error, for long work at a terminal.
pub struct Bar(Option<ProgressBar>);

impl Bar {
    pub fn new(what: &'static str, terminal: &Terminal<'_>) -> Self {
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} artifacts, {eta}");
        let bar = |style| ProgressBar::new(0).with_style(style).with_message(what);
        Self(terminal.err_is_terminal.then_some(style.ok()).flatten().map(bar))
    }

    /// What to call while it goes on; nothing where no bar is shown.
    pub fn progress(&self) -> Option<Progress> {
        let bar = self.0.clone()?;
        Some(Arc::new(move |done, all| {
            if all >= LONG_WORK && (done % 64 == 0 || done == all) {
                bar.set_length(all);
                bar.set_position(done);
            }
        }))
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
