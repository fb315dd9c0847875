//! Sends the selection to an agent's prompt.

use std::path::Path;
use std::sync::Arc;

use alongside_core::{AgentIdentity, Base};
use alongside_mcp::{Mention, MentionError};
use alongside_protocol::{ErrorKind, MentionTarget, Mentioned, RequestError};

use crate::Companion;

impl Companion {
    /// Puts the selection, or the active file, into the prompt of one agent. Only what agents may see is sent.
    pub(crate) async fn mention(&self, target: MentionTarget) -> Result<Mentioned, RequestError> {
        self.look_up_all_files().await;
        let context = self.with_core(|core, _| core.show_context()).context;
        let active = context.workspace_state.open_files.into_iter().next();
        let file =
            active.ok_or_else(|| RequestError::new(ErrorKind::NotOpen, "no file that agents may see is open"))?;
        let lines = file.selected_lines();
        let line_count = match lines {
            Some((_, last)) => last,
            None => self.line_count(&file.path).await?,
        };
        let mention = Mention {
            path: file.path,
            lines,
            line_count,
        };
        let agents = self.agents.get().ok_or(MentionError::NoAgent).map_err(not_sent)?;
        let session = agents
            .send_mention(target.session.as_ref(), &mention)
            .map_err(not_sent)?;
        let agent = self.with_core(|core, _| {
            let agent = core.agents().find(|agent| agent.session == session);
            agent.map_or_else(AgentIdentity::unknown, |agent| agent.identity())
        });
        Ok(Mentioned {
            session,
            agent,
            path: mention.path,
            first_line: lines.map(|(first, _)| first),
            last_line: lines.map(|(_, last)| last),
        })
    }

    async fn line_count(&self, path: &str) -> Result<u32, RequestError> {
        let (host, path): (_, Arc<str>) = (self.host.clone(), path.into());
        let buffer = self.buffers.get(Path::new(&*path));
        let counted = tokio::task::spawn_blocking(move || match (host.read_base)(&path, buffer) {
            Ok(Base::Text(text)) => text.lines().count(),
            // Whatever it is, it can be named.
            _ => 1,
        });
        let count = counted
            .await
            .map_err(|error| RequestError::new(ErrorKind::Failed, error.to_string()))?;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}

fn not_sent(error: MentionError) -> RequestError {
    let kind = match error {
        MentionError::NoAgent | MentionError::NotThisAgent => ErrorKind::NotConnected,
        MentionError::Full => ErrorKind::Failed,
    };
    RequestError::new(kind, error.to_string())
}
