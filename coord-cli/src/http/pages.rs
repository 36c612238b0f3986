use std::sync::Arc;
use std::time::Duration;

use coord_bootstrap::{Bootstrap, State};
use coord_cluster::{Address, ClusterNode, ClusterView, MemberState};
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::Control;
use super::control::Verdict;
use super::proof::{Asked, Proof};
use crate::prometheus::Prometheus;

/// What a node shows and takes. The paths and shapes of the reading pages are those that Akka Management has made customary.
pub(crate) struct Pages {
    pub(crate) node: Arc<ClusterNode>,
    pub(crate) bootstrap: Arc<Bootstrap>,
    pub(crate) control: Control,
    pub(crate) prometheus: Prometheus,
    pub(crate) max_seeds: usize,
    /// Told when somebody asks this node to leave.
    pub(crate) leave: Arc<Notify>,
}

/// An answer.
pub(crate) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: String,
    pub(super) content: &'static str,
    /// That this node knows the secret.
    pub(super) proof: Option<String>,
}

#[derive(Deserialize)]
struct Who {
    node: String,
}

/// How long telling another node to go may take.
const WITHIN: Duration = Duration::from_secs(5);

// === impl Pages ===

impl Pages {
    pub(super) async fn answer(&self, asked: Asked<'_>, proof: Option<&str>) -> Answer {
        let proof = proof.and_then(Proof::parse);
        let refused = self.refusal(asked, proof.as_ref());
        let may_be_known = matches!(refused, None | Some(Verdict::TooMany));
        let mut answer = match refused {
            Some(verdict) => refuse(verdict),
            None => self.page(asked).await,
        };
        // Nothing is proven to who has proven nothing: it could be handed on.
        if let Some(proof) = proof.filter(|_| may_be_known && is_guarded(asked)) {
            let status = answer.status.as_u16();
            answer.proof = self.control.answer(&proof, status, answer.body.as_bytes());
        }
        answer
    }

    /// Why this is not answered: orders take a proof; where there is a secret, so does whatever tells who is in the cluster.
    fn refusal(&self, asked: Asked<'_>, proof: Option<&Proof>) -> Option<Verdict> {
        if !is_guarded(asked) {
            return None;
        }
        let verdict = match proof {
            Some(proof) => self.control.judge(proof, asked),
            None if asked.method == "GET" && !self.control.is_guarded() => Verdict::Right,
            None => Verdict::Wrong,
        };
        (verdict != Verdict::Right).then_some(verdict)
    }

    async fn page(&self, asked: Asked<'_>) -> Answer {
        match (asked.method, asked.path) {
            ("GET", "/alive") => ok(&json!({ "alive": true })),
            ("GET", "/ready") => self.ready(),
            ("GET", "/cluster/members") => ok(&members(&self.node.view())),
            ("GET", "/bootstrap/seed-nodes") => ok(&self.seed_nodes()),
            ("GET", "/metrics") => Answer {
                status: StatusCode::OK,
                body: self.prometheus.page(),
                content: "text/plain; version=0.0.4",
                proof: None,
            },
            ("GET", "/control/challenge") => ok(&json!({ "challenge": self.control.challenge() })),
            ("POST", "/cluster/leave") => self.leave(asked.body).await,
            ("POST", "/cluster/down") => self.down(asked.body).await,
            ("GET" | "POST", _) => error(StatusCode::NOT_FOUND, "there is no such page"),
            _ => error(StatusCode::METHOD_NOT_ALLOWED, "only GET and POST"),
        }
    }

    fn ready(&self) -> Answer {
        let view = self.node.view();
        let reason = match self.bootstrap.state() {
            State::Member { .. } => match view.self_member().map(|member| member.state) {
                Some(MemberState::Up) => return ok(&json!({ "ready": true })),
                Some(state) => format!("this node is {state}"),
                None => "this node is no member".to_owned(),
            },
            state => state.to_string(),
        };
        let body = json!({ "ready": false, "reason": reason }).to_string();
        Answer {
            status: StatusCode::SERVICE_UNAVAILABLE,
            body,
            content: JSON,
            proof: None,
        }
    }

    /// Members that newcomers can ask, as this node sees them; the store is not needed for it.
    fn seed_nodes(&self) -> Value {
        let view = self.node.view();
        let seed = |node: &coord_cluster::NodeId| json!({ "node": node.address.to_string(), "status": "Up" });
        let seeds: Vec<Value> = view
            .up()
            .take(self.max_seeds)
            .map(|member| seed(&member.node))
            .collect();
        json!({ "selfNode": view.self_node.address.to_string(), "seedNodes": seeds })
    }

    async fn leave(&self, body: &[u8]) -> Answer {
        let me = self.node.self_node();
        let who = match named(body) {
            Ok(None) => me.address.clone(),
            Ok(Some(who)) => who,
            Err(answer) => return answer,
        };
        if who == me.address {
            self.leave.notify_one();
            return accepted(&who, "leaves");
        }
        match self.member(&who) {
            Some(node) => self.done(self.node.ask_to_leave(node), &who, "leaves").await,
            None => no_member(&who),
        }
    }

    async fn down(&self, body: &[u8]) -> Answer {
        let who = match named(body) {
            Ok(Some(who)) => who,
            Ok(None) => return error(StatusCode::BAD_REQUEST, "say which node"),
            Err(answer) => return answer,
        };
        match self.member(&who) {
            Some(node) => self.done(self.node.down(node), &who, "is put down").await,
            None => no_member(&who),
        }
    }

    async fn done<E>(&self, act: impl Future<Output = Result<(), E>>, who: &Address, what: &str) -> Answer {
        match tokio::time::timeout(WITHIN, act).await {
            Ok(Ok(())) => accepted(who, what),
            _ => error(StatusCode::SERVICE_UNAVAILABLE, "this node has stopped"),
        }
    }

    /// The latest life of an address.
    fn member(&self, address: &Address) -> Option<coord_cluster::NodeId> {
        let view = self.node.view();
        let mut lives = view.members.iter().filter(|member| member.node.address == *address);
        lives.next_back().map(|member| member.node.clone())
    }
}

/// `/cluster/members`.
pub(crate) fn members(view: &ClusterView) -> Value {
    let node = |node: &coord_cluster::NodeId| node.address.to_string();
    let row = |member: &coord_cluster::MemberView| {
        json!({
            "node": node(&member.node),
            "nodeUid": member.node.incarnation.0.to_string(),
            "status": status(member.state),
        })
    };
    let all: Vec<Value> = view.members.iter().map(row).collect();
    let unreachable = view.members.iter().filter(|member| !member.reachable);
    let unreachable: Vec<Value> = unreachable
        .map(|member| json!({ "node": node(&member.node) }))
        .collect();
    json!({
        "selfNode": node(&view.self_node),
        "cluster": view.cluster.to_string(),
        "leader": view.leader.as_ref().map(node),
        "members": all,
        "unreachable": unreachable,
    })
}

/// The word for a state, as Akka writes it.
pub(crate) fn status(state: MemberState) -> &'static str {
    match state {
        MemberState::Joining => "Joining",
        MemberState::Up => "Up",
        MemberState::Leaving => "Leaving",
        MemberState::Exiting => "Exiting",
        MemberState::Down => "Down",
        MemberState::Removed => "Removed",
    }
}

/// What tells about others than this node, or changes something.
fn is_guarded(asked: Asked<'_>) -> bool {
    let is_order = asked.method == "POST" && matches!(asked.path, "/cluster/leave" | "/cluster/down");
    is_order || asked.method == "GET" && matches!(asked.path, "/cluster/members" | "/bootstrap/seed-nodes")
}

fn refuse(verdict: Verdict) -> Answer {
    match verdict {
        Verdict::TooMany => error(StatusCode::TOO_MANY_REQUESTS, "too many questions; ask again in 30 s"),
        Verdict::NoSecretHere => error(
            StatusCode::FORBIDDEN,
            "this node has no secret; if it is the one that is meant, ask without --secret-file",
        ),
        _ => error(
            StatusCode::FORBIDDEN,
            "this takes the secret of the cluster (coord members, leave and down: --secret-file)",
        ),
    }
}

const JSON: &str = "application/json";

fn named(body: &[u8]) -> Result<Option<Address>, Answer> {
    if body.is_empty() {
        return Ok(None);
    }
    let bad = || error(StatusCode::BAD_REQUEST, "the body is not {\"node\":\"host:port\"}");
    let who: Who = serde_json::from_slice(body).map_err(|_| bad())?;
    who.node.parse().map(Some).map_err(|_| bad())
}

fn ok(body: &Value) -> Answer {
    Answer {
        status: StatusCode::OK,
        body: body.to_string(),
        content: JSON,
        proof: None,
    }
}

fn accepted(who: &Address, what: &str) -> Answer {
    Answer {
        status: StatusCode::ACCEPTED,
        body: json!({ "message": format!("{who} {what}") }).to_string(),
        content: JSON,
        proof: None,
    }
}

fn no_member(who: &Address) -> Answer {
    error(StatusCode::NOT_FOUND, &format!("{who} is no member of this cluster"))
}

pub(super) fn error(status: StatusCode, message: &str) -> Answer {
    Answer {
        status,
        body: json!({ "message": message }).to_string(),
        content: JSON,
        proof: None,
    }
}
