//! `alongside send-selection`: puts the selection into an agent's prompt.

use std::process::ExitCode;

use alongside_companion::companion_record;
use alongside_core::SessionKey;
use alongside_protocol::{MentionTarget, Mentioned, requests};
use anyhow::Result;

use crate::command_line::Common;
use crate::printable::printable_line;

pub(crate) async fn run(common: &Common, session: Option<String>) -> Result<ExitCode> {
    let mut companion = companion_record::connect_nearest(&common.directory()).await?;
    let session = session.map(|session| SessionKey::from(session.as_str()));
    let sent = companion
        .call::<requests::AgentMention>(MentionTarget { session })
        .await?;
    common.output().answer(&sent, || text(&sent));
    Ok(ExitCode::SUCCESS)
}

fn text(sent: &Mentioned) -> String {
    let lines = match (sent.first_line, sent.last_line) {
        (Some(first), Some(last)) if first == last => format!(", line {first}"),
        (Some(first), Some(last)) => format!(", lines {first} to {last}"),
        _ => String::new(),
    };
    let path = printable_line(&sent.path);
    let agent = printable_line(&sent.agent.to_string());
    format!("Sent {path}{lines} to the prompt of {agent}.\n")
}

#[cfg(test)]
mod tests {
    use alongside_core::{AgentIdentity, SessionId};

    use super::*;

    #[test]
    fn lines_are_named() {
        let mut sent = Mentioned {
            session: SessionKey::Connection(SessionId::new("1")),
            agent: AgentIdentity {
                name: "Claude Code".to_owned(),
                version: None,
            },
            path: "/w/a.txt".to_owned(),
            first_line: Some(2),
            last_line: Some(3),
        };
        assert_eq!(
            text(&sent),
            "Sent /w/a.txt, lines 2 to 3 to the prompt of Claude Code.\n"
        );
        sent.last_line = Some(2);
        assert_eq!(text(&sent), "Sent /w/a.txt, line 2 to the prompt of Claude Code.\n");
        (sent.first_line, sent.last_line) = (None, None);
        assert_eq!(text(&sent), "Sent /w/a.txt to the prompt of Claude Code.\n");
    }
}
