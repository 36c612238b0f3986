//! All watches of a coordinator on one stream.

mod actor;
mod stream;
mod subscription;

use std::sync::Arc;

use coord_api::driver::{WatchSender, mailbox};
use coord_api::{Class, Error, Operation, Result, Target, Task, Watch};
use tokio::sync::{mpsc, oneshot};

use crate::failure::Failure;
use crate::keyspace::Keyspace;
use crate::pool::{Call, Pool};
use actor::Actor;

/// Takes watches and hands them to the task that owns the stream.
#[derive(Debug)]
pub(crate) struct Hub {
    pool: Arc<Pool>,
    /// Never longer than twice the number of watches.
    commands: mpsc::UnboundedSender<Command>,
    _task: Task,
}

enum Command {
    Add {
        target: Target,
        sender: WatchSender,
        ready: oneshot::Sender<Result<(), Failure>>,
        /// The name under which it can be cancelled.
        ticket: u64,
    },
    Cancel(u64),
    Close,
}

impl Hub {
    pub(crate) fn start(pool: Arc<Pool>, space: Keyspace) -> Hub {
        let (commands, inbox) = mpsc::unbounded_channel();
        let task = pool.env.spawn(Actor::new(pool.clone(), space, inbox).run());
        Hub {
            pool,
            commands,
            _task: task,
        }
    }

    /// Returns when the first state is there to be read, or with the reason why it is not.
    pub(crate) async fn watch(&self, target: &Target, call: Call) -> Result<Watch> {
        let key = Some(target.key());
        if let Target::Key(key) = target {
            coord_api::driver::check_entry_key(Operation::Watch, key)?;
        }
        let closed = || Error::closed(Operation::Watch, key);
        let (ready, told) = oneshot::channel();
        let ticket = self.pool.env.random_u64();
        let commands = self.commands.clone();
        let (sender, watch) = mailbox(move || {
            let _ = commands.send(Command::Cancel(ticket));
        });
        let add = Command::Add {
            target: target.clone(),
            sender,
            ready,
            ticket,
        };
        self.commands.send(add).map_err(|_| closed())?;
        match self.pool.env.timeout_at(call.deadline(), told).await {
            Some(Ok(Ok(()))) => Ok(watch),
            Some(Ok(Err(failure))) => Err(failure.into_error(Operation::Watch, key)),
            Some(Err(_)) => Err(closed()),
            None => {
                let failure = Failure::deadline(false, call.limit);
                Err(Failure {
                    class: Class::NotSent,
                    ..failure
                }
                .into_error(Operation::Watch, key))
            }
        }
    }

    /// Ends all watches and takes no more.
    pub(crate) fn close(&self) {
        let _ = self.commands.send(Command::Close);
    }
}
