//! What companions report: connections, responses and notifications.

use alongside_protocol::{
    Empty, ErrorKind, Notification, Request, RequestError, Response, ReviewClosed, ReviewRef, ReviewSummary, requests,
};

use crate::message::{Action, CompanionIndex, LinkEvent, ReviewKey};
use crate::model::{Confirmed, Connection, Model, Overlay, View};
use crate::review::OpenReview;

use super::send;

impl Model {
    pub(super) fn link(&mut self, index: CompanionIndex, event: LinkEvent) -> Vec<Action> {
        let Some(companion) = self.companions.get_mut(index) else {
            return Vec::new();
        };
        match event {
            LinkEvent::Connected { workspace, .. } => {
                let returned = matches!(companion.connection, Connection::Reconnecting { .. });
                companion.connection = Connection::Connected;
                companion.workspace = workspace;
                companion.deciding.clear();
                if returned {
                    self.inform("Connected again.");
                }
                self.fetch(index)
            }
            LinkEvent::Disconnected { reason } => {
                companion.connection = Connection::Reconnecting { reason };
                if let Some(open) = self.open.as_mut().filter(|open| open.key.companion == index) {
                    open.is_deciding = false;
                }
                if let Some(Overlay::Edit(edit)) = self.overlay.as_mut() {
                    edit.is_saving = false;
                }
                Vec::new()
            }
            LinkEvent::Reply { request, result } => match result {
                Ok(response) => self.reply(index, *request, *response),
                Err(error) => self.refused(index, *request, error),
            },
            LinkEvent::Notification(notification) => self.notified(index, *notification),
        }
    }

    /// Asks for everything that is shown.
    fn fetch(&mut self, index: CompanionIndex) -> Vec<Action> {
        let mut actions = vec![
            send::<requests::Status>(index, Empty {}),
            send::<requests::ContextShow>(index, Empty {}),
        ];
        if let Some(open) = self.open.as_ref().filter(|open| open.key.companion == index) {
            let review = open.key.review;
            actions.push(send::<requests::ReviewGet>(index, ReviewRef { review }));
        }
        if self.view == View::Chat && index == 0 {
            actions.extend(self.fetch_chat());
        }
        actions
    }

    fn reply(&mut self, index: CompanionIndex, request: Request, response: Response) -> Vec<Action> {
        match (request, response) {
            (_, Response::Status(status)) => {
                let companion = &mut self.companions[index];
                companion.reviews = status.reviews.into_iter().map(|review| (review.id, review)).collect();
                companion.agents = status.agents;
                companion.problems = status.problems;
                self.open_if_alone()
            }
            (_, Response::ContextShow(shown)) => {
                let companion = &mut self.companions[index];
                companion.context = shown.context;
                companion.hidden = shown.hidden;
                Vec::new()
            }
            (_, Response::ReviewGet(texts)) => {
                let key = ReviewKey {
                    companion: index,
                    review: texts.summary.id,
                };
                let (now, layout, height) = (self.now, self.layout(), self.height());
                if let Some(open) = self.open.as_mut().filter(|open| open.key == key) {
                    open.catch_up(texts, now);
                    open.scroll_to_cursor(height);
                    return self.save_again(key);
                }
                if self.opening == Some(key) {
                    self.opening = None;
                    let mut open = OpenReview::new(key, texts, layout, now);
                    open.scroll_to_cursor(height);
                    if !open.hunks.is_empty() {
                        open.choose(0, height);
                    }
                    self.open = Some(open);
                    if self.view == View::List {
                        self.view = View::Review;
                    }
                }
                Vec::new()
            }
            (Request::ReviewChange(_) | Request::ReviewEdit(_), _) => {
                if matches!(&self.overlay, Some(Overlay::Edit(edit)) if edit.is_saving) {
                    self.overlay = None;
                }
                Vec::new()
            }
            (_, Response::ReviewAcceptAll(all) | Response::ReviewRejectAll(all)) => {
                let decided = all.decided.len();
                match all.refused.first() {
                    Some(refused) => {
                        self.complain(format!("Review {} was skipped: {}", refused.review, refused.message));
                    }
                    None if decided == 1 => self.inform("1 change decided."),
                    None => self.inform(format!("{decided} changes decided.")),
                }
                Vec::new()
            }
            (_, Response::ChatState(state)) if index == 0 => self.chat_state(state),
            (request, response) => self.chat_reply(&request, response),
        }
    }

    fn refused(&mut self, index: CompanionIndex, request: Request, error: RequestError) -> Vec<Action> {
        let key = |review| ReviewKey {
            companion: index,
            review,
        };
        match &request {
            Request::ReviewAccept(alongside_protocol::Accept { review, .. })
            | Request::ReviewReject(alongside_protocol::Reject { review, .. }) => {
                self.companions[index].deciding.remove(review);
                if let Some(open) = self.open.as_mut().filter(|open| open.key == key(*review)) {
                    open.is_deciding = false;
                }
            }
            Request::ReviewHunk(params) => {
                // What was recorded for it did not happen.
                if let Some(open) = self.open.as_mut().filter(|open| open.key == key(params.review))
                    && let Some(undo) = open.undo.pop_if(|undo| undo.hunk == params.hunk)
                    && !undo.was_decided
                {
                    open.decided.remove(&undo.hunk);
                }
            }
            Request::ReviewChange(change) => {
                if error.kind == ErrorKind::Stale {
                    // Another front end was faster: fetch its text, then save again.
                    return vec![send::<requests::ReviewGet>(index, ReviewRef { review: change.review })];
                }
                if let Some(Overlay::Edit(edit)) = self.overlay.as_mut() {
                    edit.is_saving = false;
                }
            }
            Request::ReviewGet(get) if self.opening == Some(key(get.review)) => self.opening = None,
            _ => {}
        }
        match (error.kind, request) {
            (_, request @ (Request::ChatState(_) | Request::ChatCommand(_) | Request::ChatConnect(_))) => {
                self.chat_refused(&request, &error);
            }
            (ErrorKind::EmptyMeansUnedited, Request::ReviewAccept(_)) => {
                self.overlay = Some(Overlay::Confirm {
                    question: error.message,
                    action: Confirmed::AcceptEmpty,
                });
            }
            (ErrorKind::Conflicts, _) => {
                let height = self.height();
                if let Some(open) = self.open.as_mut() {
                    let conflict = alongside_core::draft::HunkState::Conflict;
                    if let Some(index) = open.hunks.iter().position(|hunk| hunk.state == conflict) {
                        open.choose(index, height);
                    }
                }
                self.complain(error.message);
            }
            (ErrorKind::UnknownReview | ErrorKind::Closed, Request::ReviewGet(get)) => {
                // Fetched again after a reconnect, and no longer there.
                self.companions[index].reviews.remove(&get.review);
                self.close(key(get.review), "It was decided elsewhere.");
            }
            _ => self.complain(error.message),
        }
        Vec::new()
    }

    fn notified(&mut self, index: CompanionIndex, notification: Notification) -> Vec<Action> {
        match notification {
            Notification::ReviewOpened(summary) => {
                let alert = self.arrival(index, &summary);
                self.companions[index].reviews.insert(summary.id, summary);
                let mut actions = self.open_if_alone();
                actions.push(alert);
                actions
            }
            Notification::ReviewChanged(summary) => {
                let key = ReviewKey {
                    companion: index,
                    review: summary.id,
                };
                let is_open = self.open.as_ref().filter(|open| open.key == key);
                let is_newer = is_open
                    .is_some_and(|open| open.summary.revision != summary.revision || open.version != summary.version);
                let has_revision = is_open.is_some_and(|open| open.summary.revision != summary.revision);
                if has_revision {
                    self.inform(format!("{} revised this change.", summary.agent));
                }
                self.companions[index].reviews.insert(summary.id, summary);
                if is_newer {
                    vec![send::<requests::ReviewGet>(index, ReviewRef { review: key.review })]
                } else {
                    Vec::new()
                }
            }
            Notification::ReviewEdited(edited) => {
                let key = ReviewKey {
                    companion: index,
                    review: edited.review,
                };
                let height = self.height();
                let Some(open) = self.open.as_mut().filter(|open| open.key == key) else {
                    return Vec::new();
                };
                if open.apply(&edited) {
                    open.scroll_to_cursor(height);
                    return Vec::new();
                }
                vec![send::<requests::ReviewGet>(index, ReviewRef { review: key.review })]
            }
            Notification::ReviewRebased(rebased) => {
                let is_open = self.open.as_ref().is_some_and(|open| open.key.review == rebased.review);
                if is_open && rebased.conflicts > 0 {
                    let hunks = count(rebased.conflicts, "hunk");
                    self.complain(format!(
                        "The file changed on disk; {hunks} of this change now conflict with it."
                    ));
                } else if is_open {
                    self.inform("The file changed on disk; this change was rebased onto the new version.");
                }
                Vec::new()
            }
            Notification::ReviewClosed(closed) => self.closed(index, &closed),
            Notification::AgentsChanged(now) => {
                self.companions[index].agents = now.agents;
                Vec::new()
            }
            Notification::ContextChanged(context) => {
                self.companions[index].context = context;
                // Which files are hidden is not part of it.
                if matches!(self.overlay, Some(Overlay::Context { .. })) {
                    return vec![send::<requests::ContextShow>(index, Empty {})];
                }
                Vec::new()
            }
            Notification::ProblemsChanged(now) => {
                if let Some(problem) = now.problems.first() {
                    self.complain(problem.clone());
                }
                self.companions[index].problems = now.problems;
                Vec::new()
            }
            Notification::Resync(_) => self.fetch(index),
            Notification::ChatEvent(event) if index == 0 => self.chat_event(event),
            Notification::ChatChanged(changed) if index == 0 => {
                self.chat.changed = changed;
                Vec::new()
            }
            Notification::FileShow(_) | Notification::ChatEvent(_) | Notification::ChatChanged(_) => Vec::new(),
        }
    }

    fn arrival(&mut self, index: CompanionIndex, summary: &ReviewSummary) -> Action {
        let path = self.companions[index].short(&summary.path);
        let news = format!("{} proposed a change to {path}", summary.agent);
        if self.view != View::List {
            self.inform(format!("{news}."));
        }
        Action::Alert(news)
    }

    /// Shows the only pending change at once if the user is looking at an empty list.
    fn open_if_alone(&mut self) -> Vec<Action> {
        let listed = self.listed();
        let is_idle = self.view == View::List && self.overlay.is_none() && self.opening.is_none();
        match listed.as_slice() {
            [(key, _)] if is_idle => {
                let key = *key;
                self.open_review(key)
            }
            _ => Vec::new(),
        }
    }

    fn closed(&mut self, index: CompanionIndex, closed: &ReviewClosed) -> Vec<Action> {
        let companion = &mut self.companions[index];
        companion.reviews.remove(&closed.review);
        let was_ours = companion.deciding.remove(&closed.review);
        let path = companion.short(&closed.path).to_owned();
        let key = ReviewKey {
            companion: index,
            review: closed.review,
        };
        if was_ours {
            return self.decided(
                key,
                &format!("Review {} ({path}) was {}.", closed.review, closed.outcome),
            );
        }
        let place = match closed.outcome {
            alongside_core::ReviewOutcome::Accepted | alongside_core::ReviewOutcome::Rejected => " elsewhere",
            _ => "",
        };
        let sentence = format!("Review {} ({path}) was {}{place}.", closed.review, closed.outcome);
        self.close(key, &sentence);
        self.inform(sentence);
        Vec::new()
    }

    /// Decided here: the next one follows.
    fn decided(&mut self, key: ReviewKey, sentence: &str) -> Vec<Action> {
        self.inform(sentence);
        if self.open.as_ref().is_none_or(|open| open.key != key) {
            return Vec::new();
        }
        let listed = self.listed();
        let next = listed.iter().find(|(other, _)| *other > key).or_else(|| listed.first());
        let next = next.map(|(next, _)| *next);
        self.back_to_list();
        next.map_or_else(Vec::new, |next| self.open_review(next))
    }

    /// Decided elsewhere: it disappears, unless the user is editing it.
    fn close(&mut self, key: ReviewKey, sentence: &str) {
        if self.opening == Some(key) {
            self.opening = None;
        }
        if self.open.as_ref().is_none_or(|open| open.key != key) {
            return;
        }
        if let Some(Overlay::Edit(edit)) = self.overlay.as_mut()
            && edit.is_changed()
        {
            edit.is_saving = false;
            self.complain(format!("{sentence} Your text can no longer be saved; Esc closes it."));
            return;
        }
        if !matches!(
            self.overlay,
            Some(Overlay::Help { .. } | Overlay::Context { .. } | Overlay::Companions { .. })
        ) {
            self.overlay = None;
        }
        self.back_to_list();
        self.inform(sentence);
    }
}

/// `1 hunk`, `2 hunks`.
pub(crate) fn count(number: usize, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}
