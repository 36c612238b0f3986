use std::fmt;

/// Text from outside, so that it cannot drive the terminal: control characters, and those that change the direction of
/// writing, are shown as escapes.
pub(crate) struct Escaped<'a> {
    text: &'a str,
    keep_lines: bool,
}

// === impl Escaped ===

impl<'a> Escaped<'a> {
    /// On one line.
    pub(crate) fn new(text: &'a str) -> Escaped<'a> {
        Escaped {
            text,
            keep_lines: false,
        }
    }

    /// Line ends stay.
    pub(crate) fn lines(text: &'a str) -> Escaped<'a> {
        Escaped { text, keep_lines: true }
    }
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use std::fmt::Write;
        let mut shown = String::with_capacity(self.text.len());
        for c in self.text.chars() {
            match c {
                '\n' if self.keep_lines => shown.push(c),
                _ if is_unsafe(c) => write!(shown, "{}", c.escape_default())?,
                _ => shown.push(c),
            }
        }
        // With width and alignment, for tables.
        f.pad(&shown)
    }
}

/// Whether a terminal might do something else with it than show it.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_terminals_is_escaped_and_the_rest_is_not() {
        let nasty = "a\u{1b}[31m\r\n\u{9b}2J\u{202e}ü";
        let shown = "a\\u{1b}[31m\\r\\n\\u{9b}2J\\u{202e}ü";
        assert_eq!(Escaped::new(nasty).to_string(), shown);
        assert_eq!(Escaped::lines("a\nb\u{7}").to_string(), "a\nb\\u{7}");
    }
}
