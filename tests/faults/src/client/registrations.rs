use std::error::Error;
use std::time::Duration;

use coord_api::{Registration, Registry, RegistryConfig, Session, Status, Task};

use super::recorder::Recorder;
use super::{ClientConfig, SERVICE};
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
            let mut before = None;
            loop {
                let connected = session.lease().is_some();
                let registered = connected && registry.status(SERVICE, &owner) == Some(Status::Registered);
                if before != Some(registered) {
                    recorder.say(What::Registered { registered });
                    before = Some(registered);
                }
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

impl Registered {
    pub(super) async fn close(self) {
        self.look.abort();
        self.recorder.say(What::Registered { registered: false });
        if let Err(error) = self.registry.close().await {
            self.recorder.note(format!("closing the registry: {error}"));
        }
    }
}
