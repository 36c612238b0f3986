use super::check;
use crate::check::fixture::line;
use crate::history::{Line, What};

fn history(last: u64) -> Vec<Line> {
    let memory = |at, kb| line(at, "c0.0", What::Memory { kb });
    vec![memory(0, 10_000), memory(6000, 20_000), memory(60_000, last)]
}

#[test]
fn a_client_that_grows_is_found() {
    assert_eq!(check(&history(24_000)).violations, []);
    assert_eq!(check(&history(90_000)).violations.len(), 1);
}
