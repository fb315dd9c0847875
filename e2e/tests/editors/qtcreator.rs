//! The language server in a real Qt Creator, which is set up in its settings dialog.

use std::fmt::Write as _;
use std::fs;

use alongside_e2e::{Capability, Sandbox, alongside, proves, version};
use serde_json::json;

use crate::agent::{Agent, announced};
use crate::desktop::Desktop;

/// What opens the list of code actions. It is sorted by name, and its first entry is selected.
const MENU: &str = "alt+Return";

/// A value in the form in which Qt Creator's settings have it.
enum Variant<'a> {
    Boolean(bool),
    Integer(i32),
    Text(&'a str),
    Texts(&'a [&'a str]),
    List(Vec<Variant<'a>>),
    Map(Vec<(&'a str, Variant<'a>)>),
}

impl Variant<'_> {
    /// As `QDataStream` writes it.
    fn write(&self, stream: &mut Vec<u8>) {
        let number = |stream: &mut Vec<u8>, number: usize| {
            let number = u32::try_from(number).expect("a small number");
            stream.extend(number.to_be_bytes());
        };
        let text = |stream: &mut Vec<u8>, text: &str| {
            let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
            number(stream, units.len());
            stream.extend(units);
        };
        match self {
            Self::Boolean(value) => {
                number(stream, 1);
                stream.push(u8::from(*value));
            }
            Self::Integer(value) => {
                number(stream, 2);
                stream.extend(value.to_be_bytes());
            }
            Self::Map(entries) => {
                number(stream, 8);
                number(stream, entries.len());
                for (name, value) in entries {
                    text(stream, name);
                    value.write(stream);
                }
            }
            Self::List(values) => {
                number(stream, 9);
                number(stream, values.len());
                for value in values {
                    value.write(stream);
                }
            }
            Self::Text(value) => {
                number(stream, 10);
                text(stream, value);
            }
            Self::Texts(values) => {
                number(stream, 11);
                number(stream, values.len());
                for value in *values {
                    text(stream, value);
                }
            }
        }
    }
}

/// Adds the server to the settings, as the steps in docs/EDITORS.md do.
fn set_up(sandbox: &Sandbox) {
    let program = alongside().display().to_string();
    let server = Variant::Map(vec![
        ("typeId", Variant::Text("LanguageClient::StdIOSettingsID")),
        ("name", Variant::Text("alongside")),
        ("id", Variant::Text("{6a1c6a52-29a4-4a7c-9b0d-3f5a0b6d2c11}")),
        ("enabled", Variant::Boolean(true)),
        // For each file that fits.
        ("startupBehavior", Variant::Integer(1)),
        ("mimeType", Variant::Texts(&[])),
        ("filePattern", Variant::Texts(&["*"])),
        ("executable", Variant::Text(&program)),
        ("arguments", Variant::Text("lsp")),
    ]);
    let mut stream = Vec::new();
    Variant::List(vec![server]).write(&mut stream);
    let mut escaped = String::new();
    for byte in stream {
        write!(escaped, "\\x{byte:x}").expect("write to a string");
    }
    let settings = sandbox.path("home/.config/QtProject");
    fs::create_dir_all(&settings).expect("make the directory of the settings");
    let text = format!("[LanguageClient]\nclients=\"@Variant({escaped})\"\n");
    fs::write(settings.join("QtCreator.ini"), text).expect("write the settings");
}

#[tokio::test]
async fn hunks_and_changes_are_decided_in_qt_creator_and_the_cursor_is_reported() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    set_up(&sandbox);
    let mut desktop = Desktop::start(&sandbox);
    let file = path.display().to_string();
    // All other plugins would only make it slower.
    let arguments = ["-noload", "all", "-load", "LanguageClient", &file];
    let pid = desktop.open("qtcreator", &arguments, "a.txt");
    let mut agent = Agent::connect(&announced(&sandbox, pid)).await;
    for (key, line) in [("ctrl+End", 8), ("ctrl+Home", 1)] {
        desktop.press(&[key]);
        agent
            .sees(|file| file["path"] == json!(path) && file["cursor"]["line"] == line)
            .await;
    }

    agent.propose(&path, "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n").await;
    // Accept change, edit change, reject change, reject hunk.
    desktop.choose(MENU, &["Down", "Down", "Down", "Return"], || desktop.is_edited());
    desktop.choose(MENU, &["Return"], || desktop.reviews().is_empty());
    let decision = agent.decision().await;
    assert_eq!(decision["method"], "ide/diffAccepted");
    assert_eq!(
        decision["params"]["content"],
        "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n"
    );
    for capability in [Capability::Context, Capability::Review, Capability::Hunk] {
        proves("Qt Creator", &version("qtcreator".as_ref()), capability);
    }
}
