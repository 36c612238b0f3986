//! A checker that had nothing to look at has found nothing, and shown nothing.

use super::{Blame, Verdict};

pub(super) fn check(verdicts: &[Verdict]) -> Verdict {
    let mut verdict = Verdict::new("something to look at");
    for other in verdicts {
        verdict.checked += 1;
        if other.checked == 0 {
            verdict.wrong(Blame::Ours, format!("{} looked at nothing", other.checker));
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checker_that_looked_at_nothing_is_found() {
        let (idle, mut busy) = (Verdict::new("idle"), Verdict::new("busy"));
        busy.checked = 1;
        let found = check(&[busy, idle]).violations;
        assert!(found.len() == 1 && found[0].text.contains("idle"), "{found:?}");
    }
}
