//! Something to measure.

use anyhow::Result;

use crate::row::Row;
use crate::run::Run;

pub trait Scenario {
    /// For `--only`.
    fn name(&self) -> &'static str;

    /// Measures all programs in turns, round by round.
    fn run(&mut self, run: &Run) -> Result<Vec<Row>>;
}
