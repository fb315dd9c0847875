//! A companion and one agent that is connected to it, for several checks: starting an agent is most of a test's cost.

use alongside_e2e::{Companion, FakeModel, Native, NativeAgent, Sandbox, TIMEOUT};
use serde_json::Value;

/// Nine lines, so that changes of the first and of the last are two hunks.
pub(crate) const NINE: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";

/// The agent comes first, so that it exits before the companion.
pub(crate) struct Scene<'a> {
    pub(crate) agent: NativeAgent,
    pub(crate) companion: Companion<'a>,
    pub(crate) model: &'a FakeModel,
    pub(crate) sandbox: &'a Sandbox,
}

impl<'a> Scene<'a> {
    /// With `a.txt`, whose second line is selected in the editor.
    pub(crate) fn start(sandbox: &'a Sandbox, model: &'a FakeModel, native: Native) -> Self {
        native.set_up(sandbox, model);
        Self::start_with(sandbox, model, native, &native.start_line())
    }

    /// With this command, after [`Native::set_up`].
    pub(crate) fn start_with(sandbox: &'a Sandbox, model: &'a FakeModel, native: Native, line: &str) -> Self {
        sandbox.write("a.txt", NINE);
        let companion = Companion::start(sandbox);
        let scene = Self {
            agent: NativeAgent::launch(sandbox, native, model, line),
            companion,
            model,
            sandbox,
        };
        scene.select(2, "two");
        scene
    }

    /// Selects this text of `a.txt` in the editor.
    pub(crate) fn select(&self, line: u32, text: &str) {
        let path = self.sandbox.file("a.txt");
        let (path, line) = (path.to_string_lossy(), line.to_string());
        self.companion
            .json(&["context", "focus", &path, "--line", &line, "--select", text]);
    }

    /// Sends a prompt that the model only answers, and returns its request.
    pub(crate) fn ask(&self, text: &str) -> String {
        let mark = self.model.mark();
        self.agent.prompt(text);
        let request = self.model.wait_for_message(mark, text, TIMEOUT);
        self.agent.wait_until_idle();
        let mut texts = Vec::new();
        collect_texts(&request, &mut texts);
        texts.join("\n")
    }
}

/// All strings in a request: what the model reads, without JSON's escapes.
fn collect_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(values) => values.iter().for_each(|value| collect_texts(value, texts)),
        Value::Object(values) => values.values().for_each(|value| collect_texts(value, texts)),
        _ => {}
    }
}
