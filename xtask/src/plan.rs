//! Runs steps in order and prints a summary of their results.

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What a step that did not fail found out.
pub(crate) enum Verdict {
    Passed,
    /// Something that the step needs is not there; why, as a sentence.
    NotChecked(String),
}

type Action = Box<dyn FnOnce() -> Result<Verdict, String>>;

/// Steps in order. A failing step ends the plan, because later ones depend on it.
#[derive(Default)]
pub(crate) struct Plan {
    steps: Vec<(&'static str, Action)>,
}

enum Outcome {
    Passed(Duration),
    NotChecked(String),
    Failed(Duration, String),
    NotRun,
}

impl Plan {
    pub(crate) fn step(&mut self, name: &'static str, action: impl FnOnce() -> Result<(), String> + 'static) {
        self.steps.push((name, Box::new(|| action().map(|()| Verdict::Passed))));
    }

    /// A step that may need something that not every machine has. It says so in the summary.
    pub(crate) fn step_if_possible(
        &mut self,
        name: &'static str,
        action: impl FnOnce() -> Result<Verdict, String> + 'static,
    ) {
        self.steps.push((name, Box::new(action)));
    }

    /// Runs all steps and prints the results.
    pub(crate) fn run(self) -> ExitCode {
        let count = self.steps.len();
        let mut outcomes = Vec::with_capacity(count);
        let mut failed = false;
        for (position, (name, action)) in self.steps.into_iter().enumerate() {
            if failed {
                outcomes.push((name, Outcome::NotRun));
                continue;
            }
            eprintln!("xtask: [{}/{count}] {name}", position + 1);
            let start = Instant::now();
            let outcome = match action() {
                Ok(Verdict::Passed) => Outcome::Passed(start.elapsed()),
                Ok(Verdict::NotChecked(reason)) => Outcome::NotChecked(reason),
                Err(reason) => Outcome::Failed(start.elapsed(), reason),
            };
            failed = matches!(outcome, Outcome::Failed(..));
            outcomes.push((name, outcome));
        }
        summarize(&outcomes);
        if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

fn summarize(outcomes: &[(&str, Outcome)]) {
    let width = outcomes.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    eprintln!();
    for (name, outcome) in outcomes {
        match outcome {
            Outcome::Passed(time) => eprintln!("  {name:width$}  passed   {:7.1} s", time.as_secs_f64()),
            Outcome::Failed(time, _) => eprintln!("  {name:width$}  FAILED   {:7.1} s", time.as_secs_f64()),
            Outcome::NotChecked(reason) => eprintln!("  {name:width$}  NOT CHECKED: {reason}"),
            Outcome::NotRun => eprintln!("  {name:width$}  NOT RUN, because of the failure above"),
        }
    }
    for (name, outcome) in outcomes {
        if let Outcome::Failed(_, reason) = outcome {
            eprintln!("\n{name}: {reason}");
        }
    }
}
