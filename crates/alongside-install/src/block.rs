//! A marked block in a user's configuration file.
//!
//! Everything between the two marks is ours; nothing else is. The opening mark has a digest of the block, so that a
//! block the user has edited is recognized and backed up before it is replaced.

use std::fs;
use std::path::PathBuf;

use super::plan::{self, Change, Plan};
use super::{InstallError, InstallState, digest};

/// In the opening mark of a block after a text without a final newline.
const NEWLINE_ADDED: &str = " newline-added";

#[derive(Clone, Debug)]
pub(super) struct ConfigurationBlock {
    pub(super) path: PathBuf,
    /// The comment prefix in this file's syntax.
    pub(super) comment: &'static str,
    /// The lines between the marks.
    pub(super) body: String,
}

/// The location of an existing block, including its marks.
struct BlockMatch {
    start: usize,
    end: usize,
    is_edited: bool,
    /// Whether the text before it had no final newline when the block was added.
    adds_newline: bool,
}

impl ConfigurationBlock {
    /// Appends the block, or replaces it where it is.
    pub(super) fn plan_install(&self) -> Result<Plan, InstallError> {
        let text = self.read()?;
        let new = self.with_block(&text)?;
        let change = Change::write(self.path.clone(), new.into_bytes(), true)?;
        let mut plan = Plan {
            changes: change.into_iter().collect(),
            remarks: Vec::new(),
        };
        if !plan.is_empty() && self.find(&text)?.is_some_and(|found| found.is_edited) {
            plan.remarks.push(self.edited_remark());
        }
        Ok(plan)
    }

    /// Removes the block, and the file too if nothing else is in it.
    pub(super) fn plan_uninstall(&self) -> Result<Plan, InstallError> {
        let text = self.read()?;
        let Some(found) = self.find(&text)? else {
            return Ok(Plan::default());
        };
        let new = without(&text, &found);
        let path = self.path.clone();
        let mut plan = Plan::default();
        // A symlink points to a file the user manages elsewhere, such as in a dotfiles repository; never remove that
        // file.
        let is_link = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink());
        if new.trim().is_empty() && !is_link {
            plan.changes.push(Change::Remove {
                path,
                before: text.clone().into_bytes(),
                keep: found.is_edited,
            });
        } else {
            plan.changes
                .extend(Change::write(path, new.into_bytes(), found.is_edited)?);
        }
        if found.is_edited {
            plan.remarks.push(self.edited_remark());
        }
        // Backups of the file as it was before the block; its successor is the file itself. An edited block exists only there.
        let has_block = |content: &[u8]| {
            let text = String::from_utf8_lossy(content);
            !matches!(self.find(&text), Ok(None))
        };
        plan.changes.extend(plan::without_backups(&self.path, has_block));
        Ok(plan)
    }

    pub(super) fn state(&self) -> Result<InstallState, InstallError> {
        let text = self.read()?;
        Ok(match self.find(&text)? {
            None => InstallState::Absent,
            Some(found) if found.is_edited => InstallState::Edited,
            Some(_) if self.with_block(&text)? == text => InstallState::Installed,
            Some(_) => InstallState::Outdated,
        })
    }

    /// The file without the block: the user's own text.
    pub(super) fn foreign_text(&self) -> Result<String, InstallError> {
        let text = self.read()?;
        Ok(match self.find(&text)? {
            Some(found) => without(&text, &found),
            None => text,
        })
    }

    /// The block as it is in the file, with its marks.
    pub(super) fn present(&self) -> Option<String> {
        let text = self.read().ok()?;
        let found = self.find(&text).ok()??;
        Some(text[found.start..found.end].to_owned())
    }

    /// The file as it would be with the block.
    pub(super) fn text_with_block(&self) -> Result<String, InstallError> {
        self.with_block(&self.read()?)
    }

    fn edited_remark(&self) -> String {
        format!(
            "The block in {} had been edited; a backup of the file is next to it.",
            self.path.display()
        )
    }

    fn read(&self) -> Result<String, InstallError> {
        let content = plan::read(&self.path)?.unwrap_or_default();
        String::from_utf8(content).map_err(|_| InstallError::NotText {
            path: self.path.clone(),
        })
    }

    fn with_block(&self, text: &str) -> Result<String, InstallError> {
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let found = self.find(text)?;
        let adds_newline = match &found {
            Some(found) => found.adds_newline,
            None => !text.is_empty() && !text.ends_with('\n'),
        };
        let block = self.block(adds_newline).replace('\n', line_end);
        Ok(match found {
            Some(found) => format!("{}{block}{}", &text[..found.start], &text[found.end..]),
            None if text.is_empty() => block,
            None if text.ends_with('\n') => format!("{text}{line_end}{block}"),
            None => format!("{text}{line_end}{line_end}{block}"),
        })
    }

    fn block(&self, adds_newline: bool) -> String {
        let comment = self.comment;
        let body = format!(
            "{comment} Managed by `alongside install`; `alongside uninstall` removes it.\n{}\n",
            self.body.trim_end()
        );
        format!(
            "{comment} >>> alongside {}{} >>>\n{body}{}\n",
            digest(body.as_bytes()),
            if adds_newline { NEWLINE_ADDED } else { "" },
            self.closing()
        )
    }

    fn closing(&self) -> String {
        format!("{} <<< alongside <<<", self.comment)
    }

    fn find(&self, text: &str) -> Result<Option<BlockMatch>, InstallError> {
        let torn = || InstallError::TornBlock {
            path: self.path.clone(),
        };
        let opening = format!("{} >>> alongside ", self.comment);
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        let mut position = 0;
        for line in text.split_inclusive('\n') {
            if line.starts_with(&opening) {
                starts.push((position, position + line.len(), line));
            } else if line.trim_end() == self.closing() {
                ends.push((position, position + line.len()));
            }
            position += line.len();
        }
        match (starts.as_slice(), ends.as_slice()) {
            ([], []) => Ok(None),
            ([(start, body_start, line)], [(body_end, end)]) if body_start <= body_end => {
                let noted = line[opening.len()..].split_whitespace().next().unwrap_or_default();
                let body = text[*body_start..*body_end].replace("\r\n", "\n");
                Ok(Some(BlockMatch {
                    start: *start,
                    end: *end,
                    is_edited: noted != digest(body.as_bytes()),
                    adds_newline: line.contains(NEWLINE_ADDED),
                }))
            }
            _ => Err(torn()),
        }
    }
}

/// The text without the block and without the line breaks added before it.
fn without(text: &str, found: &BlockMatch) -> String {
    let strip = |text: &'_ str| -> Option<usize> {
        let shorter = text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n'))?;
        Some(shorter.len())
    };
    let before = &text[..found.start];
    // Text that was added after the block needs the line break.
    if found.adds_newline && found.end == text.len() {
        let end = strip(before)
            .and_then(|end| strip(&before[..end]))
            .unwrap_or(before.len());
        return before[..end].to_owned();
    }
    let shortened = strip(before).map(|end| &before[..end]);
    // Remove only the empty line: the remaining text must still end with a line break.
    let before = shortened
        .filter(|shortened| shortened.ends_with('\n'))
        .unwrap_or(before);
    format!("{before}{}", &text[found.end..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::NoRunner;

    fn block(directory: &tempfile::TempDir) -> ConfigurationBlock {
        ConfigurationBlock {
            path: directory.path().join("init.el"),
            comment: ";;",
            body: "(require 'alongside)".to_owned(),
        }
    }

    #[test]
    fn install_and_uninstall_preserve_the_rest() {
        for text in [
            "",
            "(one)\n",
            "(one)\n\n",
            "\n\n(one)\n;; two\n",
            "(one)\r\n(two)\r\n",
            "\u{feff}(one)\n",
        ] {
            let directory = tempfile::tempdir().unwrap();
            let block = block(&directory);
            fs::write(&block.path, text).unwrap();
            assert_eq!(block.state().unwrap(), InstallState::Absent);
            block.plan_install().unwrap().carry_out(&NoRunner).unwrap();
            assert_eq!(block.state().unwrap(), InstallState::Installed);
            assert!(block.plan_install().unwrap().is_empty(), "{text:?} twice");
            let with_block = fs::read_to_string(&block.path).unwrap();
            assert!(with_block.starts_with(text));
            if text.contains("\r\n") {
                assert_eq!(with_block.matches('\n').count(), with_block.matches("\r\n").count());
            }
            assert_eq!(block.foreign_text().unwrap(), text);
            block.plan_uninstall().unwrap().carry_out(&NoRunner).unwrap();
            assert_eq!(fs::read_to_string(&block.path).unwrap_or_default(), text);
            assert!(block.plan_uninstall().unwrap().is_empty());
        }
    }

    #[test]
    fn text_after_block_and_missing_final_newline_survive() {
        let directory = tempfile::tempdir().unwrap();
        let block = block(&directory);
        fs::write(&block.path, "(one)").unwrap();
        block.plan_install().unwrap().carry_out(&NoRunner).unwrap();
        let text = fs::read_to_string(&block.path).unwrap();
        fs::write(&block.path, format!("{text}(two)\n")).unwrap();
        assert_eq!(block.state().unwrap(), InstallState::Installed);
        block.plan_uninstall().unwrap().carry_out(&NoRunner).unwrap();
        assert_eq!(fs::read_to_string(&block.path).unwrap(), "(one)\n(two)\n");
    }

    #[test]
    fn uninstall_leaves_the_directory_as_it_was() {
        for text in ["(one)", "(one)\r\n(two)", "(one)\n"] {
            let directory = tempfile::tempdir().unwrap();
            let block = block(&directory);
            fs::write(&block.path, text).unwrap();
            block.plan_install().unwrap().carry_out(&NoRunner).unwrap();
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "with a backup");
            assert_eq!(block.state().unwrap(), InstallState::Installed);
            block.plan_uninstall().unwrap().carry_out(&NoRunner).unwrap();
            assert_eq!(fs::read_to_string(&block.path).unwrap(), text);
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "without a backup");
        }
    }

    #[test]
    fn edited_block_is_backed_up() {
        for uninstall in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let block = block(&directory);
            block.plan_install().unwrap().carry_out(&NoRunner).unwrap();
            let edited = fs::read_to_string(&block.path).unwrap().replace("'alongside", "'mine");
            fs::write(&block.path, &edited).unwrap();
            assert_eq!(block.state().unwrap(), InstallState::Edited);
            let plan = if uninstall {
                block.plan_uninstall().unwrap()
            } else {
                block.plan_install().unwrap()
            };
            assert!(plan.remarks[0].contains("had been edited"));
            let steps = plan.carry_out(&NoRunner).unwrap();
            assert_eq!(fs::read_to_string(steps[0].backup.as_ref().unwrap()).unwrap(), edited);
        }
    }

    #[cfg(unix)]
    #[test]
    fn uninstall_from_symlinked_file_keeps_the_symlink() {
        let directory = tempfile::tempdir().unwrap();
        let block = block(&directory);
        let real = directory.path().join("dotfiles.el");
        fs::write(&real, "").unwrap();
        std::os::unix::fs::symlink(&real, &block.path).unwrap();
        block.plan_install().unwrap().carry_out(&NoRunner).unwrap();
        assert!(fs::read_to_string(&real).unwrap().contains("(require"));
        block.plan_uninstall().unwrap().carry_out(&NoRunner).unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "");
        assert!(fs::symlink_metadata(&block.path).unwrap().is_symlink());
    }

    #[test]
    fn older_block_is_outdated_and_replaced_in_place() {
        let directory = tempfile::tempdir().unwrap();
        let block = block(&directory);
        let older = ConfigurationBlock {
            body: "(old)".to_owned(),
            ..block.clone()
        };
        older.plan_install().unwrap().carry_out(&NoRunner).unwrap();
        let text = fs::read_to_string(&block.path).unwrap();
        fs::write(&block.path, format!("{text}(after)\n")).unwrap();
        assert_eq!(block.state().unwrap(), InstallState::Outdated);
        block.plan_install().unwrap().carry_out(&NoRunner).unwrap();
        let text = fs::read_to_string(&block.path).unwrap();
        assert!(!text.contains("(old)") && text.ends_with("<<<\n(after)\n"), "{text}");
    }

    #[test]
    fn unpaired_marks_and_invalid_utf8_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let block = block(&directory);
        for text in [
            ";; >>> alongside 1 >>>\n(one)\n",
            ";; <<< alongside <<<\n",
            ";; <<< alongside <<<\n;; >>> alongside 1 >>>\n",
        ] {
            fs::write(&block.path, text).unwrap();
            assert!(
                matches!(block.plan_install(), Err(InstallError::TornBlock { .. })),
                "{text}"
            );
            assert!(matches!(block.plan_uninstall(), Err(InstallError::TornBlock { .. })));
        }
        fs::write(&block.path, b"caf\xe9\n").unwrap();
        assert!(matches!(block.plan_install(), Err(InstallError::NotText { .. })));
    }
}
