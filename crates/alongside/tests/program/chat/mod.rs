//! The chat, with an agent that does what its prompts say, as a child and in a daemon.

mod command;
mod conversation;
pub(crate) mod front;
mod kills;
mod permission_reviews;
mod processes;
mod survival;
// `script` has other options elsewhere.
#[cfg(target_os = "linux")]
mod terminal;
mod writes;

use std::time::Duration;

use alongside_testing::chat::words;
use alongside_testing::daemon::Talk;
use alongside_testing::{FakeDaemon, agent};

use crate::sandbox::{Sandbox, Serving};

/// The agent, when this program is one.
#[test]
fn scripted_agent() {
    if std::env::var_os(agent::VARIABLE).is_some() {
        agent::run();
    }
}

/// A sandbox whose settings know the scripted agent as `scripted`.
pub(crate) fn sandbox() -> Sandbox {
    sandbox_with("")
}

/// The same with more settings.
pub(crate) fn sandbox_with(settings: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write_config(&format!(
        "[agents.scripted]\ncommand = {}\nname = 'Scripted'\n{settings}",
        scripted_command()
    ));
    sandbox
}

/// The scripted agent's command, for the settings.
pub(crate) fn scripted_command() -> serde_json::Value {
    let program = std::env::current_exe().unwrap();
    serde_json::json!([
        program,
        "chat::scripted_agent",
        "--exact",
        "--nocapture",
        "--test-threads=1"
    ])
}

/// A companion whose children are the scripted agent.
pub(crate) fn serve(sandbox: &Sandbox) -> Serving {
    serve_with(sandbox, "usual")
}

/// The same with another kind of agent.
pub(crate) fn serve_with(sandbox: &Sandbox, how: &str) -> Serving {
    let mut command = sandbox.command(&["serve", "--json"]);
    command
        .env(agent::VARIABLE, how)
        .env("FAKE_API_KEY", "s3cret-key-of-the-agent");
    Serving::start(command)
}

/// A daemon for the sandbox's workspace that answers with [`words`], and pauses after each.
pub(crate) async fn talking_daemon(sandbox: &Sandbox, between: Duration) -> FakeDaemon {
    let talk = Talk {
        before: Duration::ZERO,
        between,
        words,
    };
    FakeDaemon::start_talking(&sandbox.workspace(), talk).await
}
