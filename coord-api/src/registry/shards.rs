use crate::{LeaseId, Result, Session, SessionConfig, SessionWatch};

/// The leases that carry the entries: the session's own, and further ones when the store allows no more on one.
pub(super) struct Shards(Vec<Shard>);

struct Shard {
    session: Session,
    watch: SessionWatch,
    /// The epoch in which it last refused a further entry.
    full_in: Option<u64>,
    /// The epoch in which its entries were last looked at.
    looked_in: Option<u64>,
}

impl Shards {
    pub(super) fn new(session: Session) -> Shards {
        Shards(vec![Shard::new(session)])
    }

    pub(super) fn lease(&self, shard: usize) -> Option<LeaseId> {
        self.0.get(shard)?.session.lease().map(|lease| lease.lease)
    }

    /// This shard takes no more: which one does. Opens one when none is left.
    pub(super) fn after_full(&mut self, full: usize) -> Result<usize> {
        if let Some(shard) = self.0.get_mut(full) {
            shard.full_in = shard.epoch();
        }
        let room = |shard: &Shard| shard.full_in.is_none() || shard.full_in != shard.epoch();
        if let Some(shard) = self.0.iter().position(room) {
            return Ok(shard);
        }
        let first = &self.0[0].session;
        let config = SessionConfig {
            name: format!("{}-{}", first.config().name, self.0.len() + 1),
            ..first.config().clone()
        };
        tracing::info!(session = %config.name, "the lease carries no more entries: one more lease");
        self.0
            .push(Shard::new(Session::open(first.coordinator().clone(), config)?));
        Ok(self.0.len() - 1)
    }

    /// An entry of this shard is gone: it may take another.
    pub(super) fn has_room(&mut self, shard: usize) {
        if let Some(shard) = self.0.get_mut(shard) {
            shard.full_in = None;
        }
    }

    /// The lease may be gone: find out now.
    pub(super) fn doubt(&self, shard: usize) {
        if let Some(shard) = self.0.get(shard) {
            shard.session.check();
        }
    }

    /// Those with another live lease than when this was asked last.
    pub(super) fn renewed(&mut self) -> Vec<usize> {
        let mut renewed = Vec::new();
        for (index, shard) in self.0.iter_mut().enumerate() {
            let epoch = shard.epoch();
            if epoch.is_some() && epoch != shard.looked_in {
                shard.looked_in = epoch;
                renewed.push(index);
            }
        }
        renewed
    }

    /// Each session with the epoch in which its entries were last looked at.
    pub(super) fn looked(&self) -> Vec<(Session, Option<u64>)> {
        self.0
            .iter()
            .map(|shard| (shard.session.clone(), shard.looked_in))
            .collect()
    }

    /// Resolves when the state of any session is another than when it last did.
    pub(super) async fn changed(&mut self) {
        let changes = self.0.iter_mut().map(|shard| {
            Box::pin(async {
                if shard.watch.changed().await.is_none() {
                    std::future::pending::<()>().await;
                }
            })
        });
        futures::future::select_all(changes).await;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0[0].session.state().is_closed()
    }

    /// Ends the further leases; the first is the user's.
    pub(super) async fn close(&self) -> Result<()> {
        let closed = futures::future::join_all(self.0.iter().skip(1).map(|shard| shard.session.close()));
        closed.await.into_iter().find(Result::is_err).unwrap_or(Ok(()))
    }
}

impl Shard {
    fn new(session: Session) -> Shard {
        Shard {
            watch: session.subscribe(),
            session,
            full_in: None,
            looked_in: None,
        }
    }

    fn epoch(&self) -> Option<u64> {
        self.session.lease().map(|lease| lease.epoch)
    }
}
