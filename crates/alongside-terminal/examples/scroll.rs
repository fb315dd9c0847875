//! How fast a file of 200,000 lines scrolls: every frame is computed, drawn and encoded for a terminal that discards it.
//!
//! ```sh
//! cargo run --release -p alongside-terminal --example scroll
//! ```

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement prints its result"
)]

use std::io;
use std::time::{Duration, Instant};

use alongside_core::ReviewId;
use alongside_core::draft::Draft;
use alongside_protocol::{Notification, Request, Response, ReviewSummary, ReviewTexts};
use alongside_terminal::{Action, Background, ColorDepth, LinkEvent, Message, Model, Options, Theme};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use serde_json::json;

const LINES: usize = 200_000;
const SIZE: (u16, u16) = (200, 60);

fn main() {
    let base: String = (0..LINES).fold(String::new(), |text, line| {
        text + &format!("    let value_{line} = compute(\"line {line}\", {line}); // a comment\n")
    });
    let proposal: String = base
        .split_inclusive('\n')
        .enumerate()
        .fold(String::new(), |text, (line, old)| {
            text + &if line % 1000 == 500 {
                old.replace("compute", "recompute")
            } else {
                old.to_owned()
            }
        });
    let draft = Draft::new(base, proposal, None);
    let mut reviewer = Reviewer::new(&draft);
    reviewer.press(KeyCode::Char('O'));
    for (name, key, frames) in [
        ("line by line", KeyCode::Down, 3000),
        ("page by page", KeyCode::PageDown, 3000),
        ("hunk by hunk", KeyCode::Char('p'), 190),
        ("to the end and back", KeyCode::End, 1),
        ("to the start", KeyCode::Home, 1),
    ] {
        let start = Instant::now();
        let mut slowest = Duration::ZERO;
        for _ in 0..frames {
            let frame = Instant::now();
            reviewer.press(key);
            slowest = slowest.max(frame.elapsed());
        }
        let rate = f64::from(frames) / start.elapsed().as_secs_f64();
        println!(
            "{name:<20} {rate:>8.0} frames/s, slowest {:>6.2} ms",
            slowest.as_secs_f64() * 1000.0
        );
    }
    let start = Instant::now();
    reviewer.press(KeyCode::Char('s'));
    println!(
        "{:<20} {:>8.2} ms",
        "another layout",
        start.elapsed().as_secs_f64() * 1000.0
    );
}

struct Reviewer {
    model: Model,
    terminal: Terminal<CrosstermBackend<io::Sink>>,
    now: Duration,
}

impl Reviewer {
    fn new(draft: &Draft) -> Self {
        let theme = Theme {
            depth: ColorDepth::True,
            background: Background::Dark,
        };
        let options = Options {
            theme,
            owns_companion: false,
            starts_with_chat: false,
            id: "bench".to_owned(),
        };
        let area = Rect::new(0, 0, SIZE.0, SIZE.1);
        let viewport = TerminalOptions {
            viewport: Viewport::Fixed(area),
        };
        let mut reviewer = Self {
            model: Model::new(options, Vec::new(), SIZE),
            terminal: Terminal::with_options(CrosstermBackend::new(io::sink()), viewport).unwrap(),
            now: Duration::ZERO,
        };
        let summary: ReviewSummary = serde_json::from_value(json!({
            "id": 1, "path": "large.rs", "agent": "bench", "session": "mcp:1", "revision": 1, "version": 0, "newFile": false,
            "edited": false, "size": {"added": 0, "removed": 0}, "conflicts": 0, "takesReason": false, "opened": 0,
        }))
        .unwrap();
        let opened = Notification::ReviewOpened(summary.clone());
        reviewer.apply(Message::Link(0, LinkEvent::Notification(Box::new(opened))));
        let texts = ReviewTexts {
            summary,
            base: Some(draft.base().clone()),
            proposal: draft.proposal().clone(),
            draft: draft.text().into(),
            hunks: draft.hunks().collect(),
            notes: Vec::new(),
        };
        let request = Request::ReviewGet(alongside_protocol::ReviewRef { review: ReviewId(1) });
        let reply = LinkEvent::Reply {
            request: Box::new(request),
            result: Ok(Box::new(Response::ReviewGet(texts))),
        };
        reviewer.apply(Message::Link(0, reply));
        reviewer
    }

    fn press(&mut self, code: KeyCode) {
        self.apply(Message::Key(KeyEvent::new(code, KeyModifiers::NONE)));
        self.terminal.draw(|frame| self.model.draw(frame)).unwrap();
    }

    fn apply(&mut self, message: Message) {
        self.now += Duration::from_millis(16);
        for action in self.model.update(message, self.now) {
            // Colors come from another thread in the program; a frame does not wait for them.
            if let Action::Highlight(job) = action {
                std::thread::spawn(move || job.run());
            }
        }
    }
}
