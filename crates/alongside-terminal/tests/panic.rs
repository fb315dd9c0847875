//! A panic restores the terminal before its message is printed.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

#[test]
fn panic_restores_the_terminal() {
    let test = std::env::current_exe().unwrap();
    let example = test.ancestors().nth(2).unwrap().join("examples/panic");
    let size = PtySize {
        rows: 12,
        cols: 80,
        pixel_width: 0,
        pixel_height: 0,
    };
    let pair = native_pty_system().openpty(size).unwrap();
    let mut command = CommandBuilder::new(example);
    // The message must fit on the screen.
    command.env("RUST_BACKTRACE", "0");
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut keys = pair.master.take_writer().unwrap();
    let mut reader = pair.master.try_clone_reader().unwrap();
    let mut parser = vt100::Parser::new(12.try_into().unwrap(), 80.try_into().unwrap(), 0);
    let mut was_entered = false;
    let mut buffer = [0; 4096];
    // Ends when the program does.
    while let Ok(length) = reader.read(&mut buffer)
        && length > 0
    {
        parser.process(&buffer[..length]);
        if parser.screen().alternate_screen() && parser.screen().contents().contains("quit") && !was_entered {
            was_entered = true;
            keys.write_all(b"w").unwrap();
        }
    }
    let screen = parser.screen();
    assert!(was_entered);
    assert!(!child.wait().unwrap().success());
    assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
    assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
    assert!(
        screen.contents().contains("the reviewer panics"),
        "{}",
        screen.contents()
    );
}
