use std::sync::Arc;
use std::time::{Duration, Instant};

use coord_api::{Coordinator, Election, ElectionConfig, Env, Key, Leadership, Recipe, Session, SessionConfig, Task};
use coord_recipes_tests::Spy;
use tokio::sync::mpsc;

/// Longer than anything here may take: renewals are rare, and none is in the way.
const TTL: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(60);

/// Candidates of one election, one of which leads.
pub(crate) struct Field {
    elections: Vec<Arc<Election>>,
    spies: Vec<Arc<Spy>>,
    waiting: Vec<Option<Task>>,
    leads: Option<(usize, Leadership)>,
    won: mpsc::UnboundedSender<Won>,
    winners: mpsc::UnboundedReceiver<Won>,
    env: Env,
}

struct Won {
    who: usize,
    leadership: Leadership,
    at: Instant,
}

impl Field {
    /// `count` candidates, spread over these clients, one session on each. Returns when one leads and all others wait.
    pub(crate) async fn open(clients: Vec<Arc<dyn Coordinator>>, key: &str, recipe: Recipe, count: usize) -> Field {
        let spies: Vec<_> = clients.into_iter().map(Spy::new).collect();
        let mut sessions = vec![];
        for spy in &spies {
            let config = SessionConfig {
                ttl: TTL,
                ..SessionConfig::default()
            };
            let session = Session::open(spy.clone(), config).expect("a session");
            session.connected().await.expect("a lease");
            sessions.push(session);
        }
        let candidate = |who: usize| {
            let config = ElectionConfig {
                recipe,
                ..ElectionConfig::new(Key::new(key).expect("a key"), format!("c{who}"))
            };
            Arc::new(Election::new(&sessions[who % sessions.len()], config))
        };
        let (won, winners) = mpsc::unbounded_channel();
        let mut field = Field {
            elections: (0..count).map(candidate).collect(),
            env: spies[0].env().clone(),
            spies,
            waiting: (0..count).map(|_| None).collect(),
            leads: None,
            won,
            winners,
        };
        for who in 0..count {
            field.contend(who);
            if who == 0 {
                let won = field.next().await;
                field.leads = Some((won.who, won.leadership));
            }
        }
        field
    }

    fn contend(&mut self, who: usize) {
        let (election, won) = (self.elections[who].clone(), self.won.clone());
        self.waiting[who] = Some(self.env.spawn(async move {
            let leadership = election.campaign().await.expect("a leadership");
            let at = Instant::now();
            // At the end of the measurement nobody asks any more.
            let _ = won.send(Won { who, leadership, at });
        }));
    }

    async fn next(&mut self) -> Won {
        let won = tokio::time::timeout(PATIENCE, self.winners.recv()).await;
        won.expect("somebody leads in time").expect("the sender is here")
    }

    /// The leader resigns: how long until another one leads, and how many calls that took. The one that resigned does
    /// not take part any more, until it [joins](Field::join) again.
    pub(crate) async fn hand_over(&mut self) -> HandOver {
        let (was, leadership) = self.leads.take().expect("somebody leads");
        let before = self.calls();
        let start = Instant::now();
        let (resigned, won) = tokio::join!(leadership.resign(), self.next());
        resigned.expect("it resigns");
        let calls = self.calls() - before;
        self.leads = Some((won.who, won.leadership));
        HandOver {
            was,
            took: won.at - start,
            calls,
        }
    }

    /// Joins again, as the last one.
    pub(crate) fn join(&mut self, who: usize) {
        self.contend(who);
    }

    fn calls(&self) -> usize {
        self.spies.iter().map(|spy| spy.count()).sum()
    }
}

/// One change of leaders.
pub(crate) struct HandOver {
    /// Who led before.
    pub(crate) was: usize,
    pub(crate) took: Duration,
    /// Calls to the coordinators of all candidates meanwhile.
    pub(crate) calls: usize,
}
