//! What is measured, one file each.

mod alone;
mod burst;
mod context;
mod first_calls;
mod memory;
mod open_diff;
mod start;
mod syscalls;

use crate::scenario::Scenario;

pub fn all() -> Vec<Box<dyn Scenario>> {
    let mut all: Vec<Box<dyn Scenario>> = vec![
        Box::new(start::Start),
        Box::new(memory::IdleMemory),
        Box::new(burst::Burst),
        Box::new(first_calls::FirstCalls),
        Box::new(open_diff::OpenDiff),
        Box::new(context::ContextChange),
        Box::new(syscalls::SystemCalls),
    ];
    all.extend(alone::all());
    all
}
