//! The hot paths. Each prepares its input, which is always the same, and passes the work to [`counted`](crate::counted).

mod context;
mod drafts;
mod journal;
mod mcp;
mod reviews;
mod wire;

use anyhow::Result;

type Path = (&'static str, fn() -> Result<()>);

/// The slow ones first, because two run at a time.
pub(crate) const PATHS: &[Path] = &[
    ("draft: compare 200,000 lines, 2,000 changed", drafts::compare),
    ("draft: decide one of 2,000 hunks", drafts::decide_hunk),
    ("draft: encode an outline with 2,000 hunks", drafts::encode_outline),
    ("draft: type one character in 200,000 lines", drafts::type_character),
    ("mcp: openDiff of 1 MiB, request to response", mcp::open_diff_1_mib),
    ("mcp: openDiff of 1 KiB, request to response", mcp::open_diff_1_kib),
    ("review: open and close, 1 KiB", reviews::open_close_1_kib),
    ("review: open and close, 100 KiB", reviews::open_close_100_kib),
    (
        "review: open and close, 99 others pending",
        reviews::open_close_among_99,
    ),
    ("context: focus, 30 open files", context::focus),
    ("context: move the cursor, 30 open files", context::move_cursor),
    ("privacy: compile the built-in patterns", context::compile_patterns),
    ("privacy: check a path", context::check_path),
    ("journal: append one record", journal::append),
    ("journal: store and append a review of 1 KiB", journal::append_review),
    ("wire: parse openDiff of 1 KiB", wire::parse_1_kib),
    ("wire: parse openDiff of 1 MiB", wire::parse_1_mib),
    ("wire: read 1,000 server-sent events", wire::read_events),
    ("protocol: serialize review/opened", wire::serialize_notification),
    ("protocol: serialize review/get of 100 KiB", wire::serialize_review),
];

/// Lines of code, all different.
fn code(lines: usize) -> String {
    (0..lines).map(code_line).collect()
}

fn code_line(line: usize) -> String {
    format!("    let value_{line} = compute({line}, other);\n")
}

/// Lines of code with about this many bytes, and the same with one line in ten changed.
fn texts(bytes: usize) -> (String, String) {
    let lines = (bytes / code_line(1000).len()).max(1);
    let changed = |line| {
        if line % 10 == 5 {
            format!("    changed({line});\n")
        } else {
            code_line(line)
        }
    };
    (code(lines), (0..lines).map(changed).collect())
}
