//! The README's first example is the one that compiles here.

#[test]
fn the_first_example_of_the_readme_is_examples_leader() {
    let example = include_str!("../examples/leader.rs");
    let (_, code) = example.split_once("\n\n").expect("a comment, then the code");
    assert!(
        include_str!("../../README.md").contains(code.trim_end()),
        "the README shows something else than coord/examples/leader.rs"
    );
}
