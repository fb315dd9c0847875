//! Recovery of the journal from any bytes.

use std::sync::Arc;

use alongside_journal::{Directory, Log, SimDisk};

const NAME: &str = "state";

/// A file that is doubled again and again would fill the memory.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The first byte says what follows: a file as it is, or changes to a good one. Whatever is there, the log opens, keeps whole records
/// of before, opens again in the same way, and can be appended to.
pub fn journal_recovery(bytes: &[u8]) {
    let Some((mode, rest)) = bytes.split_first() else {
        return;
    };
    let disk = SimDisk::new(u64::from(*mode));
    let originals: Vec<Vec<u8>> = (1_u8..5).map(|fill| vec![fill; usize::from(fill) * 60]).collect();
    {
        let directory = Directory::on(Arc::new(disk.clone()));
        let (mut log, _) = Log::open(&directory, NAME).unwrap();
        log.append(&originals).unwrap();
        directory.sync().unwrap();
    }
    let is_raw = mode % 2 == 0;
    disk.corrupt(&format!("{NAME}-1"), |file| {
        if is_raw {
            *file = rest.to_vec();
            return;
        }
        for change in rest.chunks_exact(4) {
            let offset = usize::from(u16::from_le_bytes([change[0], change[1]])) % file.len().max(1);
            match change[2] {
                // Cut off, doubled, or another byte.
                0 => file.truncate(offset),
                1 if file.len() < MAX_BYTES => file.extend_from_within(offset..),
                _ if offset < file.len() => file[offset] = change[3],
                _ => {}
            }
        }
    });
    let open = |disk: &SimDisk| {
        let directory = Directory::on(Arc::new(disk.clone()));
        let (log, recovered) = Log::open(&directory, NAME).unwrap();
        (directory, log, recovered)
    };
    let (directory, mut log, recovered) = open(&disk);
    if !is_raw {
        for record in &recovered.records {
            assert!(originals.contains(record), "a record that nobody wrote");
        }
    }
    let records = recovered.records;
    log.append(&[b"appended".to_vec()]).unwrap();
    directory.sync().unwrap();
    drop((log, directory));
    let (_directory, _log, again) = open(&disk.kill());
    assert!(again.damage.is_none(), "recovering twice is recovering once");
    let expected: Vec<Vec<u8>> = records.into_iter().chain([b"appended".to_vec()]).collect();
    assert_eq!(again.records, expected);
}
