use coord_api::{Entry, Key, Result, Standing};
use zookeeper_client::{Error as ZkError, MultiReadResult};

use crate::call::Call;
use crate::inner::Inner;
use crate::names::{self, SequentialName};
use crate::read;

const GONE: Standing = Standing {
    own: None,
    predecessor: None,
};

impl Inner {
    pub(crate) async fn standing(&self, call: &Call, asked: &Entry) -> Result<Standing> {
        let (Some(parent), Some(own_name)) = (asked.key.parent(), SequentialName::parse(asked.key.name())) else {
            return Ok(GONE);
        };
        loop {
            // First the siblings, then the own entry: a list that holds it holds all that were created before it.
            let answer = self
                .read(|client| {
                    let (parent, own) = (parent.clone(), asked.key.clone());
                    async move {
                        let mut reader = client.new_multi_reader();
                        reader.add_get_children(parent.as_str())?;
                        reader.add_get_data(own.as_str())?;
                        reader.commit().await
                    }
                })
                .await
                .map_err(|error| call.refused(&error))?;
            let (children, own) = match <[MultiReadResult; 2]>::try_from(answer) {
                Ok(
                    [
                        MultiReadResult::Children { children },
                        MultiReadResult::Data { data, stat },
                    ],
                ) => (children, read::entry(&asked.key, data, &stat)),
                Ok([MultiReadResult::Error { err }, _] | [_, MultiReadResult::Error { err }])
                    if err != ZkError::NoNode =>
                {
                    return Err(call.refused(&err));
                }
                Ok(_) | Err(_) => return Ok(GONE),
            };
            if own.created != asked.created {
                return Ok(GONE);
            }
            let siblings: Vec<(Key, SequentialName)> = children
                .iter()
                .filter_map(|name| Some((parent.child(name).ok()?, SequentialName::parse(name)?)))
                .collect();
            if !siblings.iter().any(|(key, _)| *key == asked.key) {
                // It came into being between the two reads: the list may lack others, too.
                continue;
            }
            let predecessor = if names::ordered_by_sequence(siblings.iter().map(|(_, name)| name)) {
                let earlier = siblings
                    .into_iter()
                    .filter(|(_, name)| name.sequence < own_name.sequence);
                earlier
                    .max_by(|a, b| names::order((&a.1, None), (&b.1, None)))
                    .map(|(key, _)| key)
            } else {
                self.predecessor_by_czxid(call, siblings, &own).await?
            };
            return Ok(Standing {
                own: Some(own),
                predecessor,
            });
        }
    }

    /// The sequence has come to its end for this parent: only the creation itself tells the order.
    async fn predecessor_by_czxid(
        &self,
        call: &Call,
        siblings: Vec<(Key, SequentialName)>,
        own: &Entry,
    ) -> Result<Option<Key>> {
        let keys: Vec<Key> = siblings.into_iter().map(|(key, _)| key).collect();
        let mut latest: Option<Entry> = None;
        for chunk in keys.chunks(64) {
            for entry in self.get_all(call, chunk.to_vec()).await? {
                let earlier = entry.created < own.created;
                if earlier && latest.as_ref().is_none_or(|latest| latest.created < entry.created) {
                    latest = Some(entry);
                }
            }
        }
        Ok(latest.map(|entry| entry.key))
    }
}
