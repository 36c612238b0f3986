use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use coord_api::Nonce;

/// How many creates that were given up are remembered; each is of interest only while a copy may still be on its way
/// through this process.
const REMEMBERED: usize = 16_384;

/// The creates of one session: which may still be on their way, and which were given up.
#[derive(Debug, Default)]
pub(crate) struct Nonces(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    pending: HashSet<Nonce>,
    abandoned: HashSet<Nonce>,
    order: VecDeque<Nonce>,
}

/// A create that was given up must not be sent any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Abandoned;

impl Nonces {
    /// Hands the create to the session, unless it was given up. Both in one step, so that a barrier that is sent after
    /// [`abandon`](Self::abandon) comes after every copy of the create.
    pub(crate) fn send<T>(&self, nonce: Nonce, send: impl FnOnce() -> T) -> Result<T, Abandoned> {
        let inner = self.lock();
        if inner.abandoned.contains(&nonce) {
            return Err(Abandoned);
        }
        Ok(send())
    }

    /// From now on nobody knows what became of this create, until it is [settled](Self::settled).
    pub(crate) fn pending(&self, nonce: Nonce) {
        self.lock().pending.insert(nonce);
    }

    /// Whether an earlier call sent this create and never learnt what became of it.
    pub(crate) fn is_pending(&self, nonce: Nonce) -> bool {
        self.lock().pending.contains(&nonce)
    }

    /// What became of it is known.
    pub(crate) fn settled(&self, nonce: Nonce) {
        self.lock().pending.remove(&nonce);
    }

    /// From now on the create is not sent.
    pub(crate) fn abandon(&self, nonce: Nonce) {
        let mut inner = self.lock();
        if inner.abandoned.insert(nonce) {
            inner.order.push_back(nonce);
        }
        if inner.order.len() > REMEMBERED {
            let oldest = inner.order.pop_front();
            if let Some(oldest) = oldest {
                inner.abandoned.remove(&oldest);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abandoned_create_is_not_sent_and_memory_is_bounded() {
        let nonces = Nonces::default();
        assert_eq!(nonces.send(Nonce(1), || 7), Ok(7));
        nonces.abandon(Nonce(1));
        assert_eq!(nonces.send(Nonce(1), || 7), Err(Abandoned));
        for n in 2..=REMEMBERED as u128 + 1 {
            nonces.abandon(Nonce(n));
        }
        assert_eq!(nonces.lock().abandoned.len(), REMEMBERED);
    }
}
