//! The tools with which each agent changes files, as data.

use alongside_core::HookAgent;

use super::plan::EditFields;

pub(super) struct Tool {
    agent: HookAgent,
    name: &'static str,
    pub(super) shape: Shape,
}

/// Which arguments say what is written.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Write {
        path: &'static str,
        content: &'static str,
    },
    Edit {
        path: &'static str,
        fields: EditFields,
    },
    Edits {
        path: &'static str,
        edits: &'static str,
        fields: EditFields,
    },
    Patch {
        field: &'static str,
    },
    /// A notebook's cell: what the tool writes around it is not known.
    Opaque,
}

const fn strings(all: &'static [&'static str]) -> EditFields {
    EditFields {
        old: "old_string",
        new: "new_string",
        all,
    }
}

const CAMEL: EditFields = EditFields {
    old: "oldString",
    new: "newString",
    all: &["replaceAll"],
};

const fn tool(agent: HookAgent, name: &'static str, shape: Shape) -> Tool {
    Tool { agent, name, shape }
}

const fn write(path: &'static str, content: &'static str) -> Shape {
    Shape::Write { path, content }
}

const fn edit(path: &'static str, fields: EditFields) -> Shape {
    Shape::Edit { path, fields }
}

const TOOLS: &[Tool] = &[
    tool(HookAgent::Claude, "Write", write("file_path", "content")),
    tool(HookAgent::Claude, "Edit", edit("file_path", strings(&["replace_all"]))),
    tool(
        HookAgent::Claude,
        "MultiEdit",
        Shape::Edits {
            path: "file_path",
            edits: "edits",
            fields: strings(&["replace_all"]),
        },
    ),
    tool(HookAgent::Claude, "NotebookEdit", Shape::Opaque),
    tool(HookAgent::Gemini, "write_file", write("file_path", "content")),
    tool(
        HookAgent::Gemini,
        "replace",
        edit("file_path", strings(&["allow_multiple", "expected_replacements"])),
    ),
    tool(HookAgent::Qwen, "write_file", write("file_path", "content")),
    tool(HookAgent::Qwen, "edit", edit("file_path", strings(&["replace_all"]))),
    tool(HookAgent::Qwen, "notebook_edit", Shape::Opaque),
    tool(HookAgent::Opencode, "write", write("filePath", "content")),
    tool(HookAgent::Opencode, "edit", edit("filePath", CAMEL)),
    tool(
        HookAgent::Opencode,
        "multiedit",
        Shape::Edits {
            path: "filePath",
            edits: "edits",
            fields: CAMEL,
        },
    ),
    tool(HookAgent::Opencode, "patch", Shape::Patch { field: "patchText" }),
    tool(HookAgent::Opencode, "apply_patch", Shape::Patch { field: "patchText" }),
    tool(HookAgent::Copilot, "create", write("path", "file_text")),
    tool(
        HookAgent::Copilot,
        "edit",
        edit(
            "path",
            EditFields {
                old: "old_str",
                new: "new_str",
                all: &[],
            },
        ),
    ),
    tool(HookAgent::Codex, "apply_patch", Shape::Patch { field: "command" }),
];

impl Tool {
    pub(super) fn find(agent: HookAgent, name: &str) -> Option<&'static Self> {
        TOOLS.iter().find(|tool| tool.agent == agent && tool.name == name)
    }
}
