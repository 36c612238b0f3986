use crate::output;

/// What people were told last, so that what is tried again and again is told once.
#[derive(Debug, Default)]
pub(super) struct Told(Option<String>);

// === impl Told ===

impl Told {
    pub(super) fn tell(&mut self, what: String) {
        if self.0.as_ref() != Some(&what) {
            output::tell(&what);
            self.0 = Some(what);
        }
    }
}
