//! The settings and variables with which each agent starts offline, straight at its prompt.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::Native;
use crate::fake_model::FakeModel;
use crate::programs;
use crate::sandbox::Sandbox;

/// Claude Code asks about a key unless its last 20 characters are approved.
const ANTHROPIC_KEY: &str = "sk-ant-fake-0123456789abcdefghij";

/// Codex offers patches as a tool only to some of the models that it knows.
const CODEX_MODEL: &str = "gpt-5.5";

impl Native {
    /// The command with which it asks before it changes a file, if it can.
    pub fn start_line(self) -> String {
        let arguments = match self {
            // By default a model decides about permissions, and changes are never shown.
            Self::Claude => "--permission-mode default",
            // A hook's trust is stored with a hash that only Codex can compute.
            Self::Codex => "--dangerously-bypass-hook-trust",
            Self::Opencode | Self::Copilot => "",
        };
        format!("{} {arguments}", self.command())
    }

    /// The variables that point it to our fake model.
    pub fn variables(self, model: &FakeModel) -> Vec<(String, String)> {
        let url = model.url();
        let variables: Vec<(&str, String)> = match self {
            Self::Claude => vec![
                ("ANTHROPIC_BASE_URL", url),
                ("ANTHROPIC_API_KEY", ANTHROPIC_KEY.to_owned()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
                ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ],
            Self::Opencode => vec![
                ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
                ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
                ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
                // With a plugin, it first downloads a package that ours does not need.
                ("npm_config_registry", "http://127.0.0.1:9/".to_owned()),
                ("npm_config_fetch_retries", "0".to_owned()),
            ],
            Self::Copilot => vec![
                ("COPILOT_PROVIDER_BASE_URL", format!("{url}/v1")),
                ("COPILOT_MODEL", "fake-model".to_owned()),
                ("COPILOT_OFFLINE", "true".to_owned()),
                ("COPILOT_AUTO_UPDATE", "false".to_owned()),
            ],
            Self::Codex => Vec::new(),
        };
        variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// Writes its settings into the sandbox's home.
    pub(super) fn write_settings(self, sandbox: &Sandbox, model: &FakeModel) {
        let home = sandbox.path("home");
        let workspace = sandbox.workspace().to_string_lossy().into_owned();
        match self {
            Self::Claude => {
                let (_, key) = ANTHROPIC_KEY.split_at(ANTHROPIC_KEY.len() - 20);
                let project = json!({
                    "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true, "allowedTools": [], "mcpServers": {}
                });
                let settings = json!({
                    "hasCompletedOnboarding": true, "lastOnboardingVersion": "9.9.9", "theme": "dark", "numStartups": 5,
                    "autoUpdates": false, "autoConnectIde": true, "hasIdeAutoConnectDialogBeenShown": true,
                    "customApiKeyResponses": {"approved": [key], "rejected": []}, "projects": {workspace: project}
                });
                write(&home.join(".claude.json"), &settings.to_string());
            }
            Self::Opencode => {
                let options = json!({"baseURL": format!("{}/v1", model.url()), "apiKey": "x"});
                let models =
                    json!({"fake-model": {"name": "Fake Model", "limit": {"context": 100_000, "output": 4096}}});
                let provider =
                    json!({"npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": options, "models": models});
                let settings = json!({
                    "autoupdate": false, "share": "disabled", "model": "fake/fake-model", "small_model": "fake/fake-model",
                    "provider": {"fake": provider}
                });
                write(&home.join(".config/opencode/opencode.json"), &settings.to_string());
            }
            Self::Copilot => {
                let settings = json!({"trustedFolders": [workspace], "banner": "never"});
                write(&home.join(".copilot/config.json"), &settings.to_string());
                // It would unpack itself there, which takes longer than the test.
                let cache = home.join(".cache/copilot");
                fs::create_dir_all(&cache).expect("create the cache of Copilot CLI");
                let unpacked = programs::agent("home/.cache/copilot/pkg");
                let linked = std::os::unix::fs::symlink(unpacked, cache.join("pkg"));
                linked.expect("link the unpacked Copilot CLI");
            }
            Self::Codex => write(
                &home.join(".codex/config.toml"),
                &format!(
                    r#"
model = "{CODEX_MODEL}"
model_provider = "fake"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false
# Without this line, an advertisement comes first.
[notice.model_migrations]
"{CODEX_MODEL}" = "gpt-6-sol"
[analytics]
enabled = false
[features]
daemon_auto_start = false
[model_providers.fake]
name = "fake"
base_url = "{}/v1"
wire_api = "responses"
[projects."{workspace}"]
trust_level = "trusted"
"#,
                    model.url()
                ),
            ),
        }
    }
}

fn write(path: &Path, text: &str) {
    let directory = path.parent().expect("a settings file is in a directory");
    fs::create_dir_all(directory).expect("create the directory of the settings");
    fs::write(path, text).expect("write the settings");
}
