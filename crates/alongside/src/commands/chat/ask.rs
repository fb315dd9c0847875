//! One thing that the user is asked at the terminal: how it is shown, and what an answer means.

use std::time::Instant;

use alongside_core::ReviewId;
use alongside_core::difference::unified;
use alongside_core::draft::DIFF_TIMEOUT;
use alongside_protocol::chat::{
    Answers, OptionKind, PermissionDecision, PermissionOption, PermissionRequest, Question, ToolContent,
};

use crate::printable::{printable, printable_difference, printable_line};

/// A longer diff would scroll the question off the screen.
const MAX_DIFF_LINES: usize = 100;

pub(super) enum Ask {
    Permission(PermissionRequest),
    /// Questions, answered one after the other.
    Questions {
        request: PermissionRequest,
        answers: Vec<String>,
    },
    Review {
        id: ReviewId,
        /// The change, in words.
        what: String,
        diff: String,
    },
}

/// What an answer leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It cannot be understood. Says what is expected.
    Again(String),
    /// There is another question.
    Next,
    Decided(Decision),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Request(String, PermissionDecision),
    Review(ReviewId, bool),
}

impl Ask {
    pub(super) fn request(request: PermissionRequest) -> Self {
        if request.is_question() {
            let answers = Vec::new();
            Self::Questions { request, answers }
        } else {
            Self::Permission(request)
        }
    }

    pub(super) fn is_request(&self, id: &str) -> bool {
        match self {
            Self::Permission(request) | Self::Questions { request, .. } => request.request_id == id,
            Self::Review { .. } => false,
        }
    }

    pub(super) fn is_review(&self, review: ReviewId) -> bool {
        matches!(self, Self::Review { id, .. } if *id == review)
    }

    /// The question as shown, made safe for a terminal. Ends where the answer is typed.
    pub(super) fn text(&self, colors: bool) -> String {
        match self {
            Self::Permission(request) => {
                let title = title(request);
                let diff = shorten(&printable_difference(&diff(request), colors), "");
                let options = numbered(request.options.iter().map(|option| printable_line(&option.name)));
                let default = refusal(request).map_or_else(
                    || "Enter to decline".to_owned(),
                    |(number, _)| format!("Enter for {number}"),
                );
                let count = request.options.len();
                format!(
                    "The agent asks for permission: {title}\n{diff}{options}Type 1 to {count}, or press {default}: "
                )
            }
            Self::Questions { request, answers } => {
                let question = &request.questions[answers.len()];
                let header = match printable_line(&question.header) {
                    header if header.is_empty() => String::new(),
                    header => format!("{header}: "),
                };
                let (shown, choices) = (
                    printable(&question.question),
                    numbered(question.choices.iter().map(choice)),
                );
                let expected = if question.choices.is_empty() {
                    "Type an answer"
                } else if question.multiple {
                    "Type numbers separated by commas, or another answer"
                } else {
                    "Type a number, or another answer"
                };
                format!("The agent asks: {header}{shown}\n{choices}{expected}; press Enter to decline: ")
            }
            Self::Review { id, what, diff } => {
                let more = format!("; run `alongside diff show {id}` for all of it");
                let diff = shorten(&printable_difference(diff, colors), &more);
                let options = numbered(["Accept", "Reject"].map(str::to_owned));
                format!("The agent proposes {what}\n{diff}{options}Type 1 or 2, or press Enter for 2: ")
            }
        }
    }

    /// What a typed line means; `None` is the end of the input.
    pub(super) fn answer(&mut self, line: Option<&str>) -> Outcome {
        let typed = line.unwrap_or_default().trim();
        match self {
            Self::Permission(request) => {
                let select = |option: &PermissionOption| PermissionDecision::select(&option.option_id);
                let of_kind = |kind: &OptionKind| request.options.iter().find(|option| option.kind == *kind);
                let refused = || refusal(request).map_or(PermissionDecision::Cancel, |(_, option)| select(option));
                let decision = match typed.to_lowercase().as_str() {
                    "" | "n" | "no" => Some(refused()),
                    "y" | "yes" => of_kind(&OptionKind::AllowOnce).map(select),
                    _ => pick(typed, &request.options).map(select),
                };
                let id = request.request_id.clone();
                decision.map_or_else(
                    || Outcome::Again(format!("Type a number from 1 to {}.", request.options.len())),
                    |decision| Outcome::Decided(Decision::Request(id, decision)),
                )
            }
            Self::Questions { request, .. } if typed.is_empty() => {
                Outcome::Decided(Decision::Request(request.request_id.clone(), declined(request)))
            }
            Self::Questions { request, answers } => {
                answers.push(words(&request.questions[answers.len()], typed));
                if answers.len() < request.questions.len() {
                    return Outcome::Next;
                }
                let keys = request.questions.iter().map(|question| question.answer_key.clone());
                let answers: Answers = keys.zip(std::mem::take(answers)).collect();
                // The first one may allow more than this.
                let once = request
                    .options
                    .iter()
                    .find(|option| option.kind == OptionKind::AllowOnce);
                let option = once.or_else(|| request.options.iter().find(|option| !is_no(&option.kind)));
                let decision = option.map_or(PermissionDecision::Cancel, |option| PermissionDecision::Select {
                    option_id: option.option_id.clone(),
                    answers,
                });
                Outcome::Decided(Decision::Request(request.request_id.clone(), decision))
            }
            Self::Review { id, .. } => match typed.to_lowercase().as_str() {
                "1" | "y" | "yes" => Outcome::Decided(Decision::Review(*id, true)),
                "" | "2" | "n" | "no" => Outcome::Decided(Decision::Review(*id, false)),
                _ => Outcome::Again("Type 1 or 2.".to_owned()),
            },
        }
    }
}

/// What a request is about, made safe for a terminal: its title, and its path unless the title has it.
pub(super) fn title(request: &PermissionRequest) -> String {
    let call = &request.tool_call;
    let title = printable_line(&call.title);
    let in_diff = call.content.iter().find_map(|content| match content {
        ToolContent::Diff { path, .. } => Some(path.as_str()),
        ToolContent::Content { .. } | ToolContent::Other { .. } => None,
    });
    let location = call.locations.first().map(|location| location.path.as_str());
    let input = ["fileName", "file_path", "path"]
        .iter()
        .find_map(|name| call.input.get(name)?.as_str());
    match location.or(in_diff).or(input).map(printable_line) {
        Some(path) if !path.is_empty() && !title.contains(&path) => format!("{title} ({path})"),
        _ => title,
    }
}

/// The decision without a user: "no", or a cancellation if the agent has no option for that.
pub(super) fn declined(request: &PermissionRequest) -> PermissionDecision {
    refusal(request).map_or(PermissionDecision::Cancel, |(_, option)| {
        PermissionDecision::select(&option.option_id)
    })
}

/// The option that refuses the least, and its number.
fn refusal(request: &PermissionRequest) -> Option<(usize, &PermissionOption)> {
    let find = |kind: OptionKind| {
        let mut numbered = (1..).zip(&request.options);
        numbered.find(move |(_, option)| option.kind == kind)
    };
    find(OptionKind::RejectOnce)
}

fn is_no(kind: &OptionKind) -> bool {
    matches!(kind, OptionKind::RejectOnce | OptionKind::RejectAlways)
}

fn pick<'a, T>(typed: &str, options: &'a [T]) -> Option<&'a T> {
    let number: usize = typed.parse().ok()?;
    options.get(number.checked_sub(1)?)
}

/// The labels of the numbers typed, or else the user's own words.
fn words(question: &Question, typed: &str) -> String {
    let label = |number: &str| pick(number.trim(), &question.choices).map(|choice| choice.label.clone());
    let labels: Option<Vec<String>> = if question.multiple {
        typed.split(',').map(label).collect()
    } else {
        label(typed).map(|label| vec![label])
    };
    labels.map_or_else(|| typed.to_owned(), |labels| labels.join(", "))
}

fn choice(choice: &alongside_protocol::chat::QuestionChoice) -> String {
    let (label, description) = (printable_line(&choice.label), printable_line(&choice.description));
    if description.is_empty() {
        label
    } else {
        format!("{label} ({description})")
    }
}

fn numbered(lines: impl IntoIterator<Item = String>) -> String {
    let lines = (1..).zip(lines).map(|(number, line)| format!("  {number}) {line}\n"));
    lines.collect()
}

/// The changes that a request is about.
fn diff(request: &PermissionRequest) -> String {
    let diffs = request.tool_call.content.iter().filter_map(|content| match content {
        ToolContent::Diff {
            path,
            old_text,
            new_text,
        } => {
            let old_name = old_text.as_ref().map_or("/dev/null", |_| path);
            let deadline = Some(Instant::now() + DIFF_TIMEOUT);
            let old = old_text.as_deref().unwrap_or_default();
            Some(unified(old, new_text, old_name, path, deadline))
        }
        ToolContent::Content { .. } | ToolContent::Other { .. } => None,
    });
    diffs.collect()
}

fn shorten(diff: &str, hint: &str) -> String {
    let count = diff.lines().count();
    if count <= MAX_DIFF_LINES {
        return diff.to_owned();
    }
    let mut shown: String = diff.split_inclusive('\n').take(MAX_DIFF_LINES).collect();
    shown.push_str(&format!("({} more lines{hint})\n", count - MAX_DIFF_LINES));
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(questions: &serde_json::Value) -> PermissionRequest {
        let call = json!({"id": "call", "title": "Edit\x1b[2J", "kind": "edit", "status": "pending",
            "toolName": null, "input": null, "output": null, "locations": [],
            "content": [{"type": "diff", "path": "/a.txt", "oldText": "one\n", "newText": "two\n"}]});
        let option = |id: &str, kind: &str| json!({"optionId": id, "name": id, "kind": kind});
        let options = [
            option("always", "allow_always"),
            option("yes", "allow_once"),
            option("no", "reject_once"),
        ];
        let request =
            json!({"requestId": "r", "promptId": null, "toolCall": call, "options": options, "questions": questions});
        serde_json::from_value(request).unwrap()
    }

    fn question(choices: &[&str], multiple: bool) -> serde_json::Value {
        let choices: Vec<_> = choices
            .iter()
            .map(|label| json!({"label": label, "description": ""}))
            .collect();
        json!({"answerKey": choices.len().to_string(), "question": "Which?", "header": "Color", "choices": choices, "multiple": multiple})
    }

    fn select(option: &str) -> Outcome {
        Outcome::Decided(Decision::Request("r".to_owned(), PermissionDecision::select(option)))
    }

    #[test]
    fn permission_is_shown_with_its_diff_and_numbered_options() {
        let text = Ask::request(request(&json!([]))).text(false);
        for part in [
            "permission: Edit",
            "-one\n+two\n",
            "  1) always\n  2) yes\n  3) no\n",
            "press Enter for 3: ",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains('\x1b'), "{text}");
    }

    #[test]
    fn permission_is_shown_with_its_path_once() {
        let mut request = request(&json!([]));
        request.tool_call.title = "Edit file".to_owned();
        assert_eq!(title(&request), "Edit file (/a.txt)");
        request.tool_call.content.clear();
        assert_eq!(title(&request), "Edit file");
        request.tool_call.input = json!({"fileName": "/b.txt"});
        assert_eq!(title(&request), "Edit file (/b.txt)");
        request.tool_call.title = "Edit /b.txt".to_owned();
        assert_eq!(title(&request), "Edit /b.txt");
    }

    #[test]
    fn only_a_clear_answer_allows() {
        let mut ask = Ask::request(request(&json!([])));
        for (line, option) in [
            ("1\n", "always"),
            ("y\n", "yes"),
            ("2", "yes"),
            ("", "no"),
            ("No\n", "no"),
            ("3", "no"),
        ] {
            assert_eq!(ask.answer(Some(line)), select(option), "{line}");
        }
        assert_eq!(ask.answer(None), select("no"), "the end of the input");
        for line in ["0", "4", "1 2", "-1", "sure"] {
            assert!(matches!(ask.answer(Some(line)), Outcome::Again(_)), "{line}");
        }
    }

    #[test]
    fn request_without_a_refusal_is_cancelled() {
        let mut request = request(&json!([]));
        request.options.truncate(2);
        let cancelled = Outcome::Decided(Decision::Request("r".to_owned(), PermissionDecision::Cancel));
        assert_eq!(Ask::request(request).answer(Some("")), cancelled);
    }

    #[test]
    fn questions_are_answered_by_number_or_in_other_words() {
        let questions = json!([question(&["Blue"], false), question(&["Red", "Green"], true)]);
        let mut ask = Ask::request(request(&questions));
        assert!(
            ask.text(false).contains("Color: Which?\n  1) Blue\n"),
            "{}",
            ask.text(false)
        );
        assert_eq!(ask.answer(Some("mauve\n")), Outcome::Next);
        let Outcome::Decided(Decision::Request(_, PermissionDecision::Select { option_id, answers })) =
            ask.answer(Some("2, 1\n"))
        else {
            panic!("not answered");
        };
        assert_eq!(option_id, "yes");
        assert_eq!(
            answers,
            Answers::from([
                ("1".to_owned(), "mauve".to_owned()),
                ("2".to_owned(), "Green, Red".to_owned())
            ])
        );
        assert_eq!(Ask::request(request(&questions)).answer(Some("\n")), select("no"));
    }

    #[test]
    fn long_diff_is_cut() {
        let shown = shorten(&"+x\n".repeat(MAX_DIFF_LINES + 5), "");
        assert!(shown.ends_with("+x\n(5 more lines)\n"), "{shown}");
    }
}
