//! The shell around the model: the terminal, its events, the user's editor, and time.

mod alert;
mod editor;
mod terminal;

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, Instant};

use alongside_protocol::Request;
use crossterm::event::{Event, EventStream};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use crate::highlight::{Job, Marks};
use crate::message::{Action, CompanionIndex, LinkEvent, Message, RunningCompanion};
use crate::model::{Model, Options};

pub use alert::Alert;
use terminal::Screen;

/// Messages that are applied before the next frame is drawn.
const MAX_MESSAGES_PER_FRAME: usize = 512;

/// The connections to companions. They reconnect by themselves.
pub trait Links {
    /// Sends a request; its response is an event.
    fn send(&mut self, companion: CompanionIndex, request: Request);
    /// The companions that are not attached.
    fn running(&mut self) -> Vec<RunningCompanion>;
    /// Attaches another one, with the next index.
    fn attach(&mut self, companion: RunningCompanion);
    /// Waits for what happens next. Nothing is lost if it is dropped while it waits.
    fn next(&mut self) -> impl Future<Output = (CompanionIndex, LinkEvent)>;
    /// What has happened already.
    fn try_next(&mut self) -> Option<(CompanionIndex, LinkEvent)>;
}

#[derive(Clone, Debug)]
pub struct ShellOptions {
    pub model: Options,
    pub mouse: bool,
    pub alert: Alert,
}

/// Shows the reviewer until the user quits, `stop` completes, or the terminal is gone.
pub async fn run(
    mut links: impl Links,
    workspace: Vec<PathBuf>,
    options: ShellOptions,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut screen = Screen::enter(options.mouse)?;
    let size = screen.size()?;
    let mut model = Model::new(options.model.clone(), workspace, size);
    let (highlighted, mut highlights) = mpsc::unbounded_channel();
    let mut shell = Shell {
        start: Instant::now(),
        options,
        highlighted,
    };
    let mut events = Some(EventStream::new());
    let mut stop = pin!(stop);
    screen.draw(&model)?;
    loop {
        let tick = model.next_tick().map(|at| at.saturating_sub(shell.start.elapsed()));
        let message = tokio::select! {
            event = next_event(&mut events) => match event {
                Some(Ok(event)) => from_event(event),
                // The terminal is gone.
                Some(Err(_)) | None => return Ok(()),
            },
            (companion, event) = links.next() => Some(Message::Link(companion, event)),
            Some(result) = highlights.recv() => Some(Message::Highlighted(result)),
            () = sleep(tick) => Some(Message::Tick),
            () = &mut stop => Some(Message::Stop),
        };
        let mut messages: Vec<Message> = message.into_iter().collect();
        while messages.len() < MAX_MESSAGES_PER_FRAME
            && let Some((companion, event)) = links.try_next()
        {
            messages.push(Message::Link(companion, event));
        }
        let mut pending: std::collections::VecDeque<Message> = messages.into();
        while let Some(message) = pending.pop_front() {
            for action in model.update(message, shell.start.elapsed()) {
                match shell.act(action, &mut links, &mut screen, &mut events).await? {
                    Next::Continue => {}
                    Next::Apply(message) => pending.push_back(message),
                    Next::Quit => return Ok(()),
                }
            }
        }
        screen.draw(&model)?;
    }
}

async fn next_event(events: &mut Option<EventStream>) -> Option<io::Result<Event>> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

/// Leaves what is typed to another program.
fn stop_reading(events: &mut Option<EventStream>) {
    *events = None;
    // To end its thread, crossterm wakes its own poll. If the next poll found that together with a key, the key would wait until
    // another one is typed.
    let _ = crossterm::event::poll(Duration::ZERO);
}

async fn sleep(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

fn from_event(event: Event) -> Option<Message> {
    match event {
        Event::Key(key) => Some(Message::Key(key)),
        Event::Mouse(mouse) => Some(Message::Mouse(mouse)),
        Event::Paste(text) => Some(Message::Paste(text)),
        Event::Resize(width, height) => Some(Message::Resize { width, height }),
        Event::FocusGained | Event::FocusLost => None,
    }
}

enum Next {
    Continue,
    Apply(Message),
    Quit,
}

struct Shell {
    start: Instant,
    options: ShellOptions,
    highlighted: mpsc::UnboundedSender<Box<(Job, Marks)>>,
}

impl Shell {
    async fn act(
        &mut self,
        action: Action,
        links: &mut impl Links,
        screen: &mut Screen,
        events: &mut Option<EventStream>,
    ) -> io::Result<Next> {
        match action {
            Action::Send(companion, request) => links.send(companion, *request),
            Action::ListCompanions => return Ok(Next::Apply(Message::Companions(links.running()))),
            Action::Attach(companion) => links.attach(companion),
            Action::Highlight(job) => {
                let highlighted = self.highlighted.clone();
                tokio::task::spawn_blocking(move || {
                    let marks = job.run();
                    // The reviewer may have been closed.
                    let _ = highlighted.send(Box::new((job, marks)));
                });
            }
            Action::Alert(text) => self.options.alert.send(&text),
            Action::Redraw => screen.clear()?,
            Action::Quit => return Ok(Next::Quit),
            Action::Suspend => {
                stop_reading(events);
                terminal::restore();
                suspend().await;
                screen.reenter()?;
                *events = Some(EventStream::new());
                let (width, height) = screen.size()?;
                return Ok(Next::Apply(Message::Resize { width, height }));
            }
            Action::OpenEditor { key, path, text, line } => {
                stop_reading(events);
                terminal::restore();
                let original = text.clone();
                let text = editor::edit(&path, &text, line).await;
                screen.reenter()?;
                *events = Some(EventStream::new());
                return Ok(Next::Apply(Message::EditorClosed { key, original, text }));
            }
        }
        Ok(Next::Continue)
    }
}

/// Stops this process until the user's shell continues it.
#[cfg(unix)]
async fn suspend() {
    use rustix::process::{Signal, kill_current_process_group};
    use tokio::signal::unix::{SignalKind, signal};

    /// The kernel may drop the signal: then nothing stops, and nothing continues.
    const STOP_TIMEOUT: Duration = Duration::from_millis(300);

    let continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()));
    // The whole job, as the terminal does it. This thread may run on for a moment.
    let _ = kill_current_process_group(Signal::TSTP);
    if let Ok(mut continued) = continued {
        let _ = tokio::time::timeout(STOP_TIMEOUT, continued.recv()).await;
    }
}

#[cfg(not(unix))]
#[expect(clippy::unused_async, reason = "other systems wait here")]
async fn suspend() {}
