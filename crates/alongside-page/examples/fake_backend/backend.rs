//! The fake companion: responds to requests and notifies every page.

use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::chat::Chat;
use crate::review::{Review, hunks_between, milliseconds_now};
use crate::samples;

pub(crate) struct Backend {
    reviews: Vec<Review>,
    notifications: broadcast::Sender<String>,
    next_id: u64,
    chat: Chat,
}

type Failure = (&'static str, String);

impl Backend {
    pub(crate) fn new(notifications: broadcast::Sender<String>) -> Self {
        let mut desk = Self {
            reviews: Vec::new(),
            chat: Chat::new(notifications.clone()),
            notifications,
            next_id: 1,
        };
        for name in ["rust", "crlf", "new", "hostile", "conflict"] {
            desk.open(name);
        }
        for (age, review) in desk.reviews.iter_mut().rev().enumerate() {
            review.opened -= age as u64 * 47_000 + 3_000;
        }
        desk
    }

    fn notify(&self, method: &str, params: &Value) {
        let _ = self
            .notifications
            .send(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    fn open(&mut self, name: &str) -> Option<u64> {
        let sample = samples::make(name)?;
        let review = Review::new(self.next_id, sample);
        self.next_id += 1;
        self.notify("review/opened", &review.summary());
        let id = review.id;
        self.reviews.push(review);
        Some(id)
    }

    pub(crate) fn answer(&mut self, message: &str) -> String {
        let message: Value = serde_json::from_str(message).unwrap_or_default();
        let (id, params) = (message["id"].clone(), message["params"].clone());
        match self.call(message["method"].as_str().unwrap_or_default(), &params) {
            Ok(result) => {
                // Moved in, not copied: a review may be large.
                let mut answer = json!({"jsonrpc": "2.0", "id": id});
                answer["result"] = result;
                answer
            }
            Err((kind, text)) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": text, "data": {"kind": kind}}})
            }
        }
        .to_string()
    }

    fn review(&mut self, params: &Value) -> Result<&mut Review, Failure> {
        let id = params["review"].as_u64();
        let review = self.reviews.iter_mut().find(|review| Some(review.id) == id);
        review.ok_or(("closed", "This change was decided already, elsewhere.".to_owned()))
    }

    fn call(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        if let Some(answer) = self.chat.call(method, params) {
            return answer;
        }
        match method {
            "diff" => {
                let text = |name: &str| params[name].as_str().unwrap_or_default();
                Ok(json!({"hunks": hunks_between(text("base"), text("proposal"))}))
            }
            "hello" => Ok(json!({"protocol": 1, "version": "0.1.0", "pid": 4711, "workspace": ["/home/me/project"]})),
            "review/list" => Ok(self.reviews.iter().map(Review::summary).collect()),
            "review/get" => self.review(params).map(|review| review.whole()),
            "review/hunk" => {
                let (hunk, decision) = (params["hunk"].clone(), params["decision"] == "accept");
                let review = self.review(params)?;
                let edited = review
                    .decide(&hunk, decision)
                    .ok_or(("unknownHunk", "This hunk no longer exists.".to_owned()))?;
                let answer = json!({"version": edited["version"]});
                let summary = review.summary();
                self.notify("review/edited", &edited);
                self.notify("review/changed", &summary);
                Ok(answer)
            }
            "review/change" => {
                let review = self.review(params)?;
                if params["version"].as_u64() != Some(review.version) {
                    return Err(("stale", "Another client changed the text first.".to_owned()));
                }
                let edited = review.change(&params["changes"]);
                let summary = review.summary();
                self.notify("review/edited", &edited);
                self.notify("review/changed", &summary);
                Ok(json!({"version": edited["version"]}))
            }
            "review/accept" | "review/reject" => self.decide(method == "review/accept", params),
            "review/acceptAll" | "review/rejectAll" => {
                let ids: Vec<u64> = self
                    .reviews
                    .iter()
                    .filter(|review| params["session"] == review.session)
                    .map(|review| review.id)
                    .collect();
                let mut decided = 0;
                for id in ids {
                    decided += u32::from(
                        self.decide(method == "review/acceptAll", &json!({"review": id}))
                            .is_ok(),
                    );
                }
                Ok(json!({"decided": decided}))
            }
            "context/show" => Ok(samples::context()),
            "status" => Ok(
                json!({"pid": 4711, "port": 39000, "version": "0.1.0", "displayName": "Neovim",
                "workspace": ["/home/me/project"], "files": [], "problems": [], "agents": samples::agents(),
                "reviews": self.reviews.iter().map(Review::summary).collect::<Value>()}),
            ),
            "doctor" => Ok(samples::doctor()),
            "dev/open" => self
                .open(params["sample"].as_str().unwrap_or_default())
                .map(|id| json!({"review": id}))
                .ok_or(("none", "?".to_owned())),
            "dev/context" => {
                self.notify("context/changed", &samples::context()["context"]);
                Ok(json!({}))
            }
            "dev/agents" => {
                self.notify("agents/changed", &json!({"agents": params["agents"]}));
                Ok(json!({}))
            }
            _ => Err(("methodNotFound", format!("There is no {method}."))),
        }
    }

    fn decide(&mut self, accept: bool, params: &Value) -> Result<Value, Failure> {
        let review = self.review(params)?;
        if milliseconds_now() < review.opened + 400 {
            return Err((
                "tooSoon",
                "This change has only just appeared; look at it first.".to_owned(),
            ));
        }
        if accept && review.conflicts() > 0 {
            return Err(("conflicts", "Some hunks conflict; resolve them first.".to_owned()));
        }
        if accept && review.draft.is_empty() && params["evenIfEmpty"] != true {
            let text =
                "The agent takes an empty text as \u{201c}nothing was edited\u{201d} and would write its own proposal.";
            return Err(("emptyMeansUnedited", text.to_owned()));
        }
        let outcome = if accept { "accepted" } else { "rejected" };
        let closed = json!({"review": review.id, "path": review.path, "outcome": outcome});
        let id = review.id;
        self.reviews.retain(|review| review.id != id);
        self.notify("review/closed", &closed);
        Ok(json!({"review": id, "outcome": outcome}))
    }
}
