//! The terminal, restored however the program ends.

use std::io::{self, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use crossterm::execute;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use crate::model::Model;

/// Whether the terminal is ours, for the hook that runs on a panic.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    mouse: bool,
}

impl Screen {
    pub(super) fn enter(mouse: bool) -> io::Result<Self> {
        restore_on_panic();
        // Before anything can fail, so that a part of it is undone too.
        IS_ENTERED.store(true, Ordering::SeqCst);
        let entered = enter(mouse).and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match entered {
            Ok(terminal) => Ok(Self { terminal, mouse }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    pub(super) fn reenter(&mut self) -> io::Result<()> {
        IS_ENTERED.store(true, Ordering::SeqCst);
        enter(self.mouse)?;
        self.clear()
    }

    pub(super) fn clear(&mut self) -> io::Result<()> {
        // Not `Terminal::clear`, which asks the terminal where the cursor is and waits for an answer.
        execute!(io::stdout(), Clear(ClearType::All))?;
        self.terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(())
    }

    pub(super) fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    pub(super) fn draw(&mut self, model: &Model) -> io::Result<()> {
        self.terminal.draw(|frame| model.draw(frame))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn enter(mouse: bool) -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
    if mouse {
        execute!(io::stdout(), EnableMouseCapture)?;
    }
    Ok(())
}

/// Gives the terminal back. Does nothing if that has been done.
pub(super) fn restore() {
    if !IS_ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut stdout = io::stdout();
    // Each by itself: a terminal that is gone fails, and nothing else can be done about it.
    let _ = execute!(
        stdout,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    );
    let _ = stdout.flush();
    let _ = disable_raw_mode();
}

/// The message of a panic would otherwise be drawn into the alternate screen, and disappear with it.
fn restore_on_panic() {
    static INSTALLED: Once = Once::new();
    let thread = std::thread::current().id();
    INSTALLED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // A panic in another thread does not end the reviewer.
            if std::thread::current().id() == thread {
                restore();
            }
            previous(panic);
        }));
    });
}
