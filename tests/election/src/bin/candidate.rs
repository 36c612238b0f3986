//! One candidate as a process: `candidate STORE ADDRESS RECIPE KEY NAME TTL_MS TERM_MS`. Contends, leads for TERM_MS at most,
//! and again, until its standard input ends; then closes everything.

use std::error::Error;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use coord_api::{
    Backoff, Election, ElectionConfig, Env, Key, Recipe, Session, SessionConfig, Strategy, Term, Unelected, margin,
};
use coord_election_tests::Store;
use coord_recipes_tests::{Line, What};
use futures::FutureExt;
use tokio::io::AsyncReadExt;

/// How often it looks whether it is valid.
const LOOK: Duration = Duration::from_millis(10);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [store, address, recipe, key, name, ttl, term] = &args[..] else {
        return Err("STORE ADDRESS RECIPE KEY NAME TTL_MS TERM_MS".into());
    };
    let coordinator = Store::named(store).ok_or("no such store")?.open(address)?;
    let env = coordinator.env().clone();
    let slack = coordinator.capabilities().expiry_slack;
    let config = SessionConfig {
        name: name.clone(),
        ttl: Duration::from_millis(ttl.parse()?),
        backoff: Backoff {
            strategy: Strategy::Constant {
                delay: Duration::from_millis(200),
            },
            ..Backoff::default()
        },
    };
    let session = Session::open(coordinator.clone(), config)?;
    let lease = session.connected().await?;
    let config = ElectionConfig {
        recipe: if recipe == "cas" { Recipe::Cas } else { Recipe::Sequence },
        ..ElectionConfig::new(Key::new(key)?, name)
    };
    let election = Arc::new(Election::new(&session, config));
    let reporter = Reporter {
        who: format!("{name}/{}", std::process::id()),
        env: env.clone(),
        ttl: lease.ttl,
    };
    reporter.say(What::Started { ttl: lease.ttl, slack });
    let running = {
        let (election, reporter) = (election.clone(), reporter.clone());
        let longest = Duration::from_millis(term.parse()?);
        env.spawn(async move {
            election
                .run_while_leader(|term| reporter.clone().lead(term, longest))
                .await
        })
    };
    // Whoever started it holds the other end.
    let _ = tokio::io::stdin().read_to_end(&mut vec![]).await;
    election.close().await;
    running.join().await;
    session.close().await?;
    coordinator.close().await?;
    reporter.say(What::Closed);
    Ok(())
}

#[derive(Clone)]
struct Reporter {
    who: String,
    env: Env,
    ttl: Duration,
}

impl Reporter {
    async fn lead(self, term: Term, longest: Duration) -> ControlFlow<()> {
        let (token, enough) = (term.token(), self.env.now() + longest);
        self.say(What::Elected { token });
        while !term.is_stopped() && self.env.now() < enough {
            let until = (term.valid_until() - margin(self.ttl)).since_start();
            if term.is_valid() {
                self.say(What::Valid { token, until });
            }
            self.env.sleep(LOOK).await;
        }
        let over = if term.is_valid() {
            None
        } else {
            term.lost().now_or_never()
        };
        let given_back = matches!(over, None | Some(Unelected::Closed));
        self.say(What::Ended { token, given_back });
        ControlFlow::Continue(())
    }

    fn say(&self, what: What) {
        let line = Line {
            at: self.env.now().since_start(),
            who: self.who.clone(),
            what,
        };
        let Ok(mut text) = serde_json::to_string(&line) else {
            return;
        };
        text.push('\n');
        // In one piece; nobody reads on: nobody is told.
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
}
