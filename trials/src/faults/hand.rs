//! A front end over the commands' WebSocket: edits, hunks, decisions.

use std::sync::Arc;

use alongside_core::ReviewId;
use alongside_front::client::{Client, ClientError};
use alongside_protocol::{
    Accept, DecideHunkParams, Edit, Empty, HunkAction, ReviewRef, ReviewSummary, ReviewTexts, requests,
};
use tokio::sync::Mutex;

use super::invariant::Invariant;
use super::ledger::{Answer, Decision, Ledger, Seen, Text};
use super::plan::{HandMove, Role};
use crate::program::Endpoints;

pub(super) struct Hand {
    role: Role,
    /// Which of the hands of this companion; reviews are divided by number, so that none waits for another.
    index: usize,
    hands: usize,
    ledger: Arc<Ledger>,
    connection: Mutex<Option<Client>>,
}

impl Hand {
    pub(super) fn new(role: Role, index: usize, hands: usize, ledger: Arc<Ledger>) -> Self {
        Self {
            role,
            index,
            hands,
            ledger,
            connection: Mutex::new(None),
        }
    }

    /// The companion was restarted.
    pub(super) async fn disconnect(&self) {
        *self.connection.lock().await = None;
    }

    /// Acts on one of its pending reviews.
    pub(super) async fn act(&self, endpoints: &Endpoints, does: HandMove, pick: u64) {
        let mut connection = self.connection.lock().await;
        let outcome = self.act_on(&mut connection, endpoints, does, pick).await;
        if let Err(error) = outcome {
            if let ClientError::Timeout(limit) = error {
                self.ledger
                    .violated(Invariant::Alive, format!("no response to {does:?} within {limit:?}"));
            }
            *connection = None;
        }
    }

    async fn act_on(
        &self,
        connection: &mut Option<Client>,
        endpoints: &Endpoints,
        does: HandMove,
        pick: u64,
    ) -> Result<(), ClientError> {
        let client = connect(connection, endpoints).await?;
        let list = client.call::<requests::ReviewList>(Empty {}).await?;
        let own: Vec<&ReviewSummary> = list
            .iter()
            .filter(|review| number(review.id) % self.hands as u64 == self.index as u64)
            .collect();
        if own.is_empty() {
            return Ok(());
        }
        let review = own[usize::try_from(pick % own.len() as u64).unwrap()];
        let Some((id, _, draft)) = self
            .ledger
            .reserve(self.role, &review.session.to_string(), &review.path)
        else {
            return Ok(());
        };
        self.ledger
            .note(|| format!("{:?} {does:?} of review {:?} {}", self.role, review.id, review.path));
        let review = review.id;
        match does {
            HandMove::Edit => {
                let text: Arc<str> = format!("{}edit {pick}\n", draft.as_deref().unwrap_or_default()).into();
                self.ledger.editing(id, Text::Known(text.clone()));
                let edit = Edit {
                    review,
                    content: text.clone(),
                };
                let response = client.call::<requests::ReviewEdit>(edit).await;
                let answer = self
                    .judge(&response)
                    .map(|summary| (summary.version, Text::Known(text)));
                self.ledger.edited(id, answer);
                response.map(drop).or_else(ignore_refusal)
            }
            HandMove::Hunk => {
                let texts = match client.call::<requests::ReviewGet>(ReviewRef { review }).await {
                    Ok(texts) => texts,
                    Err(error) => {
                        self.ledger.release(id);
                        return ignore_refusal(error);
                    }
                };
                let Some(hunk) = texts
                    .hunks
                    .get(usize::try_from(pick % texts.hunks.len().max(1) as u64).unwrap())
                else {
                    self.ledger.release(id);
                    return Ok(());
                };
                let decision = if pick.is_multiple_of(3) {
                    HunkAction::Accept
                } else {
                    HunkAction::Reject
                };
                self.ledger.editing(id, Text::Unknown);
                let params = DecideHunkParams {
                    review,
                    hunk: hunk.id,
                    decision,
                };
                let response = client.call::<requests::ReviewHunk>(params).await;
                let mut answer = self.judge(&response).map(|version| (version.version, Text::Unknown));
                if let Answer::Done((version, text)) = &mut answer
                    && let Ok(texts) = client.call::<requests::ReviewGet>(ReviewRef { review }).await
                    && texts.summary.version == *version
                {
                    *text = Text::Known(texts.draft);
                }
                self.ledger.edited(id, answer);
                response.map(drop).or_else(ignore_refusal)
            }
            HandMove::AcceptDraft | HandMove::AcceptText => {
                let content = (does == HandMove::AcceptText)
                    .then(|| Arc::<str>::from(format!("{}accepted {pick}\n", draft.as_deref().unwrap_or_default())));
                self.ledger.deciding(id, Decision::Accepted(content.clone().or(draft)));
                let accept = Accept {
                    review,
                    content,
                    even_if_empty: true,
                };
                let response = client.call::<requests::ReviewAccept>(accept).await;
                self.ledger.decided(id, self.judge(&response).map(drop));
                response.map(drop).or_else(ignore_refusal)
            }
            HandMove::Reject => {
                self.ledger.deciding(id, Decision::Rejected);
                let response = client.call::<requests::ReviewReject>(review.into()).await;
                self.ledger.decided(id, self.judge(&response).map(drop));
                response.map(drop).or_else(ignore_refusal)
            }
        }
    }

    /// Decides everything that is pending, so that no agent has a reason to wait.
    pub(super) async fn reject_everything(&self, endpoints: &Endpoints) {
        for review in self.pending(endpoints).await {
            let reserved = self.ledger.reserve(self.role, &review.session, &review.path);
            let mut connection = self.connection.lock().await;
            let Ok(client) = connect(&mut connection, endpoints).await else {
                continue;
            };
            if let Some((id, ..)) = &reserved {
                self.ledger.deciding(*id, Decision::Rejected);
            }
            let reject = ReviewId(review.review).into();
            let response = client.call::<requests::ReviewReject>(reject).await;
            if let Some((id, ..)) = reserved {
                self.ledger.decided(id, self.judge(&response).map(drop));
            }
        }
    }

    /// All pending reviews with their texts.
    pub(super) async fn pending(&self, endpoints: &Endpoints) -> Vec<Seen> {
        let mut connection = self.connection.lock().await;
        match self.read(&mut connection, endpoints).await {
            Ok(reviews) => reviews,
            Err(error) => {
                *connection = None;
                self.ledger
                    .violated(Invariant::Alive, format!("cannot list the reviews: {error}"));
                Vec::new()
            }
        }
    }

    async fn read(&self, connection: &mut Option<Client>, endpoints: &Endpoints) -> Result<Vec<Seen>, ClientError> {
        let client = connect(connection, endpoints).await?;
        let mut reviews = Vec::new();
        for summary in client.call::<requests::ReviewList>(Empty {}).await? {
            let review = summary.id;
            match client.call::<requests::ReviewGet>(ReviewRef { review }).await {
                Ok(texts) => reviews.push(seen(texts)),
                // Closed in between by its agent's end.
                Err(ClientError::Rejected(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(reviews)
    }

    /// What a response means for the ledger.
    fn judge<T: Clone>(&self, response: &Result<T, ClientError>) -> Answer<T> {
        match response {
            Ok(done) => Answer::Done(done.clone()),
            Err(ClientError::Rejected(error)) => {
                self.ledger.note(|| format!("refused: {error}"));
                if error.message.trim().len() < 10 {
                    self.ledger
                        .violated(Invariant::Disk, format!("refused without a sentence: {error}"));
                }
                Answer::Refused
            }
            Err(_) => Answer::Lost,
        }
    }
}

/// A refusal leaves the connection as it is.
fn ignore_refusal(error: ClientError) -> Result<(), ClientError> {
    match error {
        ClientError::Rejected(_) => Ok(()),
        error => Err(error),
    }
}

async fn connect<'a>(connection: &'a mut Option<Client>, endpoints: &Endpoints) -> Result<&'a mut Client, ClientError> {
    let (port, token) = endpoints.front();
    if connection.is_none() {
        *connection = Some(Client::connect(port, token, "trial", false).await?.0);
    }
    Ok(connection.as_mut().unwrap())
}

fn number(review: ReviewId) -> u64 {
    review.0
}

fn seen(texts: ReviewTexts) -> Seen {
    Seen {
        review: number(texts.summary.id),
        session: texts.summary.session.to_string(),
        path: texts.summary.path.to_string(),
        version: texts.summary.version,
        proposal: texts.proposal,
        draft: texts.draft,
    }
}
