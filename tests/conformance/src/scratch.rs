use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use coord_api::{Coordinator, CoordinatorExt, Key, LeaseId, Prefixed, Task};

use crate::failure::{Checked, Failure};
use crate::lease::kept;

/// How often the clean-up tries: entries of a client that a behaviour just dropped may still be going.
const CLEAN_UP_ATTEMPTS: u32 = 20;
const CLEAN_UP_PAUSE: Duration = Duration::from_millis(250);

/// A client of the store under test, which calls the scratch key its root.
pub(crate) type Client = Arc<dyn Coordinator>;

/// A way to open clients of one store.
#[async_trait]
pub trait Opener: Send + Sync {
    /// A fresh client: its own leases, its own connections where the driver has any, always of the same store. It
    /// sees the store from its root; the suite keeps to a scratch key below it.
    async fn open(&self) -> coord_api::Result<Arc<dyn Coordinator>>;
}

/// Where one behaviour works: a key of its own, and the clients that it opened there.
pub struct Scratch<'a> {
    opener: &'a dyn Opener,
    /// Names the scratch key, and deletes it when all others are closed.
    janitor: Arc<dyn Coordinator>,
    top: Key,
    prefix: Key,
    opened: Mutex<Vec<Arc<dyn Coordinator>>>,
    renewing: Mutex<Vec<Task>>,
    kept: Mutex<Vec<LeaseId>>,
    missed: Arc<AtomicBool>,
}

impl<'a> Scratch<'a> {
    pub(crate) async fn open(opener: &'a dyn Opener, name: &str) -> Checked<Scratch<'a>> {
        let janitor = opener.open().await?;
        let top = key(&format!("/conformance-{}", janitor.env().nonce()));
        let prefix = top
            .child(name)
            .map_err(|invalid| Failure::new(format!("a behaviour's name is one segment: {invalid}")))?;
        Ok(Scratch {
            opener,
            janitor,
            top,
            prefix,
            opened: Mutex::default(),
            renewing: Mutex::default(),
            kept: Mutex::default(),
            missed: Arc::default(),
        })
    }

    /// A fresh client that sees the scratch key as its root. Closed when the behaviour is over.
    pub(crate) async fn client(&self) -> Checked<Client> {
        Ok(self.below(self.raw_client().await?))
    }

    /// Two fresh clients.
    pub(crate) async fn two_clients(&self) -> Checked<(Client, Client)> {
        Ok((self.client().await?, self.client().await?))
    }

    /// A fresh client that sees the store's own root, for what [`Prefixed`] would answer by itself.
    pub(crate) async fn raw_client(&self) -> Checked<Client> {
        let client = self.opener.open().await?;
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.push(client.clone());
        Ok(client)
    }

    /// A fresh client that nobody closes but the behaviour.
    pub(crate) async fn unowned_client(&self) -> Checked<Client> {
        Ok(self.below(self.opener.open().await?))
    }

    /// A lease of this client that is renewed until the behaviour is over.
    pub(crate) async fn kept_lease(&self, client: &Client) -> Checked<LeaseId> {
        let (lease, renewing) = kept(client, self.missed.clone()).await?;
        let mut all = self.renewing.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(renewing);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(lease);
        Ok(lease)
    }

    /// Whether this is a lease, and none that is renewed.
    pub(crate) fn keeps_not(&self, lease: Option<LeaseId>) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        lease.is_some_and(|lease| !kept.contains(&lease))
    }

    /// Whether a lease that was to be kept was not renewed within its ttl.
    pub(crate) fn missed_renewals(&self) -> bool {
        self.missed.load(Ordering::SeqCst)
    }

    /// The scratch key as a raw client names it.
    pub(crate) fn prefix(&self) -> &Key {
        &self.prefix
    }

    fn below(&self, client: Client) -> Client {
        Arc::new(Prefixed::new(client, self.prefix.clone()))
    }

    pub(crate) async fn clean_up(self) -> Checked {
        drop(self.renewing);
        let opened = self.opened.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut result = Ok(());
        for client in opened {
            let closed = client.close().await;
            result = result.and(closed.map_err(|error| Failure::new(format!("a client did not close: {error:?}"))));
        }
        result = result.and(delete(&self.janitor, &self.top).await);
        let closed = self.janitor.close().await;
        result.and(closed.map_err(|error| Failure::new(format!("the last client did not close: {error:?}"))))
    }
}

async fn delete(janitor: &Client, top: &Key) -> Checked {
    let mut attempt = 1;
    loop {
        match janitor.delete_recursive(top).await {
            Ok(()) => return Ok(()),
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) if attempt == CLEAN_UP_ATTEMPTS => {
                return Err(Failure::new(format!("{top} could not be deleted: {error:?}")));
            }
            Err(_) => attempt += 1,
        }
        janitor.env().sleep(CLEAN_UP_PAUSE).await;
    }
}

/// A key that is known to be valid.
pub(crate) fn key(text: &str) -> Key {
    Key::new(text).expect("the suite's keys are valid")
}
