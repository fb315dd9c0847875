//! The plugin in a real Neovim.

use std::fs;

use alongside_e2e::{Capability, Cli, Launch, PATIENCE, Sandbox, eventually};
use serde_json::json;

use crate::agent::{Agent, announced, wait_for_no_announcement};
use crate::nvim::{Neovim, proves};

#[tokio::test]
async fn what_is_in_front_where_the_cursor_is_and_what_is_selected_reaches_agents() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a b 'ü' #1%.txt", "first\n🦀 second ü\nthird\n");
    let neovim = Neovim::start(&sandbox);
    let mut agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    neovim.eval(&format!("execute('edit ' .. fnameescape(\"{}\"))", path.display()));
    agent.sees(|file| file["path"] == json!(path)).await;
    neovim.eval("cursor(2, 5)");
    neovim.press("ll");
    let cursor = json!({ "line": 2, "character": 5 });
    agent.sees(|file| file["cursor"] == cursor).await;
    neovim.press("v4l");
    agent.sees(|file| file["selectedText"] == "econd").await;
    neovim.press("<Esc>Vj");
    agent.sees(|file| file["selectedText"] == "🦀 second ü\nthird").await;
    neovim.press("<Esc>");
    agent.sees(|file| file.get("selectedText").is_none()).await;
    neovim.run("bdelete");
    agent.sees(serde_json::Value::is_null).await;
    proves(Capability::Context);
}

#[tokio::test]
async fn a_selection_stays_when_a_terminal_is_opened_and_the_terminal_knows_its_companion() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "some text\n");
    let neovim = Neovim::start(&sandbox);
    let companion = announced(&sandbox, neovim.pid());
    let mut agent = Agent::connect(&companion).await;
    neovim.run(&format!("edit {}", path.display()));
    neovim.press("vee");
    agent.sees(|file| file["selectedText"] == "some text").await;
    neovim.wait_for("$QWEN_CODE_IDE_SERVER_PORT != ''");
    neovim.press("<Cmd>split | terminal echo \"port $QWEN_CODE_IDE_SERVER_PORT $GEMINI_CLI_IDE_PID\"<CR>");
    let said = format!("port {} {}", companion.0, neovim.pid());
    neovim.wait_for(&format!("&buftype == 'terminal' && getline(1) == '{said}'"));
    let mut newcomer = Agent::connect(&companion).await;
    newcomer.sees(|file| file["selectedText"] == "some text").await;
}

#[tokio::test]
async fn a_change_is_edited_and_accepted_by_writing_it_and_what_was_not_touched_is_the_same_byte_for_byte() {
    let sandbox = Sandbox::new();
    let base = "\u{feff}one\r\ntwo\r\nthree";
    let path = sandbox.write("dir with space/ünï.txt", base);
    let neovim = Neovim::start(&sandbox);
    let mut agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    neovim.run(&format!("edit {}", sandbox.write("other.txt", "other\n").display()));
    agent.propose(&path, "\u{feff}one\r\nTWO 🦀\r\nthree").await;
    neovim.show_review();
    assert_eq!(neovim.eval("getline(1, '$')->join(',')"), "one,TWO 🦀,three");
    neovim.press("ggjA edited<Esc>");
    neovim.wait_for("getline(2) == 'TWO 🦀 edited'");
    let decision = agent
        .decision_by(|| {
            let _ = neovim.run("silent! write");
        })
        .await;
    assert_eq!(decision["method"], "ide/diffAccepted");
    assert_eq!(decision["params"]["content"], "\u{feff}one\r\nTWO 🦀 edited\r\nthree");
    neovim.wait_for("tabpagenr('$') == 1");
    assert_eq!(neovim.eval("bufname()->fnamemodify(':t')"), "other.txt");
    assert_eq!(
        fs::read_to_string(&path).expect("read"),
        base,
        "the agent writes the file, nobody else"
    );
    proves(Capability::Edit);
}

#[tokio::test]
async fn mixed_line_endings_and_a_missing_newline_survive() {
    let sandbox = Sandbox::new();
    let neovim = Neovim::start(&sandbox);
    let mut agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    for text in ["a\r\nb\nc\r\n", "\n", "a\n\n", "\u{feff}", "a\rb", "a\r\nb\r\n"] {
        let path = sandbox.file("new.txt");
        agent.propose(&path, text).await;
        neovim.show_review();
        let decision = agent
            .decision_by(|| {
                let _ = neovim.run("silent! AlongsideAccept");
            })
            .await;
        assert_eq!(decision["params"]["content"], text);
        neovim.wait_for("tabpagenr('$') == 1");
    }
}

#[tokio::test]
async fn a_change_is_rejected_by_closing_its_tab_or_by_a_command() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\n");
    let neovim = Neovim::start(&sandbox);
    let mut agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    agent.propose(&path, "two\n").await;
    neovim.show_review();
    let decision = agent
        .decision_by(|| {
            let _ = neovim.run("silent! AlongsideReject");
        })
        .await;
    assert_eq!(decision["method"], "ide/diffRejected");
    neovim.wait_for("tabpagenr('$') == 1");

    agent.propose(&path, "three\n").await;
    neovim.show_review();
    // A change that was on the screen only for a blink stays, and can be shown again.
    let decision = agent
        .decision_by(|| {
            let _ = neovim.run("silent! AlongsideReview");
            neovim.wait_for("&buftype == 'acwrite' || empty(v:lua.require'alongside.reviews'.waiting())");
            let _ = neovim.run("silent! tabclose");
        })
        .await;
    assert_eq!(decision["method"], "ide/diffRejected");
    proves(Capability::Review);
}

#[tokio::test]
async fn single_hunks_are_rejected_by_a_key_or_by_the_usual_diff_command() {
    let sandbox = Sandbox::new();
    let lines = |changed: &[usize]| -> String {
        let line = |number: usize| {
            if changed.contains(&number) {
                format!("new {number}\n")
            } else {
                format!("{number}\n")
            }
        };
        (1..=30).map(line).collect()
    };
    let path = sandbox.write("a.txt", &lines(&[]));
    let neovim = Neovim::start(&sandbox);
    let mut agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    agent.propose(&path, &lines(&[3, 12, 25])).await;
    neovim.show_review();
    neovim.wait_for("line('.') == 3");
    neovim.press("\\a");
    neovim.wait_for("line('.') == 12");
    neovim.press("\\r");
    neovim.wait_for("getline(12) == '12' && line('.') == 25");
    let decision = agent.decision_by(|| neovim.press("\\A")).await;
    assert_eq!(decision["params"]["content"], lines(&[3, 25]));

    neovim.wait_for("tabpagenr('$') == 1");
    agent.propose(&path, &lines(&[3, 12])).await;
    neovim.show_review();
    neovim.press("do");
    neovim.wait_for("getline(3) == '3'");
    let decision = agent.decision_by(|| neovim.press("\\A")).await;
    assert_eq!(decision["params"]["content"], lines(&[12]));
    proves(Capability::Hunk);
}

#[tokio::test]
async fn a_proposal_is_compared_with_what_is_not_saved_yet() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "saved\n");
    let neovim = Neovim::start(&sandbox);
    let mut agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    neovim.run(&format!("edit {}", path.display()));
    neovim.press("Gounsaved<Esc>");
    neovim.wait_for("v:lua.require'alongside.context'.is_reported()");
    agent.propose(&path, "saved\nunsaved\nproposed\n").await;
    neovim.show_review();
    assert_eq!(
        neovim.eval("join(getbufline(winbufnr(1), 1, '$'), ',')"),
        "saved,unsaved"
    );
    let decision = agent
        .decision_by(|| {
            let _ = neovim.run("silent! write");
        })
        .await;
    assert_eq!(decision["params"]["content"], "saved\nunsaved\nproposed\n");
    assert_eq!(neovim.eval("getline(1, '$')->join(',') .. &modified"), "saved,unsaved1");
}

#[tokio::test]
async fn several_changes_are_offered_in_a_list_and_the_statusline_counts_them() {
    let sandbox = Sandbox::new();
    let neovim = Neovim::start(&sandbox);
    let agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    agent.propose(&sandbox.file("a.txt"), "a\n").await;
    agent.propose(&sandbox.file("b.txt"), "b\n").await;
    neovim.wait_for("v:lua.require'alongside'.statusline() == '2 changes to review'");
    neovim.run("lua vim.ui.select = function(items, options, choose) Listed = vim.tbl_map(options.format_item, items); choose(items[2]) end");
    neovim.run("AlongsideReview");
    neovim.wait_for("&buftype == 'acwrite' && getline(1) == 'b'");
    let listed = neovim.eval("luaeval('Listed')->join(';')");
    assert!(listed.contains("a.txt (+1 −0), Gemini CLI 0.61.0"), "{listed}");
}

#[tokio::test]
async fn the_agent_is_told_when_neovim_is_killed_or_ends() {
    for end in ["kill", "quit"] {
        let sandbox = Sandbox::new();
        let neovim = Neovim::start(&sandbox);
        let mut agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
        agent.propose(&sandbox.file("a.txt"), "a\n").await;
        neovim.show_review();
        if end == "kill" {
            neovim.kill();
        } else {
            neovim.quit();
        }
        assert_eq!(agent.decision().await["method"], "ide/diffRejected", "{end}");
        wait_for_no_announcement(&sandbox);
    }
}

#[tokio::test]
async fn a_killed_companion_is_started_again_on_the_same_port_with_its_reviews() {
    let sandbox = Sandbox::new();
    let neovim = Neovim::start(&sandbox);
    let before = announced(&sandbox, neovim.pid());
    let mut agent = Agent::connect(&before).await;
    let path = sandbox.write("a.txt", "one\n");
    neovim.run(&format!("edit {}", path.display()));
    agent.propose(&path, "two\n").await;
    neovim.show_review();
    let saved = eventually(PATIENCE, || {
        let slots = fs::read_dir(sandbox.path("home/.local/state/alongside/reviews")).ok()?;
        slots
            .flatten()
            .find_map(|slot| fs::read_dir(slot.path()).ok()?.flatten().next())
    });
    assert!(saved.is_some());
    let bridge = neovim.eval("luaeval('require(\"alongside.bridge\").welcome.pid')");
    let killed = std::process::Command::new("kill").args(["-KILL", &bridge]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    neovim.wait_for(&format!(
        "luaeval('(require\"alongside.bridge\".welcome or {{ pid = {bridge} }}).pid') != {bridge}"
    ));
    assert_eq!(announced(&sandbox, neovim.pid()), before);
    assert!(neovim.run("messages").contains("was started again"));
    agent.reconnect().await;
    agent.sees(|file| file["path"] == json!(path)).await;
    let decision = agent
        .decision_by(|| {
            let _ = neovim.run("silent! AlongsideAccept");
        })
        .await;
    assert_eq!(decision["params"]["content"], "two\n");
}

#[test]
fn of_two_neovims_the_one_that_was_used_last_is_found() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\ntwo\n");
    let (one, other) = (Neovim::start(&sandbox), Neovim::start(&sandbox));
    let wait_until_found = |neovim: &Neovim<'_>| {
        let found = eventually(PATIENCE, || {
            let outcome = Launch::plain(&sandbox, Cli::Gemini).doctor(&sandbox);
            let diagnosis: serde_json::Value = serde_json::from_str(&outcome.stdout).ok()?;
            let agents = diagnosis["agents"].as_array()?;
            let is_found = |agent: &serde_json::Value| agent["found"]["companion"]["editorPid"] == neovim.pid();
            agents.iter().all(is_found).then_some(())
        });
        assert!(found.is_some(), "Neovim {} is never found", neovim.pid());
    };
    wait_until_found(&other);
    one.run(&format!("edit {}", path.display()));
    one.press("j");
    wait_until_found(&one);
    other.press("<Cmd>terminal<CR>");
    wait_until_found(&other);
}

#[tokio::test]
async fn two_neovims_on_one_workspace_have_a_companion_each_and_health_is_good() {
    let sandbox = Sandbox::new();
    let (one, other) = (Neovim::start(&sandbox), Neovim::start(&sandbox));
    let (first, second) = (announced(&sandbox, one.pid()), announced(&sandbox, other.pid()));
    assert_ne!(first.0, second.0);
    let mut agent = Agent::connect(&second).await;
    agent.propose(&sandbox.file("a.txt"), "a\n").await;
    other.show_review();
    assert_eq!(one.eval("v:lua.require'alongside.reviews'.waiting()->len()"), "0");
    other.run("checkhealth alongside");
    let health = other.eval("getline(1, '$')->join(' ')");
    assert!(
        health.contains("the companion serves") && !health.contains("ERROR"),
        "{health}"
    );
    other.kill();
    assert_eq!(agent.decision().await["method"], "ide/diffRejected");
}
