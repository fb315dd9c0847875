//! Every state at several sizes.

use alongside_core::ReviewOutcome;
use crossterm::event::KeyCode;

use super::*;

const PATH: &str = "/home/me/project/src/main.rs";

/// From a narrow pane to a very wide one.
const SIZES: [(u16, u16); 3] = [(40, 16), (80, 24), (160, 30)];

fn check(name: &str, prepare: impl Fn(&mut Bench)) {
    for (width, height) in SIZES {
        let mut bench = Bench::connected(width, height);
        prepare(&mut bench);
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), bench.shown());
    }
}

#[test]
fn empty_list() {
    check("empty_list", |_| {});
}

#[test]
fn list_of_reviews() {
    check("list", |bench| {
        bench.propose(1, PATH, BASE, &proposal());
        bench.press(KeyCode::Esc);
        bench.propose(2, "/home/me/project/docs/a/rather/deep/folder/notes.md", "", "new\n");
        bench.propose(3, "/elsewhere/結果.txt", "a\n", "b\n");
        bench.keys("j");
    });
}

#[test]
fn review_before_it_is_armed() {
    check("unarmed", |bench| bench.propose(1, PATH, BASE, &proposal()));
}

#[test]
fn review_with_decided_hunks() {
    check("decided", |bench| {
        bench.open(PATH, BASE, &proposal());
        bench.keys("ra");
    });
}

#[test]
fn review_unfolded() {
    check("unfolded", |bench| {
        bench.open(PATH, BASE, &proposal());
        bench.keys("Onp");
    });
}

#[test]
fn search_with_a_match() {
    check("search", |bench| {
        bench.open(PATH, BASE, &proposal());
        bench.keys("/seven");
        bench.press(KeyCode::Enter);
    });
}

#[test]
fn typing_a_search() {
    check("typing", |bench| {
        bench.open(PATH, BASE, &proposal());
        bench.keys("/sev");
    });
}

#[test]
fn editing_in_place() {
    check("editing", |bench| {
        bench.open(PATH, BASE, &proposal());
        bench.keys("ifoo ");
    });
}

#[test]
fn help() {
    check("help", |bench| {
        bench.open(PATH, BASE, &proposal());
        bench.keys("?");
    });
}

#[test]
fn what_agents_see() {
    check("context", |bench| bench.keys("v"));
}

#[test]
fn question_before_all_are_accepted() {
    check("confirm", |bench| {
        bench.open(PATH, BASE, &proposal());
        bench.keys("+");
    });
}

#[test]
fn comment_on_a_line() {
    check("comment", |bench| {
        bench.open(PATH, BASE, &proposal());
        bench.keys("mtoo clever");
        bench.press(KeyCode::Enter);
    });
}

#[test]
fn decided_elsewhere() {
    check("elsewhere", |bench| {
        bench.open(PATH, BASE, &proposal());
        bench.close_elsewhere(1, ReviewOutcome::Accepted);
    });
}

#[test]
fn reconnecting() {
    check("reconnecting", |bench| {
        bench.open(PATH, BASE, &proposal());
        bench.disconnect();
    });
}

#[test]
fn companions_to_attach() {
    check("companions", |bench| {
        let running = crate::RunningCompanion {
            pid: 7,
            name: "Neovim".to_owned(),
            workspace: vec![PathBuf::from("/home/me/other")],
        };
        bench.apply(Message::Companions(vec![running]));
    });
}

#[test]
fn colors_of_every_depth() {
    for (name, depth, background) in [
        ("none", ColorDepth::None, Background::Dark),
        ("16", ColorDepth::Ansi16, Background::Dark),
        ("256_light", ColorDepth::Ansi256, Background::Light),
        ("true", ColorDepth::True, Background::Dark),
    ] {
        let mut bench = Bench::connected(60, 12);
        bench.model.options.theme = Theme { depth, background };
        bench.highlights = true;
        bench.open("a.rs", "let a = 1;\nlet b = 2;\n", "let a = 3;\nlet b = 2;\n");
        let terminal = bench.screen();
        insta::assert_snapshot!(format!("colors_{name}"), format!("{:?}", terminal.backend().buffer()));
    }
}
