//! Runs steps in order and prints a summary of their results.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// What a step that did not fail found out.
pub(crate) enum Verdict {
    Passed,
    /// These tests failed at first.
    PassedAgain(Vec<String>),
    /// Something that the step needs is not there; why, as a sentence.
    NotChecked(String),
}

impl From<()> for Verdict {
    fn from((): ()) -> Self {
        Self::Passed
    }
}

type Action = Box<dyn FnOnce() -> Result<Verdict, String> + Send>;

/// Steps in order. A failing step ends the plan, because later ones depend on it.
#[derive(Default)]
pub(crate) struct Plan {
    /// Each with those that run at the same time.
    steps: Vec<Vec<(&'static str, Action)>>,
}

enum Outcome {
    /// With what the summary says about it.
    Passed(Duration, String),
    NotChecked(String),
    Failed(Duration, String),
    NotRun,
}

impl Plan {
    pub(crate) fn step<V: Into<Verdict>>(
        &mut self,
        name: &'static str,
        action: impl FnOnce() -> Result<V, String> + Send + 'static,
    ) {
        self.steps.push(vec![(name, boxed(action))]);
    }

    /// A step that runs at the same time as the one before it, because both mostly wait.
    pub(crate) fn at_the_same_time<V: Into<Verdict>>(
        &mut self,
        name: &'static str,
        action: impl FnOnce() -> Result<V, String> + Send + 'static,
    ) {
        let mut together = self.steps.pop().unwrap_or_default();
        together.push((name, boxed(action)));
        self.steps.push(together);
    }

    #[cfg(test)]
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.steps.iter().flatten().map(|(name, _)| *name).collect()
    }

    /// Runs all steps and prints the results.
    pub(crate) fn run(self) -> ExitCode {
        let count = self.steps.len();
        let mut outcomes = Vec::new();
        let mut failed = false;
        for (position, together) in self.steps.into_iter().enumerate() {
            if failed {
                outcomes.extend(together.into_iter().map(|(name, _)| (name, Outcome::NotRun)));
                continue;
            }
            let names: Vec<&str> = together.iter().map(|(name, _)| *name).collect();
            eprintln!("xtask: [{}/{count}] {}", position + 1, names.join(" and "));
            let new = run_together(together);
            failed = new.iter().any(|(_, outcome)| matches!(outcome, Outcome::Failed(..)));
            outcomes.extend(new);
        }
        summarize(&outcomes);
        if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

fn boxed<V: Into<Verdict>>(action: impl FnOnce() -> Result<V, String> + Send + 'static) -> Action {
    Box::new(|| action().map(Into::into))
}

fn run_together(steps: Vec<(&'static str, Action)>) -> Vec<(&'static str, Outcome)> {
    let start = |(name, action): (&'static str, Action)| (name, thread::spawn(|| run(action)));
    let running: Vec<_> = steps.into_iter().map(start).collect();
    let outcome = |thread: thread::JoinHandle<Outcome>| {
        let panicked = |_| Outcome::Failed(Duration::ZERO, "the step panicked".to_owned());
        thread.join().unwrap_or_else(panicked)
    };
    running
        .into_iter()
        .map(|(name, thread)| (name, outcome(thread)))
        .collect()
}

fn run(action: Action) -> Outcome {
    let start = Instant::now();
    match action() {
        Ok(Verdict::Passed) => Outcome::Passed(start.elapsed(), String::new()),
        Ok(Verdict::PassedAgain(tests)) => {
            let note = format!("; only at the second attempt: {}", tests.join(", "));
            Outcome::Passed(start.elapsed(), note)
        }
        Ok(Verdict::NotChecked(reason)) => Outcome::NotChecked(reason),
        Err(reason) => Outcome::Failed(start.elapsed(), reason),
    }
}

fn summarize(outcomes: &[(&str, Outcome)]) {
    let width = outcomes.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    eprintln!();
    for (name, outcome) in outcomes {
        match outcome {
            Outcome::Passed(time, note) => eprintln!("  {name:width$}  passed   {:7.1} s{note}", time.as_secs_f64()),
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::*;

    #[test]
    fn steps_at_the_same_time_do_not_wait_for_each_other() {
        let barrier = Arc::new(Barrier::new(2));
        let meet = |barrier: Arc<Barrier>| {
            move || {
                barrier.wait();
                Ok(())
            }
        };
        let mut plan = Plan::default();
        plan.step("one", meet(Arc::clone(&barrier)));
        plan.at_the_same_time("another", meet(barrier));
        assert_eq!(plan.run(), ExitCode::SUCCESS);
    }

    #[test]
    fn failing_step_ends_the_plan() {
        let mut plan = Plan::default();
        plan.step("one", || Err::<(), _>("no".to_owned()));
        plan.at_the_same_time("another", || Ok(()));
        plan.step::<()>("never", || unreachable!("it depends on the first"));
        assert_eq!(plan.run(), ExitCode::FAILURE);
    }
}
