//! What happened, one JSON line each: written by the clients on their standard output, by the nemesis and by the judge.

mod calls;
mod line;
mod value;

pub use calls::{Call, calls};
pub use line::{Held, Leadership, Line, Lost, Op, Outcome, Seen, Trouble, What};
pub use value::Value;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

/// Milliseconds in the nanoseconds of [`Line::at`].
pub const MS: u64 = 1_000_000;

/// Writes a history, one line each.
pub fn save(path: &Path, lines: &[Line]) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for line in lines {
        serde_json::to_writer(&mut file, line)?;
        file.write_all(b"\n")?;
    }
    file.flush()
}

/// Reads a history.
pub fn load(path: &Path) -> std::io::Result<Vec<Line>> {
    let mut lines = vec![];
    for text in BufReader::new(std::fs::File::open(path)?).lines() {
        lines.push(serde_json::from_str(&text?)?);
    }
    Ok(lines)
}
