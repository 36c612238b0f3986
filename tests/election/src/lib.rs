//! Elections among real processes: the binary `candidate` takes part in one and writes what happens to it as JSON lines
//! ([`Line`](coord_recipes_tests::Line)), stamped with a clock that all processes of a machine share;
//! [`check`](coord_recipes_tests::check) looks at the lines of all of them.

mod store;

pub use store::Store;
