//! The editor context as a paragraph for the model.

use alongside_core::context::IdeContext;

/// As much of a selection as Claude Code sends from an editor.
const MAX_SELECTION_CHARACTERS: usize = 2000;

/// `None` if no file is focused.
pub(super) fn describe(context: &IdeContext) -> Option<String> {
    let files = &context.workspace_state.open_files;
    let active = files.iter().find(|file| file.is_active == Some(true))?;
    let mut text = format!("The user's editor shows {}", active.path);
    if let Some(cursor) = active.cursor {
        text += &format!(", with the cursor on line {}", cursor.line);
    }
    text.push('.');
    if let Some(selection) = active.selected_text.as_deref().filter(|text| !text.is_empty()) {
        let cut = selection.char_indices().nth(MAX_SELECTION_CHARACTERS);
        text += " The selected text is:\n";
        text += cut.map_or(selection, |(end, _)| &selection[..end]);
        if cut.is_some() {
            text += "\n... (truncated)";
        }
        text.push('\n');
    }
    text += " This may or may not be related to the current task.";
    Some(text)
}

#[cfg(test)]
mod tests {
    use alongside_core::context::{Cursor, File};

    use super::*;

    #[test]
    fn focused_file_is_described_with_a_bounded_selection() {
        assert_eq!(describe(&IdeContext::default()), None);
        let mut context = IdeContext::default();
        context.workspace_state.open_files.push(File {
            path: "/w/a.txt".into(),
            timestamp: 1,
            is_active: Some(true),
            cursor: Some(Cursor { line: 2, character: 1 }),
            selected_text: Some("é".repeat(3000)),
            selection_start: None,
        });
        let text = describe(&context).unwrap();
        assert!(
            text.starts_with("The user's editor shows /w/a.txt, with the cursor on line 2. The selected text is:\né")
        );
        assert!(text.contains("... (truncated)"));
        assert_eq!(text.matches('é').count(), 2000);
    }
}
