//! Everything that the reviewer knows and shows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use alongside_core::ReviewId;
use alongside_core::context::IdeContext;
use alongside_protocol::{AgentSummary, HiddenFile, Request, ReviewSummary};
use ratatui::layout::Rect;

use crate::chat::Chat;
use crate::edit::Edit;
use crate::input::Input;
use crate::message::{Action, ReviewKey, RunningCompanion};
use crate::review::OpenReview;
use crate::rows::Layout;
use crate::theme::Theme;

/// From this width, a change is shown side by side.
const SPLIT_WIDTH: u16 = 120;
/// How long a notice is shown.
const NOTICE_TIME: Duration = Duration::from_secs(8);

/// Longer notices are cut.
const MAX_NOTICE_LINES: usize = 4;

/// What the user chose.
#[derive(Clone, Debug)]
pub struct Options {
    pub theme: Theme,
    /// Whether the companion runs in this program: it stops with the reviewer, and must not be suspended.
    pub owns_companion: bool,
    /// Whether the chat is shown first.
    pub starts_with_chat: bool,
    /// Unlike that of any other front end: the start of the ids of messages.
    pub id: String,
}

pub struct Model {
    pub(crate) options: Options,
    pub(crate) companions: Vec<Companion>,
    pub(crate) view: View,
    /// In the list.
    pub(crate) selected: usize,
    pub(crate) open: Option<OpenReview>,
    /// The review whose texts are being fetched.
    pub(crate) opening: Option<ReviewKey>,
    pub(crate) overlay: Option<Overlay>,
    pub(crate) notice: Option<Notice>,
    /// `None` for what fits.
    pub(crate) layout: Option<Layout>,
    pub(crate) now: Duration,
    pub(crate) size: (u16, u16),
    /// What can be attached.
    pub(crate) running: Vec<RunningCompanion>,
    pub(crate) chat: Chat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    List,
    Review,
    Chat,
}

/// Something in front of the view.
pub(crate) enum Overlay {
    Help {
        top: usize,
    },
    /// What agents see, and which are connected.
    Context {
        top: usize,
    },
    Companions {
        selected: usize,
    },
    /// The agents that the chat can connect to.
    Agents {
        selected: usize,
    },
    Confirm {
        question: String,
        action: Confirmed,
    },
    Input(Box<Input>),
    Edit(Box<Edit>),
}

/// What is done after a "yes".
#[derive(Clone, Debug)]
pub(crate) enum Confirmed {
    AcceptAll(ReviewKey),
    RejectAll(ReviewKey),
    AcceptEmpty,
    /// Comments reach the agent only with a rejection.
    AcceptWithComments,
    /// Stops the companion too.
    Quit,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) is_problem: bool,
    pub(crate) since: Duration,
}

/// A companion as far as it is known.
#[derive(Debug)]
pub(crate) struct Companion {
    pub(crate) connection: Connection,
    pub(crate) workspace: Vec<PathBuf>,
    pub(crate) reviews: BTreeMap<ReviewId, ReviewSummary>,
    pub(crate) agents: Vec<AgentSummary>,
    pub(crate) context: IdeContext,
    pub(crate) hidden: Vec<HiddenFile>,
    pub(crate) problems: Vec<String>,
    /// Reviews that are being decided here: their end is no news.
    pub(crate) deciding: BTreeSet<ReviewId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    Connecting,
    Connected,
    Reconnecting { reason: String },
}

impl Companion {
    pub(crate) fn new(workspace: Vec<PathBuf>) -> Self {
        Self {
            connection: Connection::Connecting,
            workspace,
            reviews: BTreeMap::new(),
            agents: Vec::new(),
            context: IdeContext::default(),
            hidden: Vec::new(),
            problems: Vec::new(),
            deciding: BTreeSet::new(),
        }
    }

    /// A path relative to its workspace folder.
    pub(crate) fn short<'a>(&self, path: &'a str) -> &'a str {
        let inside = self
            .workspace
            .iter()
            .find_map(|folder| Path::new(path).strip_prefix(folder).ok());
        inside.and_then(Path::to_str).unwrap_or(path)
    }

    pub(crate) fn name(&self) -> String {
        let names = self.workspace.iter().filter_map(|folder| folder.file_name());
        let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.join(", ")
    }
}

/// Cuts an area into rows of given heights, from top to bottom; the one without a height gets what is left. Where there is too little room,
/// the last ones get none. (A general solver would take longer than everything else about a frame.)
pub(crate) fn stacked<const N: usize>(area: Rect, heights: [Option<u16>; N]) -> [Rect; N] {
    let fixed: u16 = heights
        .iter()
        .flatten()
        .fold(0, |sum, height| sum.saturating_add(*height));
    let mut rest = area;
    heights.map(|height| {
        let height = height.unwrap_or(area.height.saturating_sub(fixed)).min(rest.height);
        let row = Rect { height, ..rest };
        rest.y += height;
        rest.height -= height;
        row
    })
}

/// Where things are on the screen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    pub(crate) head: Rect,
    pub(crate) body: Rect,
    pub(crate) notice: Rect,
    pub(crate) keys: Rect,
    pub(crate) status: Rect,
}

impl Model {
    pub fn new(options: Options, workspace: Vec<PathBuf>, size: (u16, u16)) -> Self {
        let view = if options.starts_with_chat {
            View::Chat
        } else {
            View::List
        };
        Self {
            options,
            companions: vec![Companion::new(workspace)],
            view,
            selected: 0,
            open: None,
            opening: None,
            overlay: None,
            notice: None,
            layout: None,
            now: Duration::ZERO,
            size,
            running: Vec::new(),
            chat: Chat::new(),
        }
    }

    pub(crate) fn screen(&self) -> Screen {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let notice = u16::try_from(self.notice_lines().len()).unwrap_or(0);
        let [head, body, notice, keys, status] = stacked(area, [Some(1), None, Some(notice), Some(1), Some(1)]);
        Screen {
            head,
            body,
            notice,
            keys,
            status,
        }
    }

    /// The notice as it is shown.
    pub(crate) fn notice_lines(&self) -> Vec<String> {
        let Some(notice) = &self.notice else {
            return Vec::new();
        };
        let mut lines = crate::view::wrapped(&notice.text, usize::from(self.size.0.saturating_sub(2)));
        lines.truncate(MAX_NOTICE_LINES);
        lines
    }

    /// The rows for the texts of a review.
    pub(crate) fn height(&self) -> usize {
        let notes = self.open.as_ref().map_or(0, |open| open.notes.len());
        usize::from(self.screen().body.height).saturating_sub(notes)
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout.unwrap_or(if self.size.0 >= SPLIT_WIDTH {
            Layout::Split
        } else {
            Layout::Unified
        })
    }

    /// The pending reviews of all companions, in the order of the list.
    pub(crate) fn listed(&self) -> Vec<(ReviewKey, &ReviewSummary)> {
        let companions = self.companions.iter().enumerate();
        let reviews = companions.flat_map(|(companion, known)| {
            let reviews = known.reviews.iter();
            reviews.map(move |(review, summary)| {
                let key = ReviewKey {
                    companion,
                    review: *review,
                };
                (key, summary)
            })
        });
        reviews.collect()
    }

    /// When the model wants to be told that time passed, because something changes then.
    pub fn next_tick(&self) -> Option<Duration> {
        let armed = self.open.as_ref().map(|open| open.shown_at + crate::review::ARM_DELAY);
        let faded = self.notice.as_ref().map(|notice| notice.since + NOTICE_TIME);
        let asked = self.chat.next_tick(self.now);
        [armed, faded, asked]
            .into_iter()
            .flatten()
            .filter(|at| *at > self.now)
            .min()
    }

    pub(crate) fn inform(&mut self, text: impl Into<String>) {
        self.say(text.into(), false);
    }

    pub(crate) fn complain(&mut self, text: impl Into<String>) {
        self.say(text.into(), true);
    }

    fn say(&mut self, text: String, is_problem: bool) {
        self.notice = Some(Notice {
            text,
            is_problem,
            since: self.now,
        });
    }

    /// Forgets what was said long enough ago.
    pub(crate) fn fade(&mut self) {
        let is_over = |notice: &Notice| self.now >= notice.since + NOTICE_TIME;
        if self.notice.as_ref().is_some_and(is_over) {
            self.notice = None;
        }
    }

    /// What the texts on the screen need.
    pub(crate) fn wanted(&mut self) -> Vec<Action> {
        if self.view == View::Chat {
            return self.wanted_for_chat();
        }
        let height = self.height();
        let layout = self.layout();
        let Some(open) = self.open.as_mut() else {
            return Vec::new();
        };
        open.set_layout(layout);
        let jobs = open.missing_marks(height);
        jobs.into_iter().map(Action::Highlight).collect()
    }

    fn wanted_for_chat(&mut self) -> Vec<Action> {
        let missing = self.chat.missing_diffs();
        let width = self.chat_screen(self.screen().body).log.width;
        self.chat.lay_out(width, self.options.theme);
        let requests = missing.into_iter().map(Request::Diff);
        requests.map(|request| Action::Send(0, Box::new(request))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fill_an_area_and_never_leave_it() {
        for height in 0..10 {
            let area = Rect::new(0, 0, 5, height);
            let rows = stacked(area, [Some(1), None, Some(2), Some(1)]);
            assert_eq!(
                rows.iter().map(|row| row.height).sum::<u16>(),
                height.max(4).min(height)
            );
            assert!(rows.iter().all(|row| row.bottom() <= height));
        }
        assert_eq!(
            stacked(Rect::new(0, 0, 5, 10), [Some(1), None, Some(2)])[1],
            Rect::new(0, 1, 5, 7)
        );
    }
}
