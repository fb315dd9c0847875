//! The figures of a load, and which of them are not good enough.

use std::fmt;
use std::time::Duration;

use super::Part;
use super::gauge::Reading;

/// What the program may use after a load.
pub(crate) const RELEASED_KILOBYTES: u64 = 25_000;
/// How much more the program may use at the end of a load than in the middle: a tenth, and what a page of the allocator is worth.
const GROWTH: f64 = 1.1;
const GROWTH_SLACK_KILOBYTES: f64 = 4096.0;
/// How much slower the slowest session may be than the middle one, and all of them with clients that do not read than without.
const SLOWEST: f64 = 3.0;
/// Below this, the clock and the scheduler decide.
const NOISE: Duration = Duration::from_millis(2);
/// Connections of the load itself that are just being closed.
pub(crate) const CLOSING_FILES: usize = 4;
/// What the state directory may hold when nothing is pending.
const DISK_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Default)]
pub struct Report {
    pub(crate) sessions: usize,
    pub(crate) deaf: usize,
    pub(crate) reviews: usize,
    pub(crate) contexts: usize,
    pub(crate) decisions: usize,
    pub(crate) alone: Part,
    pub(crate) together: Part,
    pub(crate) samples: Vec<(Duration, Reading)>,
    pub(crate) idle: Reading,
    pub(crate) loaded: Reading,
    pub(crate) released: (Reading, Duration),
    pub(crate) vanished: usize,
    pub(crate) vanishing_took: Duration,
    pub(crate) before_vanishing: Reading,
    pub(crate) after_vanishing: (Reading, Duration),
}

impl Report {
    /// The highest memory in the middle third and in the last third of the load.
    fn memory(&self) -> (f64, f64) {
        let third = self.samples.len() / 3;
        let highest = |samples: &[(Duration, Reading)]| {
            let highest = samples.iter().map(|(_, reading)| reading.memory_kilobytes).max();
            f64::from(u32::try_from(highest.unwrap_or_default()).unwrap_or(u32::MAX))
        };
        (
            highest(&self.samples[third..third * 2]),
            highest(&self.samples[third * 2..]),
        )
    }

    /// What is not as it should be, in sentences.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        let (middle, end) = self.memory();
        if end > middle * GROWTH + GROWTH_SLACK_KILOBYTES {
            failures.push(format!("memory grew from {middle} kB to {end} kB during the load"));
        }
        let (released, _) = self.released;
        if released.memory_kilobytes >= RELEASED_KILOBYTES {
            failures.push(format!("{} kB are in use after the load", released.memory_kilobytes));
        }
        let middle = self.together.all.quantile(0.5);
        for median in &self.together.medians {
            if *median > middle.mul_f64(SLOWEST) + NOISE {
                failures.push(format!("a session has a median of {median:?}, all together {middle:?}"));
            }
        }
        let alone = self.alone.all.quantile(0.5);
        if middle > alone.mul_f64(SLOWEST) + NOISE {
            failures.push(format!(
                "clients that do not read slow the others from {alone:?} to {middle:?}"
            ));
        }
        let (after, _) = self.after_vanishing;
        if after.sessions > 0 {
            failures.push(format!("{} sessions of clients that vanished are left", after.sessions));
        }
        if after.files > self.before_vanishing.files + CLOSING_FILES {
            failures.push(format!(
                "{} files are open after clients vanished, {} before",
                after.files, self.before_vanishing.files
            ));
        }
        if after.memory_kilobytes >= RELEASED_KILOBYTES {
            failures.push(format!(
                "{} kB are in use after clients vanished",
                after.memory_kilobytes
            ));
        }
        if after.disk_bytes > DISK_BYTES {
            failures.push(format!("{} bytes are on disk after clients vanished", after.disk_bytes));
        }
        failures
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |out: &mut fmt::Formatter<'_>, name: &str, part: &Part| {
            let (count, median, high) = (part.all.count(), part.all.quantile(0.5), part.all.quantile(0.99));
            let slowest = part.medians.iter().max().copied().unwrap_or_default();
            writeln!(
                out,
                "  {name}: {count} proposals, median {median:.1?}, 99% {high:.1?}, slowest session's median {slowest:.1?}"
            )
        };
        let reading = |out: &mut fmt::Formatter<'_>, name: &str, now: &Reading| {
            writeln!(
                out,
                "  {name}: {:.1} MB, {} open files, {} threads, {:.1} MB on disk",
                kilo(now.memory_kilobytes),
                now.files,
                now.threads,
                kilo(now.disk_bytes / 1000)
            )
        };
        writeln!(
            out,
            "{} sessions (the limit), {} of them never read; {} pending reviews, {} decisions, {} context changes",
            self.sessions, self.deaf, self.reviews, self.decisions, self.contexts
        )?;
        part(out, "all reading  ", &self.alone)?;
        part(out, "some not     ", &self.together)?;
        reading(out, "idle         ", &self.idle)?;
        reading(out, "loaded       ", &self.loaded)?;
        let (middle, end) = self.memory();
        writeln!(
            out,
            "  highest in the middle third {:.1} MB, in the last {:.1} MB",
            middle / 1000.0,
            end / 1000.0
        )?;
        reading(out, "after the load", &self.released.0)?;
        writeln!(out, "    {:.1} s later", self.released.1.as_secs_f64())?;
        writeln!(
            out,
            "  {} clients vanished in {:.1} s",
            self.vanished,
            self.vanishing_took.as_secs_f64()
        )?;
        reading(out, "before them  ", &self.before_vanishing)?;
        reading(out, "after them   ", &self.after_vanishing.0)?;
        let (after, waited) = &self.after_vanishing;
        writeln!(
            out,
            "    {} sessions left after {:.1} s",
            after.sessions,
            waited.as_secs_f64()
        )?;
        for failure in self.failures() {
            writeln!(out, "FAILED: {failure}")?;
        }
        Ok(())
    }
}

fn kilo(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / 1000.0
}
