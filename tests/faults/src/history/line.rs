use serde::{Deserialize, Serialize};

use super::Value;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Nanoseconds of CLOCK_BOOTTIME, which all processes of a machine share.
    pub at: u64,
    /// Whose doing it was: `c1.0` is the first life of client 1, `b0.0` one without our drivers.
    pub who: String,
    /// What it was.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum What {
    /// A client is connected and begins.
    Ready {
        /// The ttl that the store granted, in ns.
        ttl: u64,
        /// How late the store may end a lease, in ns.
        slack: u64,
    },
    /// An operation is about to be called.
    Call {
        /// Its number at this client.
        id: u64,
        /// What is asked.
        op: Op,
    },
    /// It has returned.
    Return {
        /// Its number at this client.
        id: u64,
        /// With what.
        outcome: Outcome,
    },
    /// A watch begins.
    Watching {
        /// Its number at this client.
        watch: u64,
        /// Of what.
        target: String,
        /// Whether it is the children of the target that it tells of, and not the target itself.
        children: bool,
    },
    /// A watch told something.
    Seen {
        /// Its number at this client.
        watch: u64,
        /// Whether it is the whole state, and not one change.
        whole: bool,
        /// What is there, or is gone.
        seen: Vec<Seen>,
    },
    /// A client is a candidate from now on.
    Campaigns {
        /// In which election.
        election: String,
    },
    /// A leadership began.
    Elected(Leadership),
    /// A leadership was looked at, and was valid.
    Valid {
        /// Which.
        #[serde(flatten)]
        leadership: Leadership,
        /// By what was known then, it is valid until this moment without another word from the store. No earlier than
        /// the moment of the look, whatever the clock says: it did say that it is valid.
        until: u64,
    },
    /// A leadership is over.
    Ended {
        /// Which.
        #[serde(flatten)]
        leadership: Leadership,
        /// Why, if it was not given back while it was still valid.
        lost: Option<Lost>,
    },
    /// How its registration stands from now on.
    Registered {
        /// Whether the registry calls it registered.
        registered: bool,
        /// Under which lease.
        lease: u64,
        /// Until when that lease, and with it the entry, surely lives and its session keeps it: a margin before its proven
        /// end, the session gives it up.
        until: u64,
    },
    /// A sequential entry of its own is there.
    Entered {
        /// Where.
        key: String,
        /// Its creation.
        created: u64,
        /// The lease beneath it.
        lease: u64,
        /// Until when that surely lives and its session keeps it.
        until: u64,
    },
    /// It asked where its sequential entry stands.
    Stood {
        /// When it asked.
        from: u64,
        /// The creation of its entry.
        created: u64,
        /// The creation of what was found under its name.
        own: Option<u64>,
        /// Which entry is said to be immediately before it.
        predecessor: Option<String>,
    },
    /// It is about to delete its sequential entry.
    Leaving {
        /// The creation of it.
        created: u64,
    },
    /// It has deleted it.
    Removed {
        /// The creation of it.
        created: u64,
    },
    /// All registrations, as an independent reader saw them.
    Listed {
        /// When the look began.
        from: u64,
        /// The owners that were seen.
        owners: Vec<String>,
    },
    /// What the process holds of the machine's memory.
    Memory {
        /// In kB.
        kb: u64,
    },
    /// A fault begins (and ends with the `Healed` of the same number).
    Fault {
        /// Its number in the run.
        number: usize,
        /// What it is.
        name: String,
        /// To whom.
        target: String,
        /// What it may disturb.
        trouble: Trouble,
    },
    /// A fault is over.
    Healed {
        /// Which.
        number: usize,
    },
    /// A client's process was killed with -9.
    Killed {
        /// Which one.
        client: String,
    },
    /// A third party ended this lease, and with it its entries.
    Revoked {
        /// Which.
        lease: u64,
    },
    /// An observer at the store itself saw an entry of an election go.
    Vanished {
        /// Its `created`.
        token: u64,
    },
    /// A lease of the bare client ended earlier than its own proven renewals promised.
    EndedEarly {
        /// Which.
        lease: u64,
        /// Until when it was promised.
        until: u64,
    },
    /// No client writes any more.
    Quiet,
    /// What the store held in the end.
    Final {
        /// Where.
        key: String,
        /// What.
        held: Option<Held>,
    },
    /// Something that should be gone in the end, and was not.
    Left {
        /// What.
        what: String,
    },
    /// The client has closed everything and ends.
    Closed,
    /// For the reader of a history.
    Note {
        /// Anything.
        text: String,
    },
}

/// Why a leadership was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lost {
    /// Somebody deleted its entry.
    Deleted,
    /// For any other reason.
    Otherwise,
}

/// What a fault may disturb.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// The servers themselves.
    Servers,
    /// One or all ways to them.
    Ways,
    /// A client process.
    Client,
    /// Nothing; everything has to go on.
    None,
}

/// One leadership.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Leadership {
    /// Of which election.
    pub election: String,
    /// The fencing token.
    pub token: u64,
    /// The lease beneath it.
    pub lease: u64,
}

/// An entry of a register.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its value.
    pub value: String,
    /// Its version.
    pub version: String,
    /// Its creation.
    pub created: u64,
}

impl Held {
    /// What it holds, if it is ours.
    pub fn value(&self) -> Value {
        self.value.parse().unwrap_or_default()
    }
}

/// A key as a watch showed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Where.
    pub key: String,
    /// The creation of what is there, or of what is gone.
    pub created: u64,
    /// What is there; nothing if it is gone.
    pub held: Option<Held>,
}

/// What is asked of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Op {
    /// A read with every write that had finished.
    GetLatest {
        /// Where.
        key: String,
    },
    /// A read that only never goes back.
    Get {
        /// Where.
        key: String,
    },
    /// Create if absent.
    Create {
        /// Where.
        key: String,
        /// What.
        value: String,
    },
    /// Make it undone, whether it happened or not.
    Abandon {
        /// Where.
        key: String,
        /// The value of the create.
        value: String,
    },
    /// Write over what is there.
    Update {
        /// Where.
        key: String,
        /// What.
        value: String,
        /// Over which version; any without.
        expected: Option<String>,
    },
    /// Delete what is there.
    Delete {
        /// Where.
        key: String,
        /// Which version; any without.
        expected: Option<String>,
    },
    /// A sequential entry.
    Sequential {
        /// Below what.
        key: String,
    },
}

impl Op {
    /// Where.
    pub fn key(&self) -> &str {
        match self {
            Op::GetLatest { key }
            | Op::Get { key }
            | Op::Create { key, .. }
            | Op::Abandon { key, .. }
            | Op::Update { key, .. }
            | Op::Delete { key, .. }
            | Op::Sequential { key } => key,
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "out", rename_all = "snake_case")]
pub enum Outcome {
    /// A read found this.
    Found {
        /// What is there.
        held: Option<Held>,
    },
    /// A write happened.
    Done {
        /// The version that it made, and the entry's creation; nothing for a delete.
        made: Option<(String, u64)>,
    },
    /// It did not happen: this is there.
    Taken {
        /// What.
        held: Held,
    },
    /// It did not happen: nothing is there.
    Missing,
    /// It did not happen: another version is there.
    Mismatch {
        /// Which, if that was told.
        version: Option<String>,
    },
    /// It did not happen.
    Refused {
        /// Why.
        why: String,
    },
    /// It did not happen, because it never left.
    NotSent {
        /// Why.
        why: String,
    },
    /// It may have happened, or may still happen.
    Unknown {
        /// Why that is not known.
        why: String,
    },
}
