//! The plugin in a real Neovim.

use std::fs;
use std::process::{Command, Stdio};

use alongside_e2e::{
    Capability, Cli, Launch, Sandbox, TIMEOUT, editor, eventually, node, npm_package, plugin, typescript,
};
use serde_json::json;

use crate::agent::{Agent, announced, wait_for_no_announcement};
use crate::nvim::{Neovim, proves};

#[tokio::test]
async fn focused_file_cursor_and_selection_reach_agents() {
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
async fn selection_stays_in_a_terminal_that_knows_its_companion() {
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
    let expected = format!("port {} {}", companion.0, neovim.pid());
    neovim.wait_for(&format!("&buftype == 'terminal' && getline(1) == '{expected}'"));
    let mut newcomer = Agent::connect(&companion).await;
    newcomer.sees(|file| file["selectedText"] == "some text").await;
}

#[tokio::test]
async fn selection_is_reported_even_if_a_terminal_follows_at_once() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "some text\n");
    let neovim = Neovim::start(&sandbox);
    let mut agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    neovim.run(&format!("edit {}", path.display()));
    agent.sees(|file| file["path"] == json!(path)).await;
    neovim.press("vee<Cmd>split | terminal<CR>");
    agent.sees(|file| file["selectedText"] == "some text").await;
}

#[tokio::test]
async fn edited_draft_keeps_untouched_bytes_when_written() {
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
        "only the agent writes the file"
    );
    proves(Capability::Edit);
}

#[tokio::test]
async fn mixed_line_endings_and_missing_newline_survive() {
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
async fn closing_the_tab_or_a_command_rejects() {
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
    // A change decided too soon stays pending, and can be opened again.
    let decision = agent
        .decision_by(|| {
            let _ = neovim.run("silent! AlongsideReview");
            neovim.wait_for("&buftype == 'acwrite' || empty(v:lua.require'alongside.reviews'.pending())");
            let _ = neovim.run("silent! tabclose");
        })
        .await;
    assert_eq!(decision["method"], "ide/diffRejected");
    proves(Capability::Review);
}

#[tokio::test]
async fn single_hunks_are_rejected_by_key_or_diffget() {
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
async fn proposal_is_compared_with_unsaved_text() {
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
async fn several_changes_are_listed_and_counted_in_the_statusline() {
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
async fn agent_is_notified_when_neovim_exits_or_is_killed() {
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
async fn killed_companion_restarts_on_the_same_port_with_its_reviews() {
    let sandbox = Sandbox::new();
    let neovim = Neovim::start(&sandbox);
    let before = announced(&sandbox, neovim.pid());
    let mut agent = Agent::connect(&before).await;
    let path = sandbox.write("a.txt", "one\n");
    neovim.run(&format!("edit {}", path.display()));
    agent.propose(&path, "two\n").await;
    neovim.show_review();
    let bridge = neovim.eval("luaeval('require(\"alongside.bridge\").welcome.pid')");
    let killed = std::process::Command::new("kill").args(["-KILL", &bridge]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    neovim.wait_for(&format!(
        "luaeval('(require\"alongside.bridge\".welcome or {{ pid = {bridge} }}).pid') != {bridge}"
    ));
    assert_eq!(announced(&sandbox, neovim.pid()), before);
    assert!(neovim.run("messages").contains("was restarted"));
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
fn most_recently_used_neovim_is_found() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\ntwo\n");
    let (one, other) = (Neovim::start(&sandbox), Neovim::start(&sandbox));
    let wait_until_found = |neovim: &Neovim<'_>| {
        let found = eventually(TIMEOUT, || {
            let outcome = Launch::plain(&sandbox, Cli::Gemini).doctor(&sandbox);
            let diagnosis: serde_json::Value = serde_json::from_str(&outcome.stdout).ok()?;
            let agents = diagnosis["agents"].as_array()?;
            let is_found = |agent: &serde_json::Value| agent["found"]["companion"]["editorPid"] == neovim.pid();
            // The other agents are not installed here.
            let mut looking = agents.iter().filter(|agent| agent["installed"] != false);
            looking.all(is_found).then_some(())
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
async fn two_neovims_have_a_companion_each_and_are_healthy() {
    let sandbox = Sandbox::new();
    let (one, other) = (Neovim::start(&sandbox), Neovim::start(&sandbox));
    let (first, second) = (announced(&sandbox, one.pid()), announced(&sandbox, other.pid()));
    assert_ne!(first.0, second.0);
    let mut agent = Agent::connect(&second).await;
    agent.propose(&sandbox.file("a.txt"), "a\n").await;
    other.show_review();
    assert_eq!(one.eval("v:lua.require'alongside.reviews'.pending()->len()"), "0");
    other.run("checkhealth alongside");
    let health = other.eval("getline(1, '$')->join(' ')");
    assert!(
        health.contains("the companion is running for") && !health.contains("ERROR"),
        "{health}"
    );
    other.kill();
    assert_eq!(agent.decision().await["method"], "ide/diffRejected");
}

#[test]
fn own_tests_pass() {
    let sandbox = Sandbox::new();
    let output = Command::new(editor("nvim"))
        .args(["--headless", "--clean", "--cmd"])
        .arg(format!("set runtimepath^={}", plugin("neovim").display()))
        .args(["-l", "test/run.lua"])
        .env_clear()
        .envs(sandbox.environment())
        .current_dir(plugin("neovim"))
        .stdin(Stdio::null())
        .output()
        .expect("run Neovim");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && report.contains(" 0 failures"),
        "{report}{output:?}"
    );
}

#[test]
fn lua_is_formatted() {
    npm_package("@johnnymorganz/stylua");
    let output = Command::new(node())
        .arg(typescript("stylua.mjs"))
        .arg(plugin("neovim"))
        .output()
        .expect("run Node");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && report.is_empty(), "{report}{output:?}");
}
