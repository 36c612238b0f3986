//! What must be true in the end.

use coord_bootstrap::State;
use coord_cluster::{ClusterId, NodeId, Phase};

use crate::witness::cluster_in;
use crate::world::World;

impl World {
    /// The nodes that run and have not left.
    pub(crate) fn running(&self) -> Vec<usize> {
        let has_left = |node: &usize| {
            let bootstrap = self.nodes[*node].bootstrap.as_ref();
            bootstrap.is_none_or(|bootstrap| bootstrap.state().is_stopped())
        };
        (0..self.nodes.len()).filter(|node| !has_left(node)).collect()
    }

    /// All running nodes are one converged cluster, the one on record; the seeds are the truth; the first of them, and
    /// nobody else, holds the leader's entry. Otherwise what is not so.
    pub(crate) async fn whole(&self) -> Result<(), String> {
        let running = self.running();
        let prefix = &self.config.prefix;
        let read = async |name: &str| self.oracle.get(&prefix.child(name).unwrap()).await;
        let record = read("cluster")
            .await
            .unwrap()
            .and_then(|entry| cluster_in(&entry.value));
        let seeds = self.oracle.children(&prefix.child("seeds").unwrap()).await.unwrap();
        let leader = read("leader").await.unwrap();
        if running.is_empty() {
            let left = record.is_some() || !seeds.is_empty() || leader.is_some();
            return if left {
                Err("everybody has left, and something is left".into())
            } else {
                Ok(())
            };
        }
        let members: Vec<(NodeId, ClusterId)> = self.net.with(|sim| {
            running
                .iter()
                .map(|node| (sim.core(*node).self_node().clone(), sim.core(*node).cluster()))
                .collect()
        });
        let Some(record) = record else {
            return Err("there is no record".into());
        };
        for (node, (id, cluster)) in running.iter().zip(&members) {
            if cluster.to_string() != record {
                return Err(format!("{id} is in {cluster}, on record is {record}"));
            }
            let state = self.nodes[*node].bootstrap.as_ref().map(|bootstrap| bootstrap.state());
            if !matches!(state, Some(State::Member { .. })) {
                return Err(format!("{id} is {state:?}"));
            }
        }
        let left = (0..self.nodes.len()).filter(|node| !running.contains(node));
        let left: Vec<usize> = left.collect();
        let converged = self.net.with(|sim| {
            // Who has left runs no more.
            let all_out = left
                .iter()
                .all(|node| !sim.is_alive(*node) || sim.core(*node).phase() == Phase::Stopped);
            all_out && sim.converged()
        });
        if !converged {
            return Err("not one converged view".into());
        }
        let advertised: Vec<String> = seeds
            .iter()
            .map(|seed| String::from_utf8_lossy(&seed.value).into())
            .collect();
        let is_true = |seed: &String| {
            members.iter().any(|(id, _)| {
                seed.contains(&format!("\"{}\"", id.address)) && seed.contains(&format!(":{},", id.incarnation))
            }) && seed.contains(&record)
        };
        let expected = running.len().min(self.config.max_seeds);
        if advertised.len() != expected || !advertised.iter().all(is_true) {
            return Err(format!("of {members:?}, {advertised:?} are advertised"));
        }
        let first = members.iter().map(|(id, _)| id).min().map(ToString::to_string);
        let holder = leader.map(|entry| String::from_utf8_lossy(&entry.value).into_owned());
        let Some((first, holder)) = first.zip(holder) else {
            return Err("nobody holds the leader's entry".into());
        };
        if !holder.contains(&format!("\"{first}\"")) {
            return Err(format!("{holder} holds the leader's entry, not {first}"));
        }
        Ok(())
    }

    /// For whoever looks at a failure.
    pub(crate) async fn describe(&self) -> String {
        let mut text = String::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let state = node.bootstrap.as_ref().map(|bootstrap| bootstrap.state());
            let view = self.net.with(|sim| sim.core(number).view());
            let members: Vec<String> = view
                .members
                .iter()
                .map(|member| {
                    format!(
                        "{}={}{}",
                        member.node,
                        member.state,
                        if member.reachable { "" } else { "!" }
                    )
                })
                .collect();
            text += &format!(
                "{} {state:?} {:?} {} {members:?}\n",
                view.self_node, view.phase, view.cluster
            );
        }
        for entry in [self.config.prefix.clone(), self.config.prefix.child("seeds").unwrap()] {
            for child in self.oracle.children(&entry).await.unwrap() {
                text += &format!("{} {}\n", child.key, String::from_utf8_lossy(&child.value));
            }
        }
        text
    }
}
