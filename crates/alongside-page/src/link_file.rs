//! A private file that redirects a browser to a login link.
//!
//! Other users can read the arguments of a browser, but not this file, so `--open` starts the browser with it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempPath;

const PREFIX: &str = "page-";

/// Writes the file, with mode 0600, into a directory that only this user can enter. Blocks.
pub(crate) fn write(directory: &Path, url: &str) -> io::Result<TempPath> {
    let url = url.replace('&', "&amp;");
    let mut file = tempfile::Builder::new()
        .prefix(PREFIX)
        .suffix(".html")
        .tempfile_in(directory)?;
    writeln!(
        file,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>alongside</title>\
         <meta http-equiv=\"refresh\" content=\"0;url={url}\"><p><a href=\"{url}\">Continue to alongside</a></p></html>"
    )?;
    file.flush()?;
    Ok(file.into_temp_path())
}

/// Removes files that a killed companion left behind; their links no longer work. Blocks.
pub(crate) fn sweep(directory: &Path, lifetime: Duration) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old = modified.is_ok_and(|modified| {
            SystemTime::now()
                .duration_since(modified)
                .is_ok_and(|age| age > lifetime)
        });
        if is_ours && is_old {
            // Another companion may have removed it just now.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_files_are_swept() {
        let directory = tempfile::tempdir().unwrap();
        let [old, new] = [(); 2].map(|()| write(directory.path(), "http://127.0.0.1:1/").unwrap());
        let foreign = directory.path().join("notes.html");
        fs::write(&foreign, "").unwrap();
        let long_ago = SystemTime::now() - Duration::from_hours(1);
        for path in [&*old, &foreign] {
            fs::File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_modified(long_ago)
                .unwrap();
        }
        sweep(directory.path(), Duration::from_mins(10));
        assert_eq!((old.exists(), new.exists(), foreign.exists()), (false, true, true));
    }
}
