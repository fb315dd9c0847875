//! The framing of Codex's socket: messages behind their length, four bytes with the lowest first.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// How much is allocated for a message before its bytes have come.
const MAX_TRUSTED_BYTES: usize = 64 * 1024;

/// Reads the next message of up to `limit` bytes; `None` at the end of the input. After an error nothing more can be read, because
/// where the next message starts is unknown. Not safe to drop while it waits.
pub async fn read_frame(input: &mut (impl AsyncRead + Unpin), limit: usize) -> io::Result<Option<Vec<u8>>> {
    let mut prefix = [0; 4];
    let mut filled = 0;
    while filled < prefix.len() {
        match input.read(&mut prefix[filled..]).await? {
            0 if filled == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    let length = u32::from_le_bytes(prefix);
    let too_large = || {
        let reason = format!("message too large: {length} bytes; the limit is {limit}");
        io::Error::new(io::ErrorKind::InvalidData, reason)
    };
    let length = usize::try_from(length).map_err(|_| too_large())?;
    if length > limit {
        return Err(too_large());
    }
    let mut body = Vec::with_capacity(length.min(MAX_TRUSTED_BYTES));
    input.take(length as u64).read_to_end(&mut body).await?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(body))
}

/// Writes one message and flushes.
pub async fn write_frame(output: &mut (impl AsyncWrite + Unpin), message: &str) -> io::Result<()> {
    let length = u32::try_from(message.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    output.write_all(&length.to_le_bytes()).await?;
    output.write_all(message.as_bytes()).await?;
    output.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn length_is_little_endian_and_in_bytes() {
        let mut output = Vec::new();
        write_frame(&mut output, "\"ü\"").await.unwrap();
        assert_eq!(output, b"\x04\0\0\0\"\xc3\xbc\"");
        write_frame(&mut output, "{}").await.unwrap();
        let mut input = &*output;
        assert_eq!(read_frame(&mut input, 4).await.unwrap().unwrap(), "\"ü\"".as_bytes());
        assert_eq!(read_frame(&mut input, 4).await.unwrap().unwrap(), b"{}");
        assert!(read_frame(&mut input, 4).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn cut_or_oversized_frame_is_an_error() {
        for mut input in [
            &b"\x02\0"[..],
            b"\x02\0\0\0{",
            b"\x05\0\0\0{...}",
            b"\xff\xff\xff\xff{}",
        ] {
            assert!(read_frame(&mut input, 4).await.is_err(), "{input:?}");
        }
    }
}
