use coord_api::{Bytes, Env};
use coord_cluster::ClusterId;
use serde::{Deserialize, Serialize};

/// Which cluster a prefix belongs to: the value of `<prefix>/cluster`.
///
/// Whoever holds the leader's entry may create it, or put the next generation in its place; members whose cluster is
/// another than the one it names are outdated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The cluster.
    pub cluster: ClusterId,
    /// The how-manieth cluster of this prefix it is, from 1.
    pub generation: u64,
}

/// The record as JSON, so that `etcdctl` and `zkCli` can read it.
#[derive(Serialize, Deserialize)]
struct Wire {
    cluster: String,
    generation: u64,
}

/// A cluster's id says whose successor it is: the line (drawn by the first generation), the generation, a random rest.
/// A node that hears of another cluster of its own line and of a later generation knows, without the store, that its own
/// is outdated.
const LINE_BITS: u32 = 24;
const GENERATION_BITS: u32 = 16;
const REST_BITS: u32 = 64 - LINE_BITS - GENERATION_BITS;

// === impl Record ===

impl Record {
    /// The first cluster of a prefix.
    pub(crate) fn first(env: &Env) -> Record {
        // Never 0, so that no id is `ClusterId::NONE`.
        let line = (env.random_u64() >> (64 - LINE_BITS)).max(1);
        Record::of(line, 1, env)
    }

    /// The one after this.
    pub(crate) fn next(&self, env: &Env) -> Record {
        Record::of(line(self.cluster).max(1), self.generation.saturating_add(1), env)
    }

    fn of(line: u64, generation: u64, env: &Env) -> Record {
        let shown = generation.min((1 << GENERATION_BITS) - 1);
        let rest = env.random_u64() >> (64 - REST_BITS);
        Record {
            cluster: ClusterId(line << (GENERATION_BITS + REST_BITS) | shown << REST_BITS | rest),
            generation,
        }
    }

    /// Whether `other` is a later generation of the same line, as far as ids tell.
    pub(crate) fn is_outdated_by(&self, other: ClusterId) -> bool {
        line(other) == line(self.cluster) && shown_generation(other) > shown_generation(self.cluster)
    }

    pub(crate) fn value(&self) -> Bytes {
        let wire = Wire {
            cluster: self.cluster.to_string(),
            generation: self.generation,
        };
        // A string and a number: this cannot fail.
        serde_json::to_vec(&wire).unwrap_or_default().into()
    }

    /// `None` if it is not a record of ours: then nobody touches it.
    pub(crate) fn parse(value: &[u8]) -> Option<Record> {
        let wire: Wire = serde_json::from_slice(value).ok()?;
        Some(Record {
            cluster: parse_cluster(&wire.cluster)?,
            generation: wire.generation,
        })
    }
}

pub(crate) fn parse_cluster(text: &str) -> Option<ClusterId> {
    let id = u64::from_str_radix(text, 16).ok().filter(|id| *id != 0)?;
    Some(ClusterId(id))
}

fn line(cluster: ClusterId) -> u64 {
    cluster.0 >> (GENERATION_BITS + REST_BITS)
}

fn shown_generation(cluster: ClusterId) -> u64 {
    cluster.0 >> REST_BITS & ((1 << GENERATION_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_record_survives_text_and_garbage_is_no_record() {
        let record = Record::first(&Env::tokio());
        assert_eq!(Record::parse(&record.value()), Some(record));
        for bad in [
            "",
            "{}",
            r#"{"cluster":"xyz","generation":1}"#,
            r#"{"cluster":"0","generation":1}"#,
        ] {
            assert_eq!(Record::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[tokio::test]
    async fn only_a_later_generation_of_the_same_line_outdates() {
        let env = Env::tokio();
        let first = Record::first(&env);
        let (second, stranger) = (first.next(&env), Record::first(&env).next(&env));
        assert_eq!(second.generation, 2);
        assert!(first.is_outdated_by(second.cluster));
        assert!(!second.is_outdated_by(first.cluster));
        assert!(!first.is_outdated_by(first.cluster));
        assert!(
            !first.is_outdated_by(stranger.cluster),
            "another line says nothing about this one"
        );
    }

    #[tokio::test]
    async fn generations_beyond_what_an_id_can_show_go_on_counting() {
        let env = Env::tokio();
        let late = Record {
            generation: 70_000,
            ..Record::first(&env)
        };
        assert_eq!(late.next(&env).generation, 70_001);
    }
}
