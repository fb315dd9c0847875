//! The platforms, and what each package format calls them.

use crate::toolchain::{self, LINUX_ARM_STATIC, LINUX_STATIC, WINDOWS};

pub(super) struct Platform {
    /// Rust's name.
    pub(super) triple: &'static str,
    /// How Linux builds it; elsewhere, and if there is none, only a machine of that system can.
    pub(super) cross: Option<&'static toolchain::Target>,
    pub(super) program: &'static str,
    pub(super) npm: Npm,
    /// The end of a wheel's name.
    pub(super) wheel: &'static str,
    pub(super) debian: Option<&'static str>,
    pub(super) vscode: &'static [&'static str],
}

pub(super) struct Npm {
    /// After the scope.
    pub(super) name: &'static str,
    pub(super) os: &'static str,
    pub(super) cpu: &'static [&'static str],
}

const PROGRAM: &str = "alongside";

/// Linux packages have the static program, so that there is no minimum version of a C library.
pub(super) const PLATFORMS: [Platform; 5] = [
    Platform {
        triple: "x86_64-unknown-linux-musl",
        cross: Some(&LINUX_STATIC),
        program: PROGRAM,
        npm: Npm {
            name: "linux-x64",
            os: "linux",
            cpu: &["x64"],
        },
        wheel: "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
        debian: Some("amd64"),
        vscode: &["linux-x64", "alpine-x64"],
    },
    Platform {
        triple: "aarch64-unknown-linux-musl",
        cross: Some(&LINUX_ARM_STATIC),
        program: PROGRAM,
        npm: Npm {
            name: "linux-arm64",
            os: "linux",
            cpu: &["arm64"],
        },
        wheel: "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        debian: Some("arm64"),
        vscode: &["linux-arm64", "alpine-arm64"],
    },
    Platform {
        triple: "x86_64-pc-windows-gnu",
        cross: Some(&WINDOWS),
        program: "alongside.exe",
        npm: Npm {
            name: "win32-x64",
            os: "win32",
            // Windows on ARM runs it too, in emulation.
            cpu: &["x64", "arm64"],
        },
        wheel: "win_amd64.win_arm64",
        debian: None,
        vscode: &["win32-x64"],
    },
    Platform {
        triple: "aarch64-apple-darwin",
        cross: None,
        program: PROGRAM,
        npm: Npm {
            name: "darwin-arm64",
            os: "darwin",
            cpu: &["arm64"],
        },
        wheel: "macosx_11_0_arm64",
        debian: None,
        vscode: &["darwin-arm64"],
    },
    Platform {
        triple: "x86_64-apple-darwin",
        cross: None,
        program: PROGRAM,
        npm: Npm {
            name: "darwin-x64",
            os: "darwin",
            cpu: &["x64"],
        },
        wheel: "macosx_10_12_x86_64",
        debian: None,
        vscode: &["darwin-x64"],
    },
];

pub(super) fn find(triple: &str) -> Result<&'static Platform, String> {
    PLATFORMS
        .iter()
        .find(|platform| platform.triple == triple)
        .ok_or_else(|| {
            let known = PLATFORMS.map(|platform| platform.triple);
            format!("unknown target `{triple}`; expected one of {}", known.join(", "))
        })
}

impl Platform {
    pub(super) fn is_windows(&self) -> bool {
        self.triple.contains("windows")
    }

    pub(super) fn is_mac(&self) -> bool {
        self.triple.contains("apple")
    }

    pub(super) fn is_arm(&self) -> bool {
        self.triple.starts_with("aarch64")
    }

    pub(super) fn builds_here(&self) -> bool {
        if cfg!(target_os = "macos") {
            self.is_mac()
        } else {
            cfg!(all(target_os = "linux", target_arch = "x86_64")) && self.cross.is_some()
        }
    }

    /// Where it is built, for messages.
    pub(super) fn where_built(&self) -> &'static str {
        if self.is_mac() {
            "build them on a Mac, which has the system's libraries and signs the program"
        } else {
            "build them on Linux on x86-64"
        }
    }
}
