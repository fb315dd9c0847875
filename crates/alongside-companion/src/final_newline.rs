//! A final newline that an agent leaves out of an accepted text.
//!
//! Claude Code does so when it replaces an existing file, but not when it edits one, and its proposals do not differ. So the companion
//! looks at what was written. It does not add the newline: the agent would see a change that it did not make.

use std::sync::Arc;

use alongside_core::{Base, SessionKey};

use crate::Companion;
use crate::unreviewed::look_repeatedly;

impl Companion {
    /// Looks for a while whether the agent writes an accepted text without its final newline.
    pub(crate) fn watch_final_newline(&self, session: &SessionKey, path: &Arc<str>, accepted: &Arc<str>) {
        if !accepted.ends_with('\n') {
            return;
        }
        let agent = self.with_core(|core, _| core.agent_name(session));
        let (Some(agent), Ok(runtime)) = (agent, tokio::runtime::Handle::try_current()) else {
            return;
        };
        let (me, path, accepted) = (self.me.clone(), Arc::clone(path), Arc::clone(accepted));
        runtime.spawn(async move {
            look_repeatedly(&me, move |companion| {
                companion.look_at_final_newline(&agent, &path, &accepted)
            })
            .await;
        });
    }

    /// Whether there is nothing more to look for. Blocks.
    fn look_at_final_newline(&self, agent: &str, path: &str, accepted: &str) -> bool {
        let Ok(Base::Text(written)) = (self.host.read_base)(path, None) else {
            return false;
        };
        let is_missing = accepted.strip_suffix('\n') == Some(&*written);
        if is_missing {
            self.unreviewed.report(format!(
                "{agent} wrote {path} without the final newline of the text that you accepted; add it in your editor"
            ));
            self.report_problems();
        }
        is_missing || *written == *accepted
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use alongside_core::dialect::ClientInfo;
    use alongside_core::{EmptyDraft, SessionId};
    use alongside_mcp::Companion as _;
    use alongside_protocol::Notification;

    use super::*;
    use crate::journal::Slot;
    use crate::{Host, test_companion};

    /// Only keeps a failing test from hanging.
    const TIMEOUT: Duration = Duration::from_secs(20);

    /// C7.
    #[tokio::test(flavor = "multi_thread")]
    async fn lost_final_newline_of_an_existing_file_is_reported() {
        let scratch = tempfile::tempdir().unwrap();
        let places = test_companion::places(&scratch);
        let slot = Slot::take(&places, "editor", &[scratch.path().to_owned()]).unwrap();
        let companion = test_companion::start(&scratch, &slot, Host::default());
        let session = SessionKey::Connection(SessionId::new("1"));
        let client = ClientInfo {
            name: "claude-code".to_owned(),
            version: "2.1.325".to_owned(),
        };
        companion.with_core(|core, now| core.session_started(now, &session, Some(client)));
        let path = scratch.path().join("a.txt").to_str().unwrap().to_owned();
        fs::write(&path, "one\n").unwrap();

        let mut notifications = companion.subscribe();
        let mut next = async || {
            tokio::time::timeout(TIMEOUT, notifications.recv())
                .await
                .unwrap()
                .unwrap()
        };
        let (agent, proposed) = (companion.clone(), path.clone());
        let asking = tokio::spawn(async move { agent.open_diff(&session, proposed.into(), "two\n".into()).await });
        let opened = loop {
            if let Notification::ReviewOpened(review) = &*next().await {
                break review.id;
            }
        };
        let accepted = companion.commit(|core, _| core.accept(opened, None, EmptyDraft::Refuse));
        accepted.await.unwrap().unwrap();
        asking.await.unwrap().unwrap();
        fs::write(&path, "two").unwrap();

        let problems = loop {
            if let Notification::ProblemsChanged(changed) = &*next().await {
                break changed.problems.clone();
            }
        };
        let expected = format!("Claude Code wrote {path} without the final newline");
        assert!(
            problems.iter().any(|problem| problem.starts_with(&expected)),
            "{problems:?}"
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn only_a_missing_newline_is_reported() {
        let scratch = tempfile::tempdir().unwrap();
        let places = test_companion::places(&scratch);
        let slot = Slot::take(&places, "editor", &[scratch.path().to_owned()]).unwrap();
        let companion = test_companion::start(&scratch, &slot, Host::default());
        let path = scratch.path().join("a.txt").to_str().unwrap().to_owned();
        let look = |written: &str, accepted: &str| {
            fs::write(&path, written).unwrap();
            let is_done = companion.look_at_final_newline("Claude Code", &path, accepted);
            (is_done, companion.unreviewed.problems().len())
        };
        assert_eq!(look("one\n", "two\n"), (false, 0), "not written yet");
        assert_eq!(look("two\n", "two\n"), (true, 0));
        assert_eq!(look("two\r", "two\r\n"), (true, 1));
        assert_eq!(look("two\r", "two\r\n"), (true, 1), "the same sentence again");
    }
}
