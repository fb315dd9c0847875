//! The signals that stop a companion, and one that must not.
//!
//! They are registered before anything is announced: an earlier one would kill the process and leave the discovery files
//! behind.

#[cfg(unix)]
pub(crate) struct ShutdownSignals {
    signals: [tokio::signal::unix::Signal; 4],
}

#[cfg(unix)]
impl ShutdownSignals {
    pub(crate) fn register() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        // Sent for a write beyond a limit on the size of files, and deadly by default. With a handler, which stays, the write fails
        // like one to a full disk. Programs that the companion starts are not affected.
        let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
        Ok(Self {
            signals: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
                // Ctrl-\, which would also leave a core dump.
                signal(SignalKind::quit())?,
            ],
        })
    }

    /// Waits for one of them.
    pub(crate) async fn received(&mut self) {
        self.received_unless(async || false).await;
    }

    /// Waits for one of them. An editor that exits sends SIGHUP to the programs that it started, which does not count if
    /// `ignores_hang_up`.
    pub(crate) async fn received_unless(&mut self, ignores_hang_up: impl AsyncFn() -> bool) {
        let [interrupt, terminate, hangup, quit] = &mut self.signals;
        loop {
            tokio::select! {
                _ = interrupt.recv() => return,
                _ = terminate.recv() => return,
                _ = hangup.recv() => if !ignores_hang_up().await { return },
                _ = quit.recv() => return,
            }
        }
    }
}

#[cfg(windows)]
pub(crate) struct ShutdownSignals {
    signals: (
        tokio::signal::windows::CtrlC,
        // The only polite end of a process group.
        tokio::signal::windows::CtrlBreak,
        tokio::signal::windows::CtrlClose,
        tokio::signal::windows::CtrlLogoff,
        tokio::signal::windows::CtrlShutdown,
    ),
}

#[cfg(windows)]
impl ShutdownSignals {
    pub(crate) fn register() -> std::io::Result<Self> {
        use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown};

        Ok(Self {
            signals: (
                ctrl_c()?,
                ctrl_break()?,
                ctrl_close()?,
                ctrl_logoff()?,
                ctrl_shutdown()?,
            ),
        })
    }

    /// Waits for one of them.
    pub(crate) async fn received(&mut self) {
        self.next().await;
    }

    pub(crate) async fn next(&mut self) -> ConsoleEvent {
        let (interrupt, stop, close, log_off, shutdown) = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => ConsoleEvent::Interrupt,
            _ = stop.recv() => ConsoleEvent::Interrupt,
            _ = close.recv() => ConsoleEvent::End,
            _ = log_off.recv() => ConsoleEvent::End,
            _ = shutdown.recv() => ConsoleEvent::End,
        }
    }

    /// There is no such signal.
    pub(crate) async fn received_unless(&mut self, _ignores_hang_up: impl AsyncFn() -> bool) {
        self.received().await;
    }
}

/// What Windows tells every program of a console.
#[cfg(windows)]
pub(crate) enum ConsoleEvent {
    /// Ctrl-C or Ctrl-Break.
    Interrupt,
    /// The console closes, or the user's session ends: the system leaves each program a few seconds.
    End,
}
