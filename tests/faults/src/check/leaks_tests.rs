use super::check;
use crate::check::fixture::line;
use crate::history::{Line, What};

fn left(what: &str) -> Line {
    line(9, "judge", What::Left { what: what.into() })
}

#[test]
fn whatever_is_left_is_found() {
    let closed = line(8, "c0.0", What::Closed);
    assert_eq!(check(std::slice::from_ref(&closed)).violations, []);
    let found = check(&[closed, left("lease 7"), left("1 watches at m0")]).violations;
    assert_eq!(found.len(), 2);
    assert!(found[0].text.contains("lease 7"), "{found:?}");
}
