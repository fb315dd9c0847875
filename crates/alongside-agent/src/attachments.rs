//! The files that a user attaches to a prompt.

use bytes::Bytes;
use data_encoding::BASE64;

use crate::conversation::ContentBlock;
use crate::error::AgentError;

/// The limit for one file. It is the daemon's; a local agent sends the content to its model, which accepts less.
pub(crate) const MAX_FILE_BYTES: usize = 8 * 1024 * 1024;

/// The limit for the name of a file. It is the daemon's.
const MAX_NAME_BYTES: usize = 255;

/// The limit for the files of one prompt.
const MAX_FILES: usize = 16;

/// A file that was checked.
pub(crate) struct AttachedFile<'a> {
    pub(crate) name: &'a str,
    pub(crate) mime_type: &'a str,
    pub(crate) content: Bytes,
}

/// Decodes the attached files; `None` for the other parts of the prompt.
pub(crate) fn read_files(blocks: &[ContentBlock]) -> Result<Vec<Option<AttachedFile<'_>>>, AgentError> {
    let is_file = |block: &&ContentBlock| matches!(block, ContentBlock::File { .. });
    if blocks.iter().filter(is_file).count() > MAX_FILES {
        let message = "a message can have at most 16 files; send the others with another message";
        return Err(AgentError::Attachment("so many files".to_owned(), message));
    }
    blocks.iter().map(read_file).collect()
}

fn read_file(block: &ContentBlock) -> Result<Option<AttachedFile<'_>>, AgentError> {
    let ContentBlock::File { name, mime_type, data } = block else {
        return Ok(None);
    };
    let refused = |why| Err(AgentError::Attachment(name.clone(), why));
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return refused("its name must have 1 to 255 bytes; rename the file");
    }
    if data.len() / 4 * 3 > MAX_FILE_BYTES + 2 {
        return refused("it is larger than 8 MB; mention its path in the message instead");
    }
    let Ok(content) = BASE64.decode(data.as_bytes()) else {
        return refused("its content is not base 64");
    };
    if content.len() > MAX_FILE_BYTES {
        return refused("it is larger than 8 MB; mention its path in the message instead");
    }
    if content.is_empty() {
        return refused("it is empty");
    }
    Ok(Some(AttachedFile {
        name,
        mime_type,
        content: content.into(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, content: &[u8]) -> ContentBlock {
        ContentBlock::File {
            name: name.to_owned(),
            mime_type: "text/plain".to_owned(),
            data: BASE64.encode(content),
        }
    }

    fn refusal(blocks: &[ContentBlock]) -> String {
        read_files(blocks)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn file_is_decoded_and_text_is_left_alone() {
        let blocks = [ContentBlock::text("a"), file("a.txt", b"b")];
        let files = read_files(&blocks).unwrap();
        assert!(files[0].is_none());
        assert_eq!(&*files[1].as_ref().unwrap().content, b"b");
    }

    #[test]
    fn file_beyond_a_limit_is_refused_with_its_name() {
        assert!(read_files(&[file("a", &vec![0; MAX_FILE_BYTES])]).is_ok());
        let large = refusal(&[file("big.bin", &vec![0; MAX_FILE_BYTES + 1])]);
        assert!(
            large.starts_with("cannot attach big.bin: it is larger than 8 MB"),
            "{large}"
        );
        assert_eq!(refusal(&[file("a", b"")]), "cannot attach a: it is empty");
        assert!(refusal(&[file("", b"a")]).contains("its name"));
        assert!(refusal(&vec![file("a", b"b"); MAX_FILES + 1]).contains("at most 16 files"));
        let data = "*".to_owned();
        let (name, mime_type) = ("a".to_owned(), String::new());
        assert!(refusal(&[ContentBlock::File { name, mime_type, data }]).contains("base 64"));
    }
}
