//! Format 1.0 of a log's file, byte by byte. All numbers are little-endian.
//!
//! ```text
//!    0  header   magic[8] | major u16 | minor u16 | epoch u32 | generation u64 | first seq u64 | salt u32 | crc32 u32
//!  256  mark     durable end u64 | crc32 u32
//!  512  header   again, for when the first sector is damaged
//!  768  mark     this one and the other are rewritten in turn, one after each sync
//! 1024  frames   kind and length u32 | crc32 u32 | seq u64 | payload
//!       zeros    space reserved for what comes next; a length of 0 is the end
//! ```
//!
//! The upper four bits of a frame's first word are its kind, the others the length of seq and payload, so that no frame
//! has the length 0. The checksum covers everything but itself and starts from the file's random salt: a text that
//! happens to contain a frame is not mistaken for one when the reader looks for the next whole frame. Frames are numbered
//! without gaps, over all generations.

use std::fmt;
use std::io;

use crc32fast::Hasher;

pub(crate) const MAGIC: &[u8; 8] = b"\x89ajourn\n";
pub(crate) const MAJOR: u16 = 1;
pub(crate) const MINOR: u16 = 0;
const HEADER_LENGTH: usize = 40;
pub(crate) const HEADER_OFFSETS: [usize; 2] = [0, 512];
/// A write that is cut off damages one mark only.
pub(crate) const MARK_OFFSETS: [usize; 2] = [256, 768];
const MARK_LENGTH: usize = 12;
pub(crate) const FRAMES_START: usize = 1024;
/// The length of a frame without its payload.
pub(crate) const FRAME_OVERHEAD: usize = 16;
const PREFIX: usize = 8;
const SEQ: usize = 8;
const LENGTH_BITS: u32 = 28;
pub(crate) const MAX_PAYLOAD_BYTES: usize = (1 << LENGTH_BITS) - 1 - SEQ;

/// The identity of a journal: chosen at random when it is created, and kept across compactions and restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch(pub(crate) u32);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) epoch: Epoch,
    pub(crate) generation: u64,
    pub(crate) first_seq: u64,
    pub(crate) salt: u32,
}

/// What a header's bytes turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Head {
    Ours(Header),
    OtherFormat { major: u16 },
    Damaged,
}

impl Header {
    fn encode(&self) -> [u8; HEADER_LENGTH] {
        let mut bytes = [0; HEADER_LENGTH];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&MAJOR.to_le_bytes());
        bytes[10..12].copy_from_slice(&MINOR.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.epoch.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.generation.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first_seq.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.salt.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..36]);
        bytes[36..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Everything before the frames.
    pub(crate) fn encode_head(&self, durable_end: u64) -> Vec<u8> {
        let mut bytes = vec![0; FRAMES_START];
        for offset in HEADER_OFFSETS {
            bytes[offset..offset + HEADER_LENGTH].copy_from_slice(&self.encode());
        }
        for offset in MARK_OFFSETS {
            bytes[offset..offset + MARK_LENGTH].copy_from_slice(&encode_mark(durable_end));
        }
        bytes
    }

    /// The first copy that is whole. Other major versions are recognized by magic and version alone: what follows is theirs.
    pub(crate) fn decode(file: &[u8]) -> Head {
        let mut head = Head::Damaged;
        for offset in HEADER_OFFSETS {
            let Some(bytes) = file.get(offset..offset + HEADER_LENGTH) else {
                continue;
            };
            if !bytes.starts_with(MAGIC) {
                continue;
            }
            let major = u16::from_le_bytes(array(bytes, 8));
            if crc32fast::hash(&bytes[..36]) == u32::from_le_bytes(array(bytes, 36)) && major == MAJOR {
                return Head::Ours(Self {
                    epoch: Epoch(u32::from_le_bytes(array(bytes, 12))),
                    generation: u64::from_le_bytes(array(bytes, 16)),
                    first_seq: u64::from_le_bytes(array(bytes, 24)),
                    salt: u32::from_le_bytes(array(bytes, 32)),
                });
            }
            // Only the first copy's place is known to be the same in every format.
            if major != MAJOR && offset == 0 {
                head = Head::OtherFormat { major };
            }
        }
        head
    }
}

/// Up to where the file is known to be durable. A hole before this was caused by damage; one behind it can be the work of
/// a power loss.
pub(crate) fn encode_mark(end: u64) -> [u8; MARK_LENGTH] {
    let mut bytes = [0; MARK_LENGTH];
    bytes[..8].copy_from_slice(&end.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..8]);
    bytes[8..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The later of the two marks. Nothing if both are damaged.
pub(crate) fn decode_mark(file: &[u8]) -> Option<u64> {
    let marks = MARK_OFFSETS.iter().filter_map(|offset| {
        let bytes = file.get(*offset..offset + MARK_LENGTH)?;
        let whole = crc32fast::hash(&bytes[..8]) == u32::from_le_bytes(array(bytes, 8));
        whole.then(|| u64::from_le_bytes(array(bytes, 0)))
    });
    marks.max()
}

/// What a frame is for. Readers skip kinds that they do not know: a later minor version may add some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A payload of the caller.
    Record,
    /// The end of a snapshot: everything before it was written.
    Whole,
    Unknown,
}

impl Kind {
    fn bits(self) -> u32 {
        match self {
            Self::Record => 0,
            Self::Whole => 1,
            Self::Unknown => 0xf,
        }
    }

    fn from_bits(bits: u32) -> Self {
        match bits {
            0 => Self::Record,
            1 => Self::Whole,
            _ => Self::Unknown,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: Kind,
    pub(crate) seq: u64,
    pub(crate) payload: &'a [u8],
}

impl Frame<'_> {
    pub(crate) fn length(&self) -> usize {
        FRAME_OVERHEAD + self.payload.len()
    }
}

pub(crate) fn push_frame(bytes: &mut Vec<u8>, salt: u32, kind: Kind, seq: u64, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(SEQ + payload.len())
        .ok()
        .filter(|_| payload.len() <= MAX_PAYLOAD_BYTES);
    let Some(length) = length else {
        let text = format!("a record of {} bytes is too large for the journal", payload.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    };
    let word = (length | kind.bits() << LENGTH_BITS).to_le_bytes();
    let seq = seq.to_le_bytes();
    let mut crc = Hasher::new_with_initial(salt);
    crc.update(&word);
    crc.update(&seq);
    crc.update(payload);
    bytes.reserve(FRAME_OVERHEAD + payload.len());
    bytes.extend_from_slice(&word);
    bytes.extend_from_slice(&crc.finalize().to_le_bytes());
    bytes.extend_from_slice(&seq);
    bytes.extend_from_slice(payload);
    Ok(())
}

/// What claims to be a frame: its checksum is not looked at yet.
pub(crate) struct Candidate<'a> {
    bytes: &'a [u8],
}

impl<'a> Candidate<'a> {
    /// Nothing if no frame of this length can be here.
    pub(crate) fn at(file: &'a [u8], offset: usize) -> Option<Self> {
        let prefix = file.get(offset..offset.checked_add(FRAME_OVERHEAD)?)?;
        let length = (u32::from_le_bytes(array(prefix, 0)) & ((1 << LENGTH_BITS) - 1)) as usize;
        let bytes = file.get(offset..offset.checked_add(PREFIX + length)?)?;
        (length >= SEQ).then_some(Self { bytes })
    }

    pub(crate) fn seq(&self) -> u64 {
        u64::from_le_bytes(array(self.bytes, PREFIX))
    }

    pub(crate) fn length(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn verify(&self, salt: u32) -> Option<Frame<'a>> {
        let mut crc = Hasher::new_with_initial(salt);
        crc.update(&self.bytes[..4]);
        crc.update(&self.bytes[PREFIX..]);
        (crc.finalize() == u32::from_le_bytes(array(self.bytes, 4))).then(|| Frame {
            kind: Kind::from_bits(u32::from_le_bytes(array(self.bytes, 0)) >> LENGTH_BITS),
            seq: self.seq(),
            payload: &self.bytes[FRAME_OVERHEAD..],
        })
    }
}

fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[offset..offset + N]);
    array
}
