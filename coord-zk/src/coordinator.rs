use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coord_api::driver::{check_abandon, check_create, check_entry_key, check_ttl, check_value};
use coord_api::{
    Capabilities, Coordinator, Create, Entry, Env, Error, ErrorKind, Expect, Grant, Key, LeaseId, Operation, Result,
    Standing, Target, Watch,
};
use tokio::runtime::Handle;

use crate::ZkConfig;
use crate::call::Call;
use crate::inner::Inner;

/// The contract on ZooKeeper.
///
/// Dropping the last handle without [`close`](Coordinator::close) lets the sessions go: their leases end at once.
#[derive(Debug, Clone)]
pub struct ZkCoordinator {
    inner: Arc<Inner>,
    limit: Duration,
}

impl ZkCoordinator {
    /// Starts to connect, and returns at once: ZooKeeper need not be up yet. Fails only on a configuration that cannot
    /// work. Must be called within a tokio runtime.
    pub fn open(config: ZkConfig, env: Env) -> Result<Arc<ZkCoordinator>> {
        config.check()?;
        let runtime = Handle::try_current().map_err(|error| {
            let kind = ErrorKind::InvalidConfig("a coordinator is opened within a tokio runtime".into());
            Error::definite(Operation::Open, None, kind).with_source(error)
        })?;
        if config.auth.is_none() {
            tracing::warn!("no credentials for ZooKeeper: whoever reaches it can read and change everything we make");
        }
        let limit = config.call_deadline;
        let inner = Arc::new(Inner::new(config, env, runtime));
        Ok(Arc::new(ZkCoordinator { inner, limit }))
    }

    /// The sessions behind the leases and, first, behind the shared connection: for tests that end one from outside.
    #[doc(hidden)]
    pub fn sessions(&self) -> Vec<zookeeper_client::SessionInfo> {
        let shared = self.inner.shared.now().map(|conn| conn.session().clone());
        shared.into_iter().chain(self.inner.leases.sessions()).collect()
    }

    fn call(&self, operation: Operation, key: Option<&Key>) -> Call {
        Call::new(&self.inner.env, operation, key, self.limit)
    }

    async fn run<T>(
        &self,
        call: &Call,
        lease: Option<LeaseId>,
        future: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        call.run(&self.inner.closed, || self.inner.trouble(lease), future).await
    }

    fn check_open(&self, call: &Call) -> Result<()> {
        if self.inner.closed.is_cancelled() {
            return Err(call.definite(ErrorKind::Closed));
        }
        Ok(())
    }
}

#[async_trait]
impl Coordinator for ZkCoordinator {
    fn env(&self) -> &Env {
        &self.inner.env
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            call_deadline: self.limit,
            ..self.inner.capabilities
        }
    }

    fn within(&self, deadline: Duration) -> Arc<dyn Coordinator> {
        Arc::new(ZkCoordinator {
            inner: self.inner.clone(),
            limit: self.limit.min(deadline),
        })
    }

    async fn grant(&self, ttl: Duration) -> Result<Grant> {
        let call = self.call(Operation::Grant, None);
        self.check_open(&call)?;
        check_ttl(ttl, &self.inner.capabilities)?;
        let id = self.run(&call, None, self.inner.grant(&call, ttl)).await?;
        Ok(self.inner.lease(&call, id)?.grant())
    }

    async fn renew(&self, lease: LeaseId) -> Result<Grant> {
        let call = self.call(Operation::Renew, None);
        self.run(&call, Some(lease), self.inner.renew(&call, lease)).await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        let call = self.call(Operation::Revoke, None);
        let revoke = async {
            call.sent();
            let ended = self.inner.leases.end(&self.inner.env, &self.inner.config, lease).await;
            call.settled();
            self.inner.fresh.moved_elsewhere();
            ended.map_err(|kind| call.definite(kind))
        };
        self.run(&call, Some(lease), revoke).await
    }

    async fn create(&self, create: &Create) -> Result<Entry> {
        let call = self.call(Operation::Create, Some(&create.key));
        self.check_open(&call)?;
        check_create(create, &self.inner.capabilities)?;
        self.run(&call, create.mode.lease(), self.inner.create(&call, create))
            .await
    }

    async fn abandon(&self, create: &Create) -> Result<()> {
        let call = self.call(Operation::Abandon, Some(&create.key));
        self.check_open(&call)?;
        check_abandon(create, &self.inner.capabilities)?;
        self.run(&call, create.mode.lease(), self.inner.abandon(&call, create))
            .await
    }

    async fn get(&self, key: &Key) -> Result<Option<Entry>> {
        let call = self.call(Operation::Get, Some(key));
        self.check_open(&call)?;
        check_entry_key(Operation::Get, key)?;
        self.run(&call, None, self.inner.get(&call, key)).await
    }

    async fn get_latest(&self, key: &Key) -> Result<Option<Entry>> {
        let call = self.call(Operation::GetLatest, Some(key));
        self.check_open(&call)?;
        check_entry_key(Operation::GetLatest, key)?;
        self.run(&call, None, self.inner.get_latest(&call, key)).await
    }

    async fn children(&self, key: &Key) -> Result<Vec<Entry>> {
        let call = self.call(Operation::Children, Some(key));
        self.run(&call, None, self.inner.children(&call, key)).await
    }

    async fn update(&self, key: &Key, value: Bytes, expected: Expect) -> Result<Entry> {
        let call = self.call(Operation::Update, Some(key));
        self.check_open(&call)?;
        check_entry_key(Operation::Update, key)?;
        check_value(Operation::Update, key, value.len(), &self.inner.capabilities)?;
        self.run(&call, None, self.inner.update(&call, key, value, expected))
            .await
    }

    async fn delete(&self, key: &Key, expected: Expect) -> Result<()> {
        let call = self.call(Operation::Delete, Some(key));
        self.check_open(&call)?;
        check_entry_key(Operation::Delete, key)?;
        self.run(&call, None, self.inner.delete(&call, key, expected)).await
    }

    async fn standing(&self, entry: &Entry) -> Result<Standing> {
        let call = self.call(Operation::Standing, Some(&entry.key));
        self.check_open(&call)?;
        check_entry_key(Operation::Standing, &entry.key)?;
        self.run(&call, None, self.inner.standing(&call, entry)).await
    }

    async fn watch(&self, target: &Target) -> Result<Watch> {
        let call = self.call(Operation::Watch, Some(target.key()));
        self.check_open(&call)?;
        if let Target::Key(key) = target {
            check_entry_key(Operation::Watch, key)?;
        }
        self.inner.watch(target)
    }

    async fn close(&self) -> Result<()> {
        let call = self.call(Operation::Close, None);
        let closing = self.inner.close(&call);
        match self
            .inner
            .env
            .timeout_at(self.inner.env.now() + self.limit, closing)
            .await
        {
            Some(closed) => closed,
            None => Err(call.broken(ErrorKind::DeadlineExceeded(self.limit))),
        }
    }
}
