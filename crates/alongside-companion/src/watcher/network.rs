//! Directories whose changes the system does not report, because another machine can make them.

use std::path::Path;

/// Whether every change in this directory is reported. Blocks if its file system hangs.
#[cfg(target_os = "linux")]
pub(super) fn reports_changes(directory: &Path) -> bool {
    rustix::fs::statfs(directory).is_ok_and(|system| !is_remote(i128::from(system.f_type)))
}

/// Other systems do not say, or report such changes themselves.
#[cfg(not(target_os = "linux"))]
pub(super) fn reports_changes(_: &Path) -> bool {
    true
}

/// The numbers of `statfs(2)`. The kernel cannot know who else writes to these.
#[cfg(target_os = "linux")]
fn is_remote(kind: i128) -> bool {
    // The field is 32 bits wide on some machines, where the larger numbers are negative.
    let kind = u32::try_from(kind & 0xffff_ffff).unwrap_or_default();
    matches!(
        kind,
        0x6969 // NFS
            | 0x517b // SMB
            | 0xff53_4d42 // CIFS
            | 0xfe53_4d42 // SMB 2
            | 0x6573_5546 // FUSE: sshfs, virtiofs, Docker Desktop
            | 0x0102_1997 // 9P: WSL, QEMU
            | 0x00c3_6400 // Ceph
            | 0x5346_414f // AFS
            | 0x786f_4256 // VirtualBox
            | 0xbacb_acbc // VMware
    )
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_do_not_report_every_change() {
        assert!(is_remote(0x6969) && is_remote(0xff53_4d42) && is_remote(i128::from(0xff53_4d42_u32.cast_signed())));
        assert!(!is_remote(0xef53), "ext4");
        assert!(reports_changes(Path::new("/proc")));
        assert!(!reports_changes(Path::new("/missing")));
    }
}
