mod children;
mod key;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coord_api::driver::{WatchSender, mailbox};
use coord_api::{Error, Operation, Result, Target, Task, Watch};
use zookeeper_client::Error as ZkError;

use crate::ZkConfig;
use crate::call::Call;
use crate::conn::{Barrier, Conn};
use crate::fresh::Fresh;
use crate::inner::{AGAIN, Inner};
use crate::shared::Shared;

/// The running watches of one coordinator.
#[derive(Debug, Default)]
pub(crate) struct Watches(Mutex<Running>);

#[derive(Debug, Default)]
struct Running {
    next: u64,
    tasks: HashMap<u64, (Target, Arc<WatchSender>, Task)>,
    ended: bool,
}

/// What a watch needs of its coordinator, without holding it.
#[derive(Debug, Clone)]
struct Source {
    shared: Shared,
    fresh: Arc<Fresh>,
    config: Arc<ZkConfig>,
    env: coord_api::Env,
}

/// Why a pass over a watch ended: each time the whole state is read anew.
enum Broken {
    /// The session is over: what happened in between cannot be told.
    Session,
    /// The server refuses for good.
    Refused(ZkError),
}

impl Inner {
    /// Starts a watch. It may take until the store can be reached that its first event comes.
    pub(crate) fn watch(&self, target: &Target) -> Result<Watch> {
        let source = Source {
            shared: self.shared.clone(),
            fresh: self.fresh.clone(),
            config: self.config.clone(),
            env: self.env.clone(),
        };
        let mut running = self.watches.lock();
        if running.ended {
            return Err(Error::closed(Operation::Watch, Some(target.key())));
        }
        let id = running.next;
        running.next += 1;
        let watches = Arc::downgrade(&self.watches);
        let (sender, watch) = mailbox(move || {
            // Dropping the task drops its one-shot watchers, and they take back what stands at the server.
            let task = watches.upgrade().and_then(|watches| watches.lock().tasks.remove(&id));
            drop(task);
        });
        let sender = Arc::new(sender);
        let task = self.env.spawn(source.follow(target.clone(), sender.clone()));
        running.tasks.insert(id, (target.clone(), sender, task));
        Ok(watch)
    }
}

impl Watches {
    /// Ends all watches, and lets no new one begin.
    pub(crate) fn end_all(&self) {
        let tasks = {
            let mut running = self.lock();
            running.ended = true;
            std::mem::take(&mut running.tasks)
        };
        for (target, sender, task) in tasks.into_values() {
            drop(task);
            sender.end(Error::closed(Operation::Watch, Some(target.key())));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    /// One pass per session; within one, the one-shot watchers survive reconnects, and what changed meanwhile is
    /// reported by the server.
    async fn follow(self, target: Target, sender: Arc<WatchSender>) {
        let call = Call::new(
            &self.env,
            Operation::Watch,
            Some(target.key()),
            self.config.call_deadline,
        );
        loop {
            let conn = self.fresh_conn().await;
            let broken = match &target {
                Target::Key(key) => key::follow(&self, &conn, key, &sender).await,
                Target::Children(key) => children::follow(&self, &conn, key, &sender).await,
            };
            match broken {
                Broken::Session => {}
                Broken::Refused(error) => {
                    sender.end(call.refused(&error));
                    return;
                }
            }
        }
    }

    /// The shared connection, caught up with every write that had finished anywhere: the server behind it may lag.
    async fn fresh_conn(&self) -> Arc<Conn> {
        loop {
            let conn = self.shared.conn().await;
            let behind = self.fresh.behind();
            match conn.barrier().await {
                Ok(()) => {
                    if let Some(behind) = behind {
                        self.fresh.caught_up(behind);
                    }
                    return conn;
                }
                Err(Barrier::Over | Barrier::Lost(_)) => self.env.sleep(AGAIN).await,
            }
        }
    }

    /// After a failed request: whether to go on with this session.
    async fn after(&self, error: ZkError, conn: &Conn) -> Result<(), Broken> {
        if !crate::faults::is_ambiguous(&error) {
            return Err(Broken::Refused(error));
        }
        self.env.sleep(AGAIN).await;
        conn.connected().await.map_err(|_| Broken::Session)
    }
}
