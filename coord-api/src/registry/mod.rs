mod book;
mod config;
mod directory;
mod instance;
mod job;
mod reconciler;
mod shards;
mod view;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::{Env, Error, ErrorKind, Key, Operation, Result, Session, Task};
use book::Book;
pub use config::RegistryConfig;
pub use directory::Directory;
use instance::Value;
pub use instance::{Instance, Registration};
use reconciler::Reconciler;
use shards::Shards;
pub use view::{Instances, View};

#[doc = include_str!("registry.md")]
#[derive(Clone)]
pub struct Registry(Arc<Handle>);

/// Ends the loop with the last handle.
struct Handle {
    inner: Arc<Inner>,
    reconciler: Mutex<Option<Task<Result<()>>>>,
}

struct Inner {
    session: Session,
    config: RegistryConfig,
    identity: Arc<Identity>,
    book: Mutex<Book>,
    /// Each session that carries entries, with the epoch in which they were last looked at.
    looked: Mutex<Vec<(Session, Option<u64>)>>,
    /// Something else is wanted.
    wishes: Notify,
    /// Something was done, or the loop has ended.
    progress: watch::Sender<()>,
    closing: AtomicBool,
    ended: AtomicBool,
}

/// Who writes: the owner, and which life of it.
#[derive(Debug)]
struct Identity {
    owner: String,
    incarnation: String,
}

/// How one registration stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// On its way: there is no lease yet, or the store does not answer.
    Pending {
        /// Why the last attempt failed, if one did.
        error: Option<String>,
    },
    /// The entry is there.
    Registered,
    /// Another owner's live entry has the name; it will be registered when that goes.
    Taken {
        /// Who has it.
        owner: String,
        /// The address it gives.
        address: String,
    },
}

// === impl Registry ===

impl Registry {
    /// Starts the loop and returns at once. Fails only if the configuration cannot work.
    pub fn open(session: Session, config: RegistryConfig) -> Result<Registry> {
        config.check()?;
        let env = session.coordinator().env().clone();
        let identity = Identity {
            owner: config.owner.clone(),
            incarnation: format!("{:016x}", env.random_u64()),
        };
        let inner = Arc::new(Inner {
            session: session.clone(),
            config,
            identity: Arc::new(identity),
            book: Mutex::default(),
            looked: Mutex::new(vec![(session.clone(), None)]),
            wishes: Notify::new(),
            progress: watch::Sender::new(()),
            closing: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        let ends = Ends(inner.clone());
        let run = Reconciler::run(inner.clone(), Shards::new(session));
        let reconciler = env.spawn(async move {
            let _ends = ends;
            run.await
        });
        Ok(Registry(Arc::new(Handle {
            inner,
            reconciler: Mutex::new(Some(reconciler)),
        })))
    }

    /// Wants this instance there, with these facts; the newest ones win. Registering the same thing again is no
    /// change. Never waits: fails only for a name or size that cannot work, or after a close.
    pub fn register(&self, registration: Registration) -> Result<()> {
        let key = self.key(Operation::Create, &registration.service, &registration.id)?;
        let inner = &self.0.inner;
        let value = Value {
            address: registration.address,
            metadata: registration.metadata,
            owner: inner.identity.owner.clone(),
            incarnation: inner.identity.incarnation.clone(),
        };
        let value = value.encode();
        let capabilities = inner.session.coordinator().capabilities();
        crate::driver::check_value(Operation::Create, &key, value.len(), &capabilities)?;
        if inner.has_ended() || !inner.book().want(&key, value) {
            return Err(closed(Operation::Create, &key));
        }
        inner.wishes.notify_one();
        Ok(())
    }

    /// Like [`register`](Registry::register), but only for what is registered: otherwise
    /// [`NotFound`](ErrorKind::NotFound).
    pub fn update(&self, registration: Registration) -> Result<()> {
        let key = self.key(Operation::Update, &registration.service, &registration.id)?;
        if !self.0.inner.book().is_wanted(&key) {
            return Err(Error::definite(Operation::Update, Some(&key), ErrorKind::NotFound));
        }
        self.register(registration)
    }

    /// Wants it gone. Never waits. False if it was not registered.
    pub fn unregister(&self, service: &str, id: &str) -> bool {
        let Ok(key) = self.key(Operation::Delete, service, id) else {
            return false;
        };
        let forgotten = self.0.inner.book().forget(&key);
        self.0.inner.wishes.notify_one();
        forgotten
    }

    /// How one registration stands; `None` if it is not registered here.
    pub fn status(&self, service: &str, id: &str) -> Option<Status> {
        let key = self.key(Operation::Get, service, id).ok()?;
        self.0.inner.book().status(&key)
    }

    /// How many instances are registered here.
    pub fn len(&self) -> usize {
        self.0.inner.book().wanted().count()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until nothing is left to do: each registration is [`Registered`](Status::Registered) or
    /// [`Taken`](Status::Taken), and what was unregistered is gone. Fails once the registry or its session has ended.
    pub async fn settled(&self) -> Result<()> {
        let inner = &self.0.inner;
        let mut progress = inner.progress.subscribe();
        loop {
            progress.mark_unchanged();
            if inner.has_ended() {
                return Err(Error::closed(Operation::Get, None));
            }
            if inner.is_settled() {
                return Ok(());
            }
            // The sender lives as long as `inner`: this cannot fail.
            let _ = progress.changed().await;
        }
    }

    /// Removes all entries and ends the loop; the session goes on. Idempotent.
    ///
    /// Ends by the coordinator's [call deadline](crate::Capabilities::call_deadline). Fails if the store could not be
    /// told; then the entries end with the session.
    pub async fn close(&self) -> Result<()> {
        let inner = &self.0.inner;
        inner.book().close();
        inner.closing.store(true, Ordering::SeqCst);
        inner.wishes.notify_one();
        let reconciler = self.0.reconciler.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(reconciler) = reconciler else { return Ok(()) };
        let env = inner.env();
        let deadline = inner.session.coordinator().capabilities().call_deadline;
        match env.timeout_at(env.now() + deadline, reconciler.join()).await {
            Some(result) => result.unwrap_or(Ok(())),
            None => {
                let late = ErrorKind::DeadlineExceeded(deadline);
                Err(Error::unknown(Operation::Close, None, late))
            }
        }
    }

    fn key(&self, operation: Operation, service: &str, id: &str) -> Result<Key> {
        let key = self.0.inner.config.prefix.child(service).and_then(|key| key.child(id));
        key.map_err(|invalid| Error::definite(operation, None, ErrorKind::InvalidKey(invalid)))
    }
}

/// Whether or not it ended by itself: those who wait learn it.
struct Ends(Arc<Inner>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::SeqCst);
        self.0.progress.send_replace(());
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("owner", &self.0.inner.identity.owner)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

// === impl Inner ===

impl Inner {
    fn env(&self) -> &Env {
        self.session.coordinator().env()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_looked(&self, looked: Vec<(Session, Option<u64>)>) {
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = looked;
    }

    /// Whether nothing is left to do, under the leases that live now.
    fn is_settled(&self) -> bool {
        let looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let current = |(session, looked): &(Session, Option<u64>)| {
            let epoch = session.lease().map(|lease| lease.epoch);
            epoch.is_some() && epoch == *looked
        };
        looked.iter().all(current) && self.book().is_settled()
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }
}

// === impl Identity ===

impl Identity {
    /// Whether this very process wrote it.
    fn wrote(&self, value: &Value) -> bool {
        value.owner == self.owner && value.incarnation == self.incarnation
    }
}

fn closed(operation: Operation, key: &Key) -> Error {
    Error::definite(
        operation,
        Some(key),
        ErrorKind::Refused("the registry or its session has ended; open a new one".into()),
    )
}
