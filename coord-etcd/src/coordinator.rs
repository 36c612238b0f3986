use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coord_api::{
    Bytes, Capabilities, Class, Coordinator, Create, Entry, Env, Expect, Grant, Key, LeaseId, Operation, Result,
    Standing, Target, Task, Watch,
};
use futures::StreamExt;

use crate::EtcdConfig;
use crate::background::Background;
use crate::core::Core;
use crate::failure::Failure;
use crate::pool::{Call, Repeat};
use crate::watch::Hub;

/// The contract on an etcd. See the [crate] for how.
#[derive(Clone)]
pub struct EtcdCoordinator {
    owner: Arc<Owner>,
    limit: Duration,
}

/// Ends the tasks of a coordinator with its last handle.
struct Owner {
    core: Arc<Core>,
    hub: Hub,
    background: Arc<Background>,
    _prober: Task,
}

impl EtcdCoordinator {
    /// A coordinator on this etcd, which need not be up yet: connections are made when needed and heal by themselves.
    /// Only a configuration that cannot work is an error. Must be called within a tokio runtime.
    ///
    /// ```no_run
    /// # async fn example() -> coord_api::Result<()> {
    /// use coord_api::{Coordinator, CoordinatorExt, Env};
    /// use coord_etcd::{EtcdConfig, EtcdCoordinator};
    ///
    /// let coordinator = EtcdCoordinator::open(EtcdConfig::new(["127.0.0.1:2379"]), Env::system())?;
    /// let key = "/jobs/nightly".parse().expect("a key");
    /// let entry = coordinator.create_persistent(&key, "hello").await?;
    /// println!("created at {}", entry.created);
    /// coordinator.close().await?;
    /// # Ok(()) }
    /// ```
    pub fn open(config: EtcdConfig, env: Env) -> Result<Arc<EtcdCoordinator>> {
        let core = Arc::new(Core::open(&config, env.clone())?);
        let owner = Owner {
            hub: Hub::start(core.pool.clone(), core.space.clone()),
            _prober: core.pool.spawn_prober(),
            background: Background::new(env),
            core,
        };
        Ok(Arc::new(EtcdCoordinator {
            owner: Arc::new(owner),
            limit: config.call_deadline,
        }))
    }

    fn core(&self) -> &Core {
        &self.owner.core
    }

    fn call(&self, repeat: Repeat) -> Call {
        self.core().call(self.limit, repeat)
    }

    /// A write: checked to be allowed, and finished even if the caller goes away.
    async fn write<T, Fut>(
        &self,
        operation: Operation,
        key: Option<&Key>,
        write: impl FnOnce(Arc<Core>, Call) -> Fut,
    ) -> Result<T>
    where
        T: Send + 'static,
        Fut: Future<Output = Result<T>> + Send + 'static,
    {
        self.core().check_open(operation, key)?;
        let write = write(self.owner.core.clone(), self.call(Repeat::Guarded));
        self.owner.background.finish(write).await
    }
}

#[async_trait]
impl Coordinator for EtcdCoordinator {
    fn env(&self) -> &Env {
        &self.core().env
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            call_deadline: self.limit,
            ..self.core().capabilities()
        }
    }

    fn within(&self, deadline: Duration) -> Arc<dyn Coordinator> {
        Arc::new(EtcdCoordinator {
            owner: self.owner.clone(),
            limit: self.limit.min(deadline),
        })
    }

    async fn grant(&self, ttl: Duration) -> Result<Grant> {
        let grant = |core: Arc<Core>, call| async move { core.grant(ttl, call).await };
        self.write(Operation::Grant, None, grant).await
    }

    async fn renew(&self, lease: LeaseId) -> Result<Grant> {
        self.core().check_open(Operation::Renew, None)?;
        self.core().renew(lease, self.call(Repeat::Freely)).await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        let revoke = |core: Arc<Core>, call| async move { core.revoke(lease, call).await };
        self.write(Operation::Revoke, None, revoke).await
    }

    async fn create(&self, create: &Create) -> Result<Entry> {
        let own = create.clone();
        let make = |core: Arc<Core>, call| async move { core.create(&own, call).await };
        self.write(Operation::Create, Some(&create.key), make).await
    }

    async fn abandon(&self, create: &Create) -> Result<()> {
        let own = create.clone();
        let abandon = |core: Arc<Core>, call| async move { core.abandon(&own, call).await };
        self.write(Operation::Abandon, Some(&create.key), abandon).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Entry>> {
        self.core().check_open(Operation::Get, Some(key))?;
        self.core().get(key, self.call(Repeat::Freely)).await
    }

    async fn get_latest(&self, key: &Key) -> Result<Option<Entry>> {
        self.core().check_open(Operation::GetLatest, Some(key))?;
        self.core().get_latest(key, self.call(Repeat::Freely)).await
    }

    async fn children(&self, key: &Key) -> Result<Vec<Entry>> {
        self.core().check_open(Operation::Children, Some(key))?;
        self.core().children(key, self.call(Repeat::Freely)).await
    }

    async fn update(&self, key: &Key, value: Bytes, expected: Expect) -> Result<Entry> {
        let own = key.clone();
        let update = |core: Arc<Core>, call| async move { core.update(&own, value, expected, call).await };
        self.write(Operation::Update, Some(key), update).await
    }

    async fn delete(&self, key: &Key, expected: Expect) -> Result<()> {
        let own = key.clone();
        let delete = |core: Arc<Core>, call| async move { core.delete(&own, expected, call).await };
        self.write(Operation::Delete, Some(key), delete).await
    }

    async fn standing(&self, entry: &Entry) -> Result<Standing> {
        self.core().check_open(Operation::Standing, Some(&entry.key))?;
        self.core().standing(entry, self.call(Repeat::Freely)).await
    }

    async fn watch(&self, target: &Target) -> Result<Watch> {
        self.core().check_open(Operation::Watch, Some(target.key()))?;
        self.owner.hub.watch(target, self.call(Repeat::Freely)).await
    }

    async fn close(&self) -> Result<()> {
        if !self.core().set_closed() {
            return Ok(());
        }
        self.owner.hub.close();
        let (core, call) = (self.owner.core.clone(), self.call(Repeat::Freely));
        let revoke_all = async move {
            let mut leases = core.leases.take_live();
            // Somebody may be waiting with it for a store that does not answer.
            let ledger = core.env.timeout_at(call.deadline(), core.ledger.take_lease());
            leases.extend(ledger.await.flatten());
            let revoked: Vec<_> = futures::stream::iter(leases)
                .map(|lease| core.revoke_lease(lease, call))
                .buffer_unordered(64)
                .collect()
                .await;
            revoked.into_iter().collect::<Result<(), Failure>>()
        };
        self.owner
            .background
            .finish(revoke_all)
            .await
            .map_err(|failure| match failure.class {
                Class::Definite => failure.into_error(Operation::Close, None),
                _ => Failure {
                    class: Class::Unknown,
                    ..failure
                }
                .into_error(Operation::Close, None),
            })
    }
}

impl fmt::Debug for EtcdCoordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdCoordinator")
            .field("pool", &self.core().pool)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.background.clear();
    }
}
