//! Random operations of several clients with injected faults, checked against a simple model of the contract.
//!
//! A call of unknown outcome makes the model branch: it keeps every [world](world::World) that explains all answers
//! so far, and fails when none is left. A failing case shrinks, and is kept in `proptest-regressions`.

mod run;
mod steps;
mod world;

use proptest::test_runner::{Config, FileFailurePersistence};
use proptest_state_machine::{StateMachineTest, prop_state_machine};

use run::Run;
use steps::{Step, Steps};

impl StateMachineTest for Run {
    type SystemUnderTest = Run;
    type Reference = Steps;

    fn init_test(_: &()) -> Run {
        Run::new()
    }

    fn apply(mut run: Run, _: &(), step: Step) -> Run {
        run.step(&step);
        run
    }
}

fn config() -> Config {
    Config {
        cases: 400,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(
            "proptest-regressions/model.txt",
        ))),
        ..Config::default()
    }
}

prop_state_machine! {
    #![proptest_config(config())]

    #[test]
    fn every_history_fits_the_contract(sequential 1..60 => Run);
}
