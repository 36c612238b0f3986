use std::collections::BTreeSet;

/// One moment of the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// What the store holds.
    pub entries: BTreeSet<Entry>,
    /// The `created` of the next entry.
    pub next: u8,
    /// Creates that have taken effect or can no longer do so: (candidate, nonce).
    pub settled: BTreeSet<(usize, u8)>,
    /// Leases that live at the store: (candidate, epoch).
    pub leases: BTreeSet<(usize, u8)>,
    /// Requests that were sent and may still arrive.
    pub wire: BTreeSet<Request>,
    /// The candidates.
    pub candidates: Vec<Candidate>,
    /// The highest token granted.
    pub token: u8,
    /// A token was granted that was not above all before it.
    pub token_went_back: bool,
    /// Lost answers, late arrivals and repetitions left.
    pub faults: u8,
    /// Ends of leases left.
    pub ends: u8,
    /// Resignations left.
    pub resignations: u8,
    /// Cancelled campaigns left.
    pub cancellations: u8,
}

/// An entry of the election.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// Order of creation, and the fencing token.
    pub created: u8,
    /// Whose it is.
    pub owner: usize,
    /// Under which of its leases.
    pub epoch: u8,
    /// Which of its creates made it.
    pub nonce: u8,
}

/// One who wants to lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// Its present lease.
    pub epoch: u8,
    /// Whether, by its own clock, the lease still counts.
    pub valid: bool,
    /// The nonce of its latest create.
    pub nonce: u8,
    /// Where it stands.
    pub phase: Phase,
}

/// Where a candidate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// About to contend.
    Idle,
    /// Its create is under way.
    Creating,
    /// Its create was given up waiting for.
    Unknown,
    /// Has an entry, and is to look where it stands.
    Holding(u8),
    /// Has looked; acts on what it saw.
    Looked(u8, View),
    /// Waits for this entry to go; its own (if it has one yet) first.
    Waiting(Option<u8>, u8),
    /// Leads with this token, as long as its lease counts.
    Leading(u8),
    /// Takes no part any more.
    Out,
}

/// What a look at the store showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum View {
    /// The own entry is gone.
    Gone,
    /// The own entry is the one that leads.
    Lowest,
    /// Another one comes first.
    Behind(u8),
}

/// What travels to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Request {
    /// Create an entry unless the nonce is settled; `copy` tells repetitions apart.
    Create {
        /// Who asks.
        owner: usize,
        /// Under which lease.
        epoch: u8,
        /// Which create.
        nonce: u8,
        /// Which sending of it.
        copy: u8,
    },
    /// Undo a create, whether it happened or not.
    Abandon {
        /// Who asks.
        owner: usize,
        /// Which create.
        nonce: u8,
    },
    /// Delete the entry with this `created`.
    Delete {
        /// Which entry.
        created: u8,
    },
}

impl State {
    /// Those who lead at this moment.
    pub fn leaders(&self) -> impl Iterator<Item = usize> + '_ {
        let leads = |candidate: &Candidate| candidate.valid && matches!(candidate.phase, Phase::Leading(_));
        (0..self.candidates.len()).filter(move |&who| leads(&self.candidates[who]))
    }

    /// Entries of one candidate.
    pub fn entries_of(&self, owner: usize) -> usize {
        self.entries.iter().filter(|entry| entry.owner == owner).count()
    }

    pub(crate) fn has(&self, created: u8) -> bool {
        self.entries.iter().any(|entry| entry.created == created)
    }
}
