//! `cargo xtask bench`: alongside next to a companion on Node, one with the official Rust SDK, and a floor.
//!
//! To add a measurement, implement [`Scenario`](scenario::Scenario) in a file in `scenarios/` and add it to [`scenarios::all`]. Everything
//! that judges or draws figures is pure: `samples.rs`, `judge.rs`, `growth.rs`, `table.rs` and `chart.rs`.

pub mod chart;
pub mod companion;
pub mod document;
pub mod editor;
pub mod growth;
pub mod http;
pub mod judge;
pub mod processes;
pub mod results;
pub mod row;
pub mod run;
pub mod samples;
pub mod scenario;
pub mod scenarios;
pub mod sessions;
pub mod subject;
pub mod supervisor;
pub mod table;
pub mod texts;
