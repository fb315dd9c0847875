//! Sentences for the ends of turns and sessions, each with a next step; those of the page.

/// Codes that programs give, and what they mean.
const MEANINGS: &[(&str, &str)] = &[
    ("daemon_shutdown", "The daemon was stopped."),
    ("channel_closed", "The agent stopped unexpectedly."),
    ("client_close", "Another client closed the session."),
    ("idle_timeout", "The daemon closed the session because it was not used."),
];

/// A reason as a sentence. Empty if it has nothing that a user could read.
fn readable(reason: &str) -> String {
    let reason = reason.trim();
    if let Some((_, meaning)) = MEANINGS.iter().find(|(code, _)| *code == reason) {
        return (*meaning).to_owned();
    }
    let is_code = reason.contains('_')
        && reason
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter == '_' || letter.is_ascii_digit());
    if is_code || reason.is_empty() {
        return String::new();
    }
    let mut sentence: String = reason.chars().take(1).flat_map(char::to_uppercase).collect();
    sentence.extend(reason.chars().skip(1));
    if !sentence.ends_with(['.', '!', '?', '…']) {
        sentence.push('.');
    }
    sentence
}

pub(super) fn turn_stopped(stop_reason: &str) -> &'static str {
    match stop_reason {
        "cancelled" => "Cancelled. Send a message to continue.",
        "max_tokens" => "The answer was cut off at the model’s length limit. Ask the agent to continue.",
        "max_turn_requests" => "The agent stopped at the request limit for one turn. Ask it to continue.",
        "refusal" => "The model declined to continue. Rephrase your message, or choose another model.",
        _ => "The agent stopped before it was done. Ask it to continue.",
    }
}

pub(super) fn turn_failed(message: &str) -> String {
    let what = readable(message);
    let what = if what.is_empty() {
        "The agent could not continue.".to_owned()
    } else {
        what
    };
    format!("{what} Send your message again to retry.")
}

/// Why the session is over, and what to do.
pub(crate) fn session_end(reason: &str) -> String {
    let what = readable(reason);
    let what = if what.is_empty() {
        "The connection to the agent was lost.".to_owned()
    } else {
        what
    };
    format!("{what} Press Ctrl-O to choose an agent.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_sentences() {
        assert_eq!(readable("daemon_shutdown"), "The daemon was stopped.");
        assert_eq!(readable("ring_evicted"), "");
        assert_eq!(readable("no model"), "No model.");
    }
}
