//! What may happen in a history: steps that refer to clients, keys and leases by number, so that they shrink well.

use std::time::Duration;

use coord_mem::{Fault, GiveUp};
use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

pub(crate) const CLIENTS: usize = 3;
pub(crate) const KEYS: [&str; 5] = ["/a", "/a/b", "/a/b/c", "/q", "/q/d"];
/// Where the sequential entries are.
pub(crate) const QUEUE: &str = "/q";
/// The longest that a request is under way after its caller has given up.
pub(crate) const LATEST: Duration = Duration::from_millis(2_000);

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Call(usize, Call, Fault),
    Advance(Duration),
    Cut(usize),
    Swallow(usize),
    Heal(usize),
    Gap(usize),
    EndLease(usize, usize),
    EndLeaseEarly(usize, usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Call {
    Grant,
    Renew(usize),
    Revoke(usize),
    Create(usize, Mode),
    /// Once more what ended unknown.
    CreateAgain(usize),
    Abandon(usize),
    Get(usize),
    Children(usize),
    Update(usize, Guard),
    Delete(usize, Guard),
    Standing(usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Mode {
    Persistent,
    Ephemeral(usize),
    Sequential(usize),
}

/// The condition of a write: none, the version that was seen last, or one seen before.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Guard {
    Any,
    Latest,
    Older,
}

/// The reference machine chooses steps; what they mean, the worlds know.
#[derive(Debug)]
pub(crate) struct Steps;

impl ReferenceStateMachine for Steps {
    type State = ();
    type Transition = Step;

    fn init_state() -> BoxedStrategy<()> {
        Just(()).boxed()
    }

    fn transitions((): &()) -> BoxedStrategy<Step> {
        let client = || 0..CLIENTS;
        prop_oneof![
            20 => (client(), call(), fault()).prop_map(|(client, call, fault)| Step::Call(client, call, fault)),
            4 => (1..8_000_u64).prop_map(|millis| Step::Advance(Duration::from_millis(millis))),
            1 => client().prop_map(Step::Cut),
            1 => client().prop_map(Step::Swallow),
            3 => client().prop_map(Step::Heal),
            1 => client().prop_map(Step::Gap),
            1 => (client(), 0..3_usize).prop_map(|(client, lease)| Step::EndLease(client, lease)),
            1 => (client(), 0..3_usize).prop_map(|(client, lease)| Step::EndLeaseEarly(client, lease)),
        ]
        .boxed()
    }

    fn apply((): (), _: &Step) {}
}

fn call() -> impl Strategy<Value = Call> {
    let key = || 0..KEYS.len();
    let lease = || 0..3_usize;
    let attempt = || 0..4_usize;
    prop_oneof![
        4 => Just(Call::Grant),
        4 => lease().prop_map(Call::Renew),
        1 => lease().prop_map(Call::Revoke),
        10 => (key(), mode()).prop_map(|(key, mode)| Call::Create(key, mode)),
        4 => attempt().prop_map(Call::CreateAgain),
        3 => attempt().prop_map(Call::Abandon),
        2 => key().prop_map(Call::Get),
        2 => key().prop_map(Call::Children),
        4 => (key(), guard()).prop_map(|(key, guard)| Call::Update(key, guard)),
        4 => (key(), guard()).prop_map(|(key, guard)| Call::Delete(key, guard)),
        3 => attempt().prop_map(Call::Standing),
    ]
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        1 => Just(Mode::Persistent),
        1 => (0..3_usize).prop_map(Mode::Ephemeral),
        2 => (0..3_usize).prop_map(Mode::Sequential),
    ]
}

fn guard() -> impl Strategy<Value = Guard> {
    prop_oneof![Just(Guard::Any), Just(Guard::Latest), Just(Guard::Older)]
}

fn fault() -> impl Strategy<Value = Fault> {
    let give_up = || prop_oneof![Just(GiveUp::AtOnce), Just(GiveUp::AtDeadline)];
    let time = || (1..LATEST.as_millis() as u64).prop_map(Duration::from_millis);
    prop_oneof![
        8 => Just(Fault::Pass),
        1 => Just(Fault::NotSent),
        1 => give_up().prop_map(Fault::LoseRequest),
        2 => give_up().prop_map(Fault::LoseAnswer),
        2 => (give_up(), time()).prop_map(|(give_up, time)| Fault::ArriveLate(give_up, time)),
        1 => time().prop_map(|time| Fault::Delay(4 * time)),
        1 => time().prop_map(|time| Fault::DelayAnswer(4 * time)),
        1 => Just(Fault::EndLeaseEarly),
    ]
}
