//! A recorded session as an SVG that plays by itself.

use std::fmt::Write as _;

const CELL_WIDTH: f64 = 8.4;
const CELL_HEIGHT: f64 = 18.0;
const MARGIN: f64 = 12.0;
const FOREGROUND: &str = "#d5dbe3";
const BACKGROUND: &str = "#0d1117";
/// How long the last frame is shown, in milliseconds.
const LAST: u32 = 2500;

pub(crate) struct Frame {
    /// When it appears, in milliseconds.
    pub(crate) start: u32,
    pub(crate) screen: vt100::Screen,
}

pub(crate) fn render(frames: &[Frame], rows: u16, columns: u16) -> String {
    let (width, height) = (
        f64::from(columns) * CELL_WIDTH + 2.0 * MARGIN,
        f64::from(rows) * CELL_HEIGHT + 2.0 * MARGIN,
    );
    let total = frames.last().map_or(0, |frame| frame.start) + LAST;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" font-size=\"14\">\n\
         <title>alongside review</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for (index, frame) in frames.iter().enumerate() {
        let end = frames.get(index + 1).map_or(total, |next| next.start);
        let part = |time: u32| f64::from(time) / f64::from(total);
        let (values, times) = if frame.start == 0 {
            ("visible;hidden".to_owned(), format!("0;{:.4}", part(end)))
        } else {
            (
                "hidden;visible;hidden".to_owned(),
                format!("0;{:.4};{:.4}", part(frame.start), part(end)),
            )
        };
        // Where nothing moves, the last frame is the picture.
        let is_last = index + 1 == frames.len();
        let still = if is_last { "visible" } else { "hidden" };
        let _ = writeln!(
            svg,
            "<g visibility=\"{still}\"><animate attributeName=\"visibility\" calcMode=\"discrete\" dur=\"{:.1}s\" \
             repeatCount=\"indefinite\" values=\"{values}\" keyTimes=\"{times}\"/>",
            f64::from(total) / 1000.0
        );
        draw(&mut svg, &frame.screen, rows, columns);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

/// The style of a run of cells.
#[derive(Clone, PartialEq, Eq)]
struct Look {
    foreground: String,
    background: Option<String>,
    is_bold: bool,
    is_dim: bool,
}

fn draw(svg: &mut String, screen: &vt100::Screen, rows: u16, columns: u16) {
    for row in 0..rows {
        let mut runs: Vec<(u16, Look, String, u16)> = Vec::new();
        for column in 0..columns {
            let Some(cell) = screen.cell(row, column) else { continue };
            if cell.is_wide_continuation() {
                continue;
            }
            let (mut foreground, mut background) = (color(cell.fgcolor()), color(cell.bgcolor()));
            if cell.inverse() {
                foreground = background.or_else(|| Some(BACKGROUND.to_owned()));
                background = color(cell.fgcolor()).or_else(|| Some(FOREGROUND.to_owned()));
            }
            let look = Look {
                foreground: foreground.unwrap_or_else(|| FOREGROUND.to_owned()),
                background,
                is_bold: cell.bold(),
                is_dim: cell.dim(),
            };
            let text = if cell.has_contents() { cell.contents() } else { " " };
            match runs.last_mut() {
                Some((_, same, run, width)) if *same == look => {
                    run.push_str(text);
                    *width += 1;
                }
                _ => runs.push((column, look, text.to_owned(), 1)),
            }
        }
        for (column, look, text, width) in runs {
            draw_run(svg, row, column, &look, &text, width);
        }
    }
}

fn draw_run(svg: &mut String, row: u16, column: u16, look: &Look, text: &str, width: u16) {
    let x = MARGIN + f64::from(column) * CELL_WIDTH;
    let y = MARGIN + f64::from(row) * CELL_HEIGHT;
    let length = f64::from(width) * CELL_WIDTH;
    if let Some(background) = &look.background {
        let _ = write!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{CELL_HEIGHT}\" fill=\"{background}\"/>"
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let bold = if look.is_bold { " font-weight=\"bold\"" } else { "" };
    let dim = if look.is_dim { " opacity=\"0.6\"" } else { "" };
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" \
         fill=\"{}\"{bold}{dim}>{escaped}</text>",
        y + CELL_HEIGHT - 5.0,
        look.foreground
    );
}

fn color(color: vt100::Color) -> Option<String> {
    match color {
        vt100::Color::Default => None,
        vt100::Color::Idx(index) => Some(indexed(index)),
        vt100::Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    }
}

fn indexed(index: u8) -> String {
    const NAMED: [&str; 16] = [
        "#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4", "#6e7681", "#ffa198",
        "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
    ];
    match index {
        0..16 => NAMED[usize::from(index)].to_owned(),
        16..232 => {
            let cube = index - 16;
            let level = |part: u8| if part == 0 { 0 } else { 55 + 40 * part };
            format!(
                "#{:02x}{:02x}{:02x}",
                level(cube / 36),
                level(cube / 6 % 6),
                level(cube % 6)
            )
        }
        232.. => {
            let gray = 8 + 10 * (index - 232);
            format!("#{gray:02x}{gray:02x}{gray:02x}")
        }
    }
}
