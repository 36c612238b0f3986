//! Elections among real processes: the binary `candidate` takes part in one and writes what happens to it as JSON lines,
//! stamped with a clock that all processes of a machine share; [`check`] looks at the lines of all of them.

mod check;
mod line;
mod store;

pub use check::{Interval, check, intervals};
pub use line::{Line, What};
pub use store::Store;
