//! The file that a demo is about.

use anyhow::{Context, Result};
use tempfile::TempDir;

const TEXT: &str = "# Shopping\n\n- bread\n- milk\n- apples\n";

/// A file in a directory of its own, removed with it.
pub(super) struct Sample {
    path: String,
    _directory: TempDir,
}

impl Sample {
    pub(super) fn create() -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("alongside-demo-").tempdir();
        let directory = directory.context("cannot create a directory for the sample file")?;
        let file = directory.path().join("shopping.md");
        std::fs::write(&file, TEXT).with_context(|| format!("cannot write {}", file.display()))?;
        let path = file
            .to_str()
            .context("the temporary directory's path is not valid UTF-8")?;
        Ok(Self {
            path: path.to_owned(),
            _directory: directory,
        })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }
}
