use clap::Args;
use coordkit::{Directory, Registration, Registry, RegistryConfig, Session, Status};
use serde::Serialize;

use crate::app::{App, default_name};
use crate::cli::Global;
use crate::escape::Escaped;
use crate::exit::Exit;
use crate::shutdown::Shutdown;
use crate::waiting;

/// Register an instance of a service, and keep it registered until SIGINT or SIGTERM
///
/// It is put back whenever the lease or the entry was lost, and removed at the end.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  coord register web web-1 10.0.0.7:8080 --meta zone=a --store etcd://localhost:2379"
)]
pub(crate) struct Register {
    /// Which service
    service: String,
    /// Which instance of it
    id: String,
    /// Where it can be reached
    address: String,
    /// A further fact for readers; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_fact)]
    meta: Vec<(String, String)>,
    /// Who registers, the same after a restart, so that an entry left by a crash is replaced at once; no two processes
    /// at a time may share it [default: host-pid, and such an entry ends by its ttl]
    #[arg(long)]
    owner: Option<String>,
    /// The time to live of its lease: after a crash the entry is gone at the latest this much later [default: 10s]
    #[arg(long, value_name = "DURATION")]
    ttl: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Row<'a> {
    Registered {
        service: &'a str,
        id: &'a str,
        address: &'a str,
        /// Another number is another registration: it was put back.
        created: Option<u64>,
    },
    Taken {
        service: &'a str,
        id: &'a str,
        owner: &'a str,
        address: &'a str,
    },
    Pending {
        service: &'a str,
        id: &'a str,
        error: Option<&'a str>,
    },
    Unregistered {
        service: &'a str,
        id: &'a str,
    },
}

fn parse_fact(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".into()),
    }
}

// === impl Register ===

impl Register {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let shutdown = Shutdown::listen()?;
        let app = App::new(global, App::flag("--ttl", "session.ttl", self.ttl.as_ref()))?;
        let coordinator = app.connect()?;
        let session = Session::open(coordinator.clone(), app.config.session_config())?;
        let owner = self.owner.clone().unwrap_or_else(default_name);
        let registry = Registry::open(session.clone(), RegistryConfig::new(&owner))?;
        let mut registration = Registration::new(&self.service, &self.id, &self.address);
        registration.metadata.extend(self.meta.iter().cloned());
        registry.register(registration)?;
        let result = tokio::select! {
            biased;
            () = shutdown.requested() => Ok(()),
            () = app.out.closed() => Err(Exit::pipe()),
            result = self.follow(&app, &session, &registry, &owner) => result,
        };
        let gone = registry.close().await;
        session.close().await.ok();
        coordinator.close().await.ok();
        result?;
        // Told only when it is so; otherwise the entry ends with its lease.
        if let Err(error) = gone {
            return Err(Exit::failed(format!(
                "unregister {}/{}: {error}",
                self.service, self.id
            )));
        }
        let (service, id) = (&*self.service, &*self.id);
        app.out
            .row(
                &Row::Unregistered { service, id },
                format!("unregistered  {service}/{id}"),
            )
            .await
    }

    /// Tells each change of how the registration stands; that it was put back is one.
    async fn follow(&self, app: &App, session: &Session, registry: &Registry, owner: &str) -> Result<(), Exit> {
        let coordinator = session.coordinator();
        waiting::for_the_store(coordinator, &app.config.store).await?;
        let mut view = Directory::new(coordinator.clone()).view(&self.service)?;
        let mut lease = session.subscribe();
        let mut told = None;
        loop {
            registry.settled().await.map_err(|_| self.ended())?;
            let status = registry.status(&self.service, &self.id);
            let seen = view.now().and_then(|instances| instances.get(&self.id).cloned());
            // Registered is what readers see, too.
            let created = seen.filter(|seen| seen.owner == owner).map(|seen| seen.created);
            if let Some(status) = status
                && (status != Status::Registered || created.is_some())
                && told != Some((status.clone(), created))
            {
                self.tell(app, &status, created).await?;
                told = Some((status, created));
            }
            tokio::select! {
                seen = view.changed() => drop(seen.ok_or_else(|| self.ended())?),
                state = lease.changed() => drop(state.ok_or_else(|| self.ended())?),
            }
        }
    }

    fn ended(&self) -> Exit {
        let what = format!("register {}/{}", self.service, self.id);
        Exit::unavailable(format!("{what}: no lease could be had within session.backoff.limit"))
    }

    async fn tell(&self, app: &App, status: &Status, created: Option<u64>) -> Result<(), Exit> {
        let (service, id) = (&*self.service, &*self.id);
        let row = match status {
            Status::Registered => Row::Registered {
                service,
                id,
                address: &self.address,
                created,
            },
            Status::Taken { owner, address } => Row::Taken {
                service,
                id,
                owner,
                address,
            },
            Status::Pending { error } => Row::Pending {
                service,
                id,
                error: error.as_deref(),
            },
        };
        let words = match &row {
            Row::Taken { owner, address, .. } => format!(
                "taken         {service}/{id} is {}, registered by {}; waiting until it goes",
                Escaped::new(address),
                Escaped::new(owner)
            ),
            Row::Pending { error, .. } => {
                let why = error.map_or(String::new(), |error| format!(": {}", Escaped::new(error)));
                format!("pending       {service}/{id}{why}")
            }
            _ => format!("registered    {service}/{id} at {}", self.address),
        };
        app.out.row(&row, words).await
    }
}
