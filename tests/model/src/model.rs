use std::collections::BTreeSet;

use stateright::{Model, Property};

use crate::{Candidate, Entry, Phase, Request, State, View};

/// The model of one recipe, whole or with one deliberate fault.
#[derive(Debug, Clone)]
pub struct ElectionModel {
    /// Which recipe.
    pub recipe: Recipe,
    /// How many contend.
    pub candidates: usize,
    /// How much may go wrong.
    pub budget: Budget,
    /// What is wrong with the recipe, to see that it is noticed.
    pub mutant: Option<Mutant>,
}

/// Which recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipe {
    /// Lowest sequence.
    Sequence,
    /// Create-if-absent.
    Cas,
}

/// How much may go wrong in one run.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Lost answers, late arrivals, repetitions.
    pub faults: u8,
    /// Leases that end.
    pub ends: u8,
    /// Leaders that resign.
    pub resignations: u8,
    /// Campaigns that are cancelled.
    pub cancellations: u8,
}

/// A deliberate fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// The deadline is counted from the answer: a lease may end while its holder still counts on it.
    DeadlineFromAnswer,
    /// A look made under an earlier lease still counts.
    EpochIgnored,
    /// When the predecessor goes, it leads without looking again.
    NoLookBeforeGrant,
    /// An unknown create that is not found by looking is taken for one that did not happen.
    SettledByLooking,
    /// Resigning deletes whatever is there.
    UnguardedResign,
    /// A cancelled campaign leaves its entry to itself.
    NoCleanUp,
}

/// A step of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Send a create.
    Contend(usize),
    /// Stop waiting for the answer to a create.
    GiveUpWaiting(usize),
    /// Settle an unknown create by the same create again.
    Again(usize),
    /// A request takes effect and is answered.
    Arrive(Request),
    /// A request takes effect and the answer is lost.
    ArriveUnanswered(Request),
    /// A request takes effect, and a copy of it is still under way.
    ArriveTwice(Request),
    /// Ask the store for the standing.
    Look(usize),
    /// Act on what was seen.
    Act(usize),
    /// The entry waited for is gone, or one's own.
    Wake(usize),
    /// Stop leading.
    Resign(usize),
    /// Drop the campaign.
    Cancel(usize),
    /// By the holder's own clock the lease no longer counts.
    Deadline(usize),
    /// The store ends a lease.
    Expire(usize, u8),
    /// A new lease is granted.
    Renewed(usize),
}

// === impl ElectionModel ===

impl ElectionModel {
    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// Whether nothing happens any more unless a leader resigns or a lease ends.
    fn is_settled(&self, state: &State) -> bool {
        let mut actions = vec![];
        self.actions(state, &mut actions);
        let from_outside = |action: &Action| {
            matches!(
                action,
                Action::Resign(_) | Action::Deadline(_) | Action::Cancel(_) | Action::GiveUpWaiting(_)
            )
        };
        actions.iter().all(from_outside)
    }

    fn arrive(&self, state: &mut State, request: Request, answered: bool) {
        match request {
            Request::Create {
                owner, epoch, nonce, ..
            } => {
                let answer = self.create(state, owner, epoch, nonce);
                let candidate = &mut state.candidates[owner];
                let waits = candidate.phase == Phase::Creating && candidate.nonce == nonce && candidate.epoch == epoch;
                if waits {
                    candidate.phase = if answered { answer } else { Phase::Unknown };
                }
            }
            Request::Abandon { owner, nonce } => {
                state.settled.insert((owner, nonce));
                state
                    .entries
                    .retain(|entry| (entry.owner, entry.nonce) != (owner, nonce));
            }
            Request::Delete { .. } if self.is(Mutant::UnguardedResign) => state.entries.clear(),
            Request::Delete { created } => state.entries.retain(|entry| entry.created != created),
        }
    }

    /// What the store does with a create, and what its sender is to make of the answer.
    fn create(&self, state: &mut State, owner: usize, epoch: u8, nonce: u8) -> Phase {
        if let Some(found) = state
            .entries
            .iter()
            .find(|entry| (entry.owner, entry.nonce) == (owner, nonce))
        {
            return Phase::Holding(found.created);
        }
        if !state.leases.contains(&(owner, epoch)) || state.settled.contains(&(owner, nonce)) {
            return Phase::Idle;
        }
        state.settled.insert((owner, nonce));
        if let (Recipe::Cas, Some(holder)) = (self.recipe, state.entries.first()) {
            return Phase::Waiting(None, holder.created);
        }
        let created = state.next;
        state.next += 1;
        state.entries.insert(Entry {
            created,
            owner,
            epoch,
            nonce,
        });
        Phase::Holding(created)
    }

    fn send_create(&self, state: &mut State, who: usize, copy: u8) {
        let Candidate { epoch, nonce, .. } = state.candidates[who];
        state.wire.insert(Request::Create {
            owner: who,
            epoch,
            nonce,
            copy,
        });
        state.candidates[who].phase = Phase::Creating;
    }

    fn look(&self, state: &State, created: u8) -> View {
        if !state.has(created) {
            return View::Gone;
        }
        match state
            .entries
            .iter()
            .map(|entry| entry.created)
            .filter(|&other| other < created)
            .max()
        {
            Some(before) => View::Behind(before),
            None => View::Lowest,
        }
    }

    fn act(&self, candidate: &mut Candidate, created: u8, view: View) -> Option<u8> {
        match view {
            View::Gone => candidate.phase = Phase::Idle,
            View::Behind(before) => candidate.phase = Phase::Waiting(Some(created), before),
            View::Lowest => {
                candidate.phase = Phase::Leading(created);
                return Some(created);
            }
        }
        None
    }

    fn granted(&self, state: &mut State, token: u8) {
        state.token_went_back |= token <= state.token;
        state.token = state.token.max(token);
    }

    /// The holder's lease no longer counts: whatever it was about is over.
    fn start_over(&self, state: &mut State, who: usize) {
        let candidate = &mut state.candidates[who];
        candidate.valid = false;
        let keeps = self.is(Mutant::EpochIgnored) && matches!(candidate.phase, Phase::Looked(..));
        if candidate.phase != Phase::Out && !keeps {
            candidate.phase = Phase::Idle;
        }
    }
}

impl Model for ElectionModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let candidate = Candidate {
            epoch: 0,
            valid: true,
            nonce: 0,
            phase: Phase::Idle,
        };
        vec![State {
            entries: BTreeSet::new(),
            next: 1,
            settled: BTreeSet::new(),
            leases: (0..self.candidates).map(|who| (who, 0)).collect(),
            wire: BTreeSet::new(),
            candidates: vec![candidate; self.candidates],
            token: 0,
            token_went_back: false,
            faults: self.budget.faults,
            ends: self.budget.ends,
            resignations: self.budget.resignations,
            cancellations: self.budget.cancellations,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for &request in &state.wire {
            actions.push(Action::Arrive(request));
            if state.faults > 0 {
                actions.push(Action::ArriveTwice(request));
                if matches!(request, Request::Create { .. }) {
                    actions.push(Action::ArriveUnanswered(request));
                }
            }
        }
        for (who, candidate) in state.candidates.iter().enumerate() {
            if !candidate.valid {
                actions.push(Action::Renewed(who));
            } else if state.ends > 0 {
                actions.push(Action::Deadline(who));
            }
            if !candidate.valid {
                continue;
            }
            match candidate.phase {
                Phase::Idle => actions.push(Action::Contend(who)),
                Phase::Creating if state.faults > 0 => actions.push(Action::GiveUpWaiting(who)),
                Phase::Unknown => actions.push(Action::Again(who)),
                Phase::Holding(_) => actions.push(Action::Look(who)),
                Phase::Looked(..) => actions.push(Action::Act(who)),
                Phase::Waiting(own, before) => {
                    let own_gone = own.is_some_and(|own| !state.has(own));
                    if !state.has(before) || own_gone {
                        actions.push(Action::Wake(who));
                    }
                }
                Phase::Leading(_) if state.resignations > 0 => actions.push(Action::Resign(who)),
                Phase::Creating | Phase::Leading(_) | Phase::Out => {}
            }
            let waits = !matches!(candidate.phase, Phase::Idle | Phase::Leading(_) | Phase::Out);
            if waits && state.cancellations > 0 {
                actions.push(Action::Cancel(who));
            }
        }
        for &(who, epoch) in &state.leases {
            let candidate = state.candidates[who];
            let over = epoch < candidate.epoch || !candidate.valid;
            let early = self.is(Mutant::DeadlineFromAnswer) && state.ends > 0;
            if over || early {
                actions.push(Action::Expire(who, epoch));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Contend(who) => {
                state.candidates[who].nonce += 1;
                self.send_create(&mut state, who, 0);
            }
            Action::GiveUpWaiting(who) => {
                state.faults -= 1;
                state.candidates[who].phase = Phase::Unknown;
            }
            Action::Again(who) => {
                let nonce = state.candidates[who].nonce;
                let found = state
                    .entries
                    .iter()
                    .find(|entry| (entry.owner, entry.nonce) == (who, nonce));
                match found {
                    Some(found) if self.is(Mutant::SettledByLooking) => {
                        state.candidates[who].phase = Phase::Holding(found.created);
                    }
                    None if self.is(Mutant::SettledByLooking) => state.candidates[who].phase = Phase::Idle,
                    _ => self.send_create(&mut state, who, 1 + last.faults),
                }
            }
            Action::Arrive(request) => {
                state.wire.remove(&request);
                self.arrive(&mut state, request, true);
            }
            Action::ArriveUnanswered(request) => {
                state.faults -= 1;
                state.wire.remove(&request);
                self.arrive(&mut state, request, false);
            }
            Action::ArriveTwice(request) => {
                state.faults -= 1;
                self.arrive(&mut state, request, true);
            }
            Action::Look(who) => {
                let Phase::Holding(own) = state.candidates[who].phase else {
                    return None;
                };
                state.candidates[who].phase = Phase::Looked(own, self.look(&state, own));
            }
            Action::Act(who) => {
                let Phase::Looked(own, view) = state.candidates[who].phase else {
                    return None;
                };
                if let Some(token) = self.act(&mut state.candidates[who], own, view) {
                    self.granted(&mut state, token);
                }
            }
            Action::Wake(who) => {
                let Phase::Waiting(own, _) = state.candidates[who].phase else {
                    return None;
                };
                match own {
                    None => state.candidates[who].phase = Phase::Idle,
                    Some(own) if self.is(Mutant::NoLookBeforeGrant) => {
                        state.candidates[who].phase = Phase::Leading(own);
                        self.granted(&mut state, own);
                    }
                    Some(own) => state.candidates[who].phase = Phase::Holding(own),
                }
            }
            Action::Resign(who) => {
                let Phase::Leading(own) = state.candidates[who].phase else {
                    return None;
                };
                state.resignations -= 1;
                state.wire.insert(Request::Delete { created: own });
                state.candidates[who].phase = Phase::Idle;
            }
            Action::Cancel(who) => {
                state.cancellations -= 1;
                let nonce = state.candidates[who].nonce;
                if !self.is(Mutant::NoCleanUp) {
                    state.wire.insert(Request::Abandon { owner: who, nonce });
                }
                state.candidates[who].phase = Phase::Out;
            }
            Action::Deadline(who) => {
                state.ends -= 1;
                self.start_over(&mut state, who);
            }
            Action::Expire(who, epoch) => {
                if epoch == last.candidates[who].epoch && last.candidates[who].valid {
                    state.ends -= 1; // only a mutant
                }
                state.leases.remove(&(who, epoch));
                state.entries.retain(|entry| (entry.owner, entry.epoch) != (who, epoch));
            }
            Action::Renewed(who) => {
                let candidate = &mut state.candidates[who];
                candidate.epoch += 1;
                candidate.valid = true;
                state.leases.insert((who, candidate.epoch));
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("at most one leads", |_, state: &State| state.leaders().count() <= 1),
            Property::always("tokens increase", |_, state: &State| !state.token_went_back),
            Property::always("in the end one leads", |model, state: &State| {
                let some = state.candidates.iter().any(|candidate| candidate.phase != Phase::Out);
                !model.is_settled(state) || !some || state.leaders().count() == 1
            }),
            Property::always("in the end nothing is left behind", |model, state: &State| {
                !model.is_settled(state)
                    || (0..state.candidates.len()).all(|who| {
                        let due = usize::from(state.candidates[who].phase != Phase::Out);
                        state.entries_of(who) <= due
                    })
            }),
            Property::sometimes("leadership passes on", |_, state: &State| {
                state.token >= 2 && state.leaders().count() == 1
            }),
        ]
    }
}
