mod stage;
mod switch;

use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use coordkit::Key;

use crate::app::App;
use crate::cli::Global;
use crate::exit::Exit;
use crate::shutdown::Shutdown;
use stage::{Stage, TTL};

/// The whole story in twenty seconds: a cluster finds itself, loses its leader, its store, and goes on
///
/// Real nodes on this machine, by default with a store in memory, with --store on any. Each step is checked; exit code 0
/// means that all of it really happened.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  coord demo --nodes 7 --store etcd://localhost:2379")]
pub(crate) struct Demo {
    /// How many nodes start at once
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(2..=50))]
    nodes: u8,
}

/// How long the store is away: longer than the leader's entry lives.
const OUTAGE: Duration = Duration::from_millis(3200);
/// How long the nodes have to leave.
const LEAVE: Duration = Duration::from_secs(15);

// === impl Demo ===

impl Demo {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        let shutdown = Shutdown::listen()?;
        let mut global = global.clone();
        let store = global.store.get_or_insert_with(|| "mem://demo".into()).clone();
        let app = App::new(&global, [])?;
        let prefix = Key::root()
            .child(format!("coord-demo-{:08x}", rand::random::<u32>()))
            .map_err(Exit::usage)?;
        let out = app.out;
        let mut stage = Stage::new(out, prefix, Box::new(move || app.connect()))?;
        let played = tokio::select! {
            biased;
            () = shutdown.requested() => Err(Exit::failed("interrupted")),
            played = self.play(&mut stage, &store) => played,
        };
        stage.clean_up().await?;
        played
    }

    async fn play(&self, stage: &mut Stage, store: &str) -> Result<(), Exit> {
        self.begin(stage, store).await?;
        lose_the_leader(stage).await?;
        let before = stage.nodes.len();
        stage
            .scene("A newcomer starts; it knows nothing but the store.")
            .await?;
        stage.start(format!("node {}", self.nodes + 1)).await?;
        stage
            .until(
                &format!("one cluster of {}, and the seeds are the truth", before + 1),
                async |stage: &Stage| (stage.is_whole() && stage.seeds_are_true().await).then_some(()),
            )
            .await?;
        self.lose_the_store(stage).await?;
        end(stage).await
    }

    async fn begin(&self, stage: &mut Stage, store: &str) -> Result<(), Exit> {
        let count = self.nodes;
        let shown = store.split('@').next_back().unwrap_or_default();
        stage
            .scene(&format!("{count} nodes start at once. The store ({shown}) is empty."))
            .await?;
        for number in 1..=count {
            stage.start(format!("node {number}")).await?;
        }
        stage
            .until(
                &format!("one cluster of {count}; one was elected, the others joined"),
                async |stage: &Stage| (stage.is_whole() && stage.formed.load(Ordering::SeqCst) == 1).then_some(()),
            )
            .await?;
        stage
            .until(
                "the first node keeps the seeds, and the seeds are the truth",
                async |stage: &Stage| (stage.manager().is_some() && stage.seeds_are_true().await).then_some(()),
            )
            .await
    }

    async fn lose_the_store(&self, stage: &mut Stage) -> Result<(), Exit> {
        stage
            .scene("The store goes away, for longer than the leader's entry lives.")
            .await?;
        for actor in &stage.nodes {
            actor.store.off();
        }
        let name = format!("node {}", self.nodes + 2);
        let away = stage.nodes.len();
        stage.pass(OUTAGE / 2).await?;
        stage.start(name.clone()).await?;
        if let Some(newcomer) = stage.nodes.last() {
            newcomer.store.off();
        }
        stage.pass(OUTAGE / 2).await?;
        stage
            .until(
                "the leader's entry has ended; the cluster does not care",
                async |stage: &Stage| {
                    let lives = stage.nodes[..away].iter().all(|actor| {
                        let view = actor.node.view();
                        view.converged && view.up().count() >= away
                    });
                    (lives && stage.read("leader").await.is_none()).then_some(())
                },
            )
            .await?;
        stage.scene("The store is back.").await?;
        for actor in &stage.nodes {
            actor.store.on();
        }
        stage
            .until(
                &format!("advertised again; {name}, which had to wait, is in"),
                async |stage: &Stage| {
                    let advertised = stage.read("leader").await.is_some() && stage.seeds_are_true().await;
                    (stage.is_whole() && advertised).then_some(())
                },
            )
            .await
    }
}

async fn lose_the_leader(stage: &mut Stage) -> Result<(), Exit> {
    let manager = stage
        .manager()
        .ok_or_else(|| Exit::failed("the demo failed: nobody keeps the seeds"))?;
    let dead = stage.nodes.remove(manager);
    stage
        .scene(&format!("{}, which keeps the seeds, is killed.", dead.name))
        .await?;
    // As kill -9: not a word to anybody, and its entry stays until its ttl has passed.
    dead.store.off();
    let name = dead.name.clone();
    drop(dead);
    let left = stage.nodes.len();
    let what = format!("the next one has taken over within its ttl ({TTL:?}) and some, and put {name} down");
    stage
        .until(&what, async |stage: &Stage| {
            let held = stage.read("leader").await?;
            let manager = stage.manager()?;
            let me = stage.nodes[manager].node.self_node().to_string();
            (held.contains(&me) && stage.is_whole()).then_some(())
        })
        .await?;
    stage
        .until(
            &format!("the seeds have followed: {left} nodes, without {name}"),
            async |stage: &Stage| stage.seeds_are_true().await.then_some(()),
        )
        .await
}

async fn end(stage: &mut Stage) -> Result<(), Exit> {
    stage.scene("Everybody leaves.").await?;
    let mut graceful = true;
    // One after the other would show the same, and take longer.
    let leaving: Vec<_> = stage.nodes.iter().map(|actor| actor.bootstrap.leave(LEAVE)).collect();
    for end in futures::future::join_all(leaving).await {
        graceful &= end == coord_bootstrap::End::Left { graceful: true };
    }
    stage
        .until(
            "all have left in order, and the last one has tidied up the store",
            async |stage: &Stage| {
                let empty = stage.read("cluster").await.is_none() && stage.read("leader").await.is_none();
                (graceful && empty).then_some(())
            },
        )
        .await
}
