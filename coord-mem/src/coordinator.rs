use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coord_api::driver::{check_abandon, check_create, check_entry_key, check_ttl, check_value, mailbox};
use coord_api::{
    Capabilities, Coordinator, Create, Entry, Env, Error, ErrorKind, Expect, Grant, Instant, Key, LeaseId, Operation,
    Result, Standing, Target, Watch,
};

use crate::MemClient;
use crate::client::Sent;
use crate::state::{Extension, entry_key, owner};

impl MemClient {
    fn check_lease(&self, operation: Operation, key: Option<&Key>, lease: LeaseId) -> Result<()> {
        if owner(lease) == self.shared.id {
            Ok(())
        } else {
            Err(Error::definite(operation, key, ErrorKind::ForeignLease(lease)))
        }
    }

    fn check_key(&self, operation: Operation, key: &Key) -> Result<()> {
        self.check_open(operation, Some(key))?;
        check_entry_key(operation, key)
    }

    fn check_attempt(&self, operation: Operation, create: &Create) -> Result<()> {
        self.check_open(operation, Some(&create.key))?;
        match operation {
            Operation::Abandon => check_abandon(create, &self.capabilities())?,
            _ => check_create(create, &self.capabilities())?,
        }
        entry_key(operation, create)?;
        match create.mode.lease() {
            Some(lease) => self.check_lease(operation, Some(&create.key), lease),
            None => Ok(()),
        }
    }

    fn extension(&self) -> impl Fn(&Sent, Instant) -> Extension + Send + use<> {
        let proof_lag = self.shared.store.options.proof_lag;
        move |sent, arrived| Extension {
            sent: sent.by_store,
            arrived,
            proof_lag,
            ends_early: sent.ends_early,
        }
    }

    fn promise(&self) -> impl Fn(LeaseId, Duration, &Sent) -> Grant + Send + use<> {
        let proof_lag = self.shared.store.options.proof_lag;
        move |lease, ttl, sent| Grant {
            lease,
            ttl,
            valid_until: sent.by_client + ttl.saturating_sub(proof_lag),
        }
    }
}

#[async_trait]
impl Coordinator for MemClient {
    fn env(&self) -> &Env {
        &self.shared.env
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            call_deadline: self.deadline,
            ..self.shared.store.options.capabilities()
        }
    }

    fn within(&self, deadline: Duration) -> Arc<dyn Coordinator> {
        Arc::new(MemClient {
            shared: self.shared.clone(),
            deadline: self.deadline.min(deadline),
        })
    }

    async fn grant(&self, ttl: Duration) -> Result<Grant> {
        self.check_open(Operation::Grant, None)?;
        check_ttl(ttl, &self.capabilities())?;
        let (client, extension, promise) = (self.shared.id, self.extension(), self.promise());
        self.call(Operation::Grant, None, move |state, now, sent| {
            let lease = state.grant(client, ttl, extension(&sent, now))?;
            Ok(promise(lease, ttl, &sent))
        })
        .await
    }

    async fn renew(&self, lease: LeaseId) -> Result<Grant> {
        self.check_open(Operation::Renew, None)?;
        self.check_lease(Operation::Renew, None, lease)?;
        let (client, extension, promise) = (self.shared.id, self.extension(), self.promise());
        self.call(Operation::Renew, None, move |state, now, sent| {
            let ttl = state.renew(client, lease, extension(&sent, now))?;
            Ok(promise(lease, ttl, &sent))
        })
        .await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        self.check_open(Operation::Revoke, None)?;
        self.check_lease(Operation::Revoke, None, lease)?;
        let client = self.shared.id;
        self.call(Operation::Revoke, None, move |state, _, _| state.revoke(client, lease))
            .await
    }

    async fn create(&self, create: &Create) -> Result<Entry> {
        self.check_attempt(Operation::Create, create)?;
        let (client, attempt) = (self.shared.id, create.clone());
        self.call(Operation::Create, Some(&create.key), move |state, _, _| {
            state.create(client, &attempt)
        })
        .await
    }

    async fn abandon(&self, create: &Create) -> Result<()> {
        self.check_attempt(Operation::Abandon, create)?;
        let attempt = create.clone();
        self.call(Operation::Abandon, Some(&create.key), move |state, now, _| {
            state.abandon(&attempt, now)
        })
        .await
    }

    async fn get(&self, key: &Key) -> Result<Option<Entry>> {
        self.check_key(Operation::Get, key)?;
        let asked = key.clone();
        self.call(Operation::Get, Some(key), move |state, _, _| Ok(state.get(&asked)))
            .await
    }

    async fn get_latest(&self, key: &Key) -> Result<Option<Entry>> {
        self.check_key(Operation::GetLatest, key)?;
        let asked = key.clone();
        self.call(
            Operation::GetLatest,
            Some(key),
            move |state, _, _| Ok(state.get(&asked)),
        )
        .await
    }

    async fn children(&self, key: &Key) -> Result<Vec<Entry>> {
        self.check_open(Operation::Children, Some(key))?;
        let parent = key.clone();
        self.call(Operation::Children, Some(key), move |state, _, _| {
            Ok(state.children(&parent))
        })
        .await
    }

    async fn update(&self, key: &Key, value: Bytes, expected: Expect) -> Result<Entry> {
        self.check_key(Operation::Update, key)?;
        check_value(Operation::Update, key, value.len(), &self.capabilities())?;
        let target = key.clone();
        self.call(Operation::Update, Some(key), move |state, _, _| {
            state.update(&target, value, expected)
        })
        .await
    }

    async fn delete(&self, key: &Key, expected: Expect) -> Result<()> {
        self.check_key(Operation::Delete, key)?;
        let target = key.clone();
        self.call(Operation::Delete, Some(key), move |state, _, _| {
            state.delete(&target, expected)
        })
        .await
    }

    async fn standing(&self, entry: &Entry) -> Result<Standing> {
        self.check_key(Operation::Standing, &entry.key)?;
        let (key, created) = (entry.key.clone(), entry.created);
        self.call(Operation::Standing, Some(&entry.key), move |state, _, _| {
            Ok(state.standing(&key, created))
        })
        .await
    }

    async fn watch(&self, target: &Target) -> Result<Watch> {
        self.check_open(Operation::Watch, Some(target.key()))?;
        if let Target::Key(key) = target {
            check_entry_key(Operation::Watch, key)?;
        }
        let client = self.shared.id;
        let (id, on_cancel) = self.shared.store.new_watch(target);
        let (sender, watch) = mailbox(on_cancel);
        let watched = target.clone();
        self.call(Operation::Watch, Some(target.key()), move |state, _, _| {
            state.watch(client, id, watched, sender)?;
            Ok(watch)
        })
        .await
    }

    async fn close(&self) -> Result<()> {
        let client = self.shared.id;
        self.shared.closed.store(true, Ordering::SeqCst);
        self.shared.store.access(|state, _| state.end_watches(client));
        if self.shared.goodbye_said.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.call(Operation::Close, None, move |state, _, _| {
            state.close(client);
            Ok(())
        })
        .await?;
        self.shared.goodbye_said.store(true, Ordering::SeqCst);
        Ok(())
    }
}
