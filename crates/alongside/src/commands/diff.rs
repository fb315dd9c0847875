//! `alongside diff`: lists pending changes and decides them.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use alongside_core::ReviewId;
use alongside_core::difference::unified;
use alongside_core::draft::DIFF_TIMEOUT;
use alongside_core::draft::{Hunk, HunkId, HunkState};
use alongside_front::client::Client;
use alongside_protocol::{
    Accept, BulkDecision, DecideHunkParams, Edit, Empty, HunkAction, Method, Reject, ReviewRef, ReviewSummary,
    ReviewTexts, SessionRef, Version, requests,
};
use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::command_line::{Common, Diff, HunkWord};
use crate::printable::{ago, printable_difference, printable_line};
use alongside_companion::companion_record;

pub(crate) async fn run(common: &Common, command: Diff) -> Result<ExitCode> {
    let mut companion = companion_record::connect_nearest(&common.directory()).await?;
    let output = common.output();
    match command {
        Diff::List => {
            let reviews = list(&mut companion).await?;
            output.answer(&reviews, || list_in_words(&reviews));
        }
        Diff::Show { review } => {
            let review = find(&mut companion, &review).await?;
            let texts = companion
                .call::<requests::ReviewGet>(ReviewRef { review: review.id })
                .await?;
            let mut value = serde_json::to_value(&texts)?;
            value["diff"] = json!(diff(&texts));
            output.answer_in_colors(&value, || show_in_words(&texts, output.colors()));
        }
        Diff::Accept {
            review,
            content_file,
            all_of_agent,
            even_if_empty,
        } => {
            let content = content_file.as_deref().map(read_content).transpose()?;
            let review = find(&mut companion, &review).await?;
            if all_of_agent {
                return decide_all::<requests::ReviewAcceptAll>(common, &mut companion, &review, "accepted").await;
            }
            let accept = Accept {
                review: review.id,
                content,
                even_if_empty,
            };
            companion.call::<requests::ReviewAccept>(accept).await?;
            answer_decision(common, &review, "accepted");
        }
        Diff::Hunk { review, hunk, decision } => {
            let review = find(&mut companion, &review).await?;
            let decision = match decision {
                HunkWord::Accept => HunkAction::Accept,
                HunkWord::Reject => HunkAction::Reject,
                HunkWord::Keep => HunkAction::Keep,
            };
            let params = DecideHunkParams {
                review: review.id,
                hunk: HunkId(hunk),
                decision,
            };
            let Version { version } = companion.call::<requests::ReviewHunk>(params).await?;
            let texts = companion
                .call::<requests::ReviewGet>(ReviewRef { review: review.id })
                .await?;
            let value = json!({ "version": version, "hunks": texts.hunks });
            output.answer(&value, || hunks_in_words(&texts.hunks));
        }
        Diff::Edit { review, content_file } => {
            let content = read_content(&content_file)?;
            let review = find(&mut companion, &review).await?;
            let edit = Edit {
                review: review.id,
                content,
            };
            let changed = companion.call::<requests::ReviewEdit>(edit).await?;
            output.answer(&changed, || {
                format!(
                    "Updated the draft of review {}. Run `alongside diff accept {}` to accept it.\n",
                    review.id, review.id
                )
            });
        }
        Diff::Reject {
            review,
            all_of_agent,
            reason,
        } => {
            let review = find(&mut companion, &review).await?;
            if all_of_agent {
                return decide_all::<requests::ReviewRejectAll>(common, &mut companion, &review, "rejected").await;
            }
            if reason.is_some() && !review.takes_reason {
                let agent = printable_line(&review.agent);
                bail!("{agent} cannot receive a reason; leave out --reason, and tell it in its next prompt");
            }
            let reject = Reject {
                review: review.id,
                reason: reason.map(Into::into),
            };
            companion.call::<requests::ReviewReject>(reject).await?;
            answer_decision(common, &review, "rejected");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Decides all changes of one agent. Those that cannot be decided are listed, and make the command fail.
async fn decide_all<M>(
    common: &Common,
    companion: &mut Client,
    review: &ReviewSummary,
    outcome: &str,
) -> Result<ExitCode>
where
    M: Method<Params = SessionRef, Response = BulkDecision>,
{
    let session = review.session.clone();
    let all = companion.call::<M>(SessionRef { session }).await?;
    common.output().answer(&all, || {
        let mut words = format!("{} changes {outcome}.\n", all.decided.len());
        for refused in &all.refused {
            words.push_str(&format!(
                "Review {} was skipped: {}\n",
                refused.review,
                printable_line(&refused.message)
            ));
        }
        words
    });
    Ok(if all.refused.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn list(companion: &mut Client) -> Result<Vec<ReviewSummary>> {
    Ok(companion.call::<requests::ReviewList>(Empty {}).await?)
}

/// Finds a review by its number or its file, as the agent wrote it or relative to the current directory.
async fn find(companion: &mut Client, typed: &str) -> Result<ReviewSummary> {
    let reviews = list(companion).await?;
    if let Ok(number) = typed.parse()
        && let Some(review) = reviews.iter().find(|review| review.id == ReviewId(number))
    {
        return Ok(review.clone());
    }
    let typed_path = Path::new(typed);
    let spelled = std::path::absolute(typed_path).unwrap_or_else(|_| typed_path.to_owned());
    let real = alongside_platform::path::real(typed_path).unwrap_or_else(|_| spelled.clone());
    let mut meant = reviews.iter().filter(|review| {
        let path = Path::new(&*review.path);
        path == typed_path
            || path == spelled
            || path == real
            || alongside_platform::path::real(path).is_ok_and(|path| path == real)
    });
    match (meant.next(), meant.next()) {
        (Some(review), None) => Ok(review.clone()),
        (Some(_), Some(_)) => bail!(
            "more than one pending change matches `{typed}`; use its number:\n{}",
            candidates(&reviews)
        ),
        (None, _) if reviews.is_empty() => {
            // The error of the companion says how a closed review ended.
            if let Ok(number) = typed.parse() {
                companion
                    .call::<requests::ReviewGet>(ReviewRef {
                        review: ReviewId(number),
                    })
                    .await?;
            }
            bail!("no pending change matches `{typed}`; there are no pending changes")
        }
        (None, _) => bail!(
            "no pending change matches `{typed}`; pending changes:\n{}",
            candidates(&reviews)
        ),
    }
}

fn candidates(reviews: &[ReviewSummary]) -> String {
    let lines: Vec<String> = reviews.iter().map(line).collect();
    lines.join("\n")
}

fn line(review: &ReviewSummary) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let age = u64::try_from(now.as_millis())
        .unwrap_or_default()
        .saturating_sub(review.opened);
    let new = if review.new_file { "new file, " } else { "" };
    let edited = if review.edited { ", edited" } else { "" };
    format!(
        "  {:>3}  {}  ({new}+{} −{}{edited})  {}, {}",
        review.id,
        printable_line(&review.path),
        review.size.added,
        review.size.removed,
        printable_line(&review.agent_identity().to_string()),
        ago(age),
    )
}

fn list_in_words(reviews: &[ReviewSummary]) -> String {
    if reviews.is_empty() {
        return "No pending changes.\n".to_owned();
    }
    format!(
        "{}\nRun `alongside diff show N` to see a change, then `diff accept N` or `diff reject N`.\n",
        candidates(reviews)
    )
}

pub(crate) fn diff(texts: &ReviewTexts) -> String {
    let old_name = if texts.base.is_some() {
        &*texts.summary.path
    } else {
        "/dev/null"
    };
    unified(
        texts.base.as_deref().unwrap_or_default(),
        &texts.draft,
        old_name,
        &texts.summary.path,
        Some(Instant::now() + DIFF_TIMEOUT),
    )
}

fn show_in_words(texts: &ReviewTexts, colors: bool) -> String {
    let mut words = format!("{}\n\n", line(&texts.summary).trim_start());
    let diff = diff(texts);
    words.push_str(if diff.is_empty() { "(no changes)\n" } else { "" });
    words.push_str(&printable_difference(&diff, colors));
    for note in &texts.notes {
        words.push_str(&format!("Note: {note}.\n"));
    }
    words.push_str(&format!("\n{}", hunks_in_words(&texts.hunks)));
    words
}

fn hunks_in_words(hunks: &[Hunk]) -> String {
    let mut words = String::new();
    for hunk in hunks {
        let state = match hunk.state {
            HunkState::Accepted => "accepted",
            HunkState::Rejected => "rejected",
            HunkState::Edited => "edited",
            HunkState::Conflict => "conflict: the file also changed here",
        };
        let (base, draft) = (hunk.base, hunk.draft);
        words.push_str(&format!(
            "hunk {:>3}, line {} (+{} −{}), {state}\n",
            hunk.id, draft.start, draft.count, base.count
        ));
    }
    words
}

fn answer_decision(common: &Common, review: &ReviewSummary, outcome: &str) {
    let value = json!({ "id": review.id, "path": review.path, "outcome": outcome });
    common.output().answer(&value, || {
        format!("Review {} {outcome}: {}\n", review.id, printable_line(&review.path))
    });
}

/// The content of a file, byte for byte; `-` is standard input.
fn read_content(file: &Path) -> Result<Arc<str>> {
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).context("cannot read stdin")?;
    } else {
        bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    }
    let text = String::from_utf8(bytes);
    Ok(text
        .with_context(|| format!("{} is not valid UTF-8; agents accept only UTF-8 text", file.display()))?
        .into())
}
