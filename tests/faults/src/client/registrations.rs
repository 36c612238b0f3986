use std::error::Error;
use std::time::Duration;

use coord_api::{Registration, Registry, RegistryConfig, Session, Status, Task};

use super::recorder::Recorder;
use super::{ClientConfig, SERVICE, nanos};
use crate::history::What;

/// How often it looks how its registration stands.
const LOOK: Duration = Duration::from_millis(50);

/// A registration, and who looks after it.
pub(super) struct Registered {
    registry: Registry,
    recorder: Recorder,
    look: Task,
}

/// Registers the client, and writes down how that stands.
pub(super) fn start(
    config: &ClientConfig,
    session: &Session,
    recorder: &Recorder,
) -> Result<Registered, Box<dyn Error>> {
    let owner = config.who.split('.').next().unwrap_or_default().to_owned();
    let registry = Registry::open(session.clone(), RegistryConfig::new(&owner))?;
    // The address tells one life of a client from another.
    registry.register(Registration::new(SERVICE, &owner, &config.who))?;
    let env = session.coordinator().env();
    let look = {
        let (registry, recorder, env) = (registry.clone(), recorder.clone(), env.clone());
        let session = session.clone();
        async move {
            let (mut before, mut same) = (None, None);
            loop {
                // The lease first: a registration seen after it is under this one or a later one. Twice under the same
                // one: a status may be a moment behind a new lease.
                let lease = session.lease();
                let known = registry.status(SERVICE, &owner) == Some(Status::Registered);
                let under = lease.filter(|_| known).map(|lease| lease.lease);
                let now = match lease.filter(|_| known && under == same) {
                    Some(lease) => stands(true, lease.lease.0, nanos(lease.good_until().since_start())),
                    None => stands(false, 0, 0),
                };
                if before.as_ref() != Some(&now) {
                    recorder.say(now.clone());
                    before = Some(now);
                }
                same = under;
                env.sleep(LOOK).await;
            }
        }
    };
    Ok(Registered {
        registry,
        recorder: recorder.clone(),
        look: env.spawn(look),
    })
}

fn stands(registered: bool, lease: u64, until: u64) -> What {
    What::Registered {
        registered,
        lease,
        until,
    }
}

impl Registered {
    pub(super) async fn close(self) {
        self.look.abort();
        self.recorder.say(stands(false, 0, 0));
        if let Err(error) = self.registry.close().await {
            self.recorder.note(format!("closing the registry: {error}"));
        }
    }
}
