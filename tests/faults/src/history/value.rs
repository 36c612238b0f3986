use std::fmt;
use std::str::FromStr;

/// What a register holds, as text at the store: `uid/n/token`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Value {
    /// Which write made it; no two writes share one.
    pub uid: u64,
    /// How many conditional updates led to it since the create: each adds one to what it read. So the order of all values
    /// of one incarnation of a chained key shows in the values themselves.
    pub n: u64,
    /// The fencing token of its writer; 0 if it is no leader.
    pub token: u64,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.uid, self.n, self.token)
    }
}

impl FromStr for Value {
    type Err = String;

    fn from_str(text: &str) -> Result<Value, String> {
        let mut parts = text.split('/').map(str::parse);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Ok(uid)), Some(Ok(n)), Some(Ok(token)), None) => Ok(Value { uid, n, token }),
            _ => Err(format!("not a value of ours: {text:?}")),
        }
    }
}
