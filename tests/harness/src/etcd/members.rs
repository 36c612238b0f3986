//! What an operator does to the members.

use super::EtcdCluster;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// etcd changes its members only after all have been in touch for some seconds.
const STEADY: Duration = Duration::from_secs(30);

impl EtcdCluster {
    /// Nothing passes between member `i` and the others any more, until [`rejoin`](Self::rejoin). Clients reach all.
    ///
    /// # Panics
    /// Unless the cluster was started with `partitions`.
    pub fn isolate(&self, i: usize) {
        self.gates.as_ref().expect("started with `partitions`").isolate(i);
    }

    /// Everything passes between all members again.
    pub fn rejoin(&self) {
        if let Some(gates) = &self.gates {
            gates.rejoin();
        }
    }

    /// Starts member `i` again, killing it first if it runs: as [`Node::restart`](crate::Node::restart), which cannot be
    /// used with `partitions`.
    pub fn restart(&self, i: usize) {
        self.nodes[i].restart();
        if let Some(gates) = &self.gates {
            gates.belongs_to(i, self.nodes[i].pid());
        }
    }

    /// Hands leadership to member `i`.
    ///
    /// # Errors
    /// What `etcdctl` says, or that there is no leader.
    pub async fn move_leader(&self, i: usize) -> Result<(), String> {
        let leader = self.leader().await.ok_or("there is no leader")?;
        let id = self.member(i).await?;
        self.try_etcdctl_at(leader, &["move-leader", &id]).await.map(drop)
    }

    /// Removes member `i` from the cluster, wipes what it has stored, and adds it anew under the same name and address.
    /// The others must be serving.
    ///
    /// # Errors
    /// What `etcdctl` says.
    ///
    /// # Panics
    /// When the member's data cannot be removed.
    pub async fn replace(&self, i: usize) -> Result<(), String> {
        let (name, id) = (format!("m{i}"), self.member(i).await?);
        let url = self.peer_url(&name).await?;
        self.change(&["member", "remove", &id], |members| !members.contains(&id))
            .await?;
        self.nodes[i].kill();
        std::fs::remove_dir_all(self.dir().join(&name)).expect("the member's data is removed");
        let peer_urls = format!("--peer-urls={url}");
        self.change(&["member", "add", &name, &peer_urls], |members| members.contains(&url))
            .await?;
        self.nodes[i].add_args(&["--initial-cluster-state", "existing"]);
        self.restart(i);
        Ok(())
    }

    /// Compacts the history up to now, and gives the space back.
    ///
    /// # Errors
    /// What `etcdctl` says.
    pub async fn compact(&self) -> Result<(), String> {
        let status = self.try_etcdctl(&["get", "/", "-w", "json"]).await?;
        let revision = status
            .split_once(r#""revision":"#)
            .and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next());
        let revision = revision.ok_or_else(|| format!("no revision in {status}"))?;
        self.try_etcdctl(&["compact", revision]).await?;
        for i in (0..self.nodes.len()).filter(|i| self.nodes[*i].is_active()) {
            self.try_etcdctl_at(i, &["defrag"]).await?;
        }
        Ok(())
    }

    /// A change of the members, asked for until the list of them shows it: etcd may not be steady enough for it yet, and
    /// an answer may be lost.
    async fn change(&self, args: &[&str], shows: impl Fn(&str) -> bool) -> Result<(), String> {
        let end = Instant::now() + STEADY;
        loop {
            let said = self.try_etcdctl(args).await;
            match self.try_etcdctl(&["member", "list"]).await {
                Ok(members) if shows(&members) => return Ok(()),
                members if Instant::now() >= end => {
                    return Err(format!("{args:?}: {said:?}; the members are {members:?}"));
                }
                _ => sleep(Duration::from_millis(200)).await,
            }
        }
    }

    async fn member(&self, i: usize) -> Result<String, String> {
        let name = format!("m{i}");
        self.field(&name, 0).await
    }

    async fn peer_url(&self, name: &str) -> Result<String, String> {
        self.field(name, 3).await
    }

    /// Of `ID, status, name, peer URLs, client URLs, learner`.
    async fn field(&self, name: &str, field: usize) -> Result<String, String> {
        let members = self.try_etcdctl(&["member", "list"]).await?;
        let line = members.lines().map(|line| line.split(", ").collect::<Vec<_>>());
        line.filter(|fields| fields.get(2) == Some(&name))
            .find_map(|fields| fields.get(field).map(|field| (*field).to_owned()))
            .ok_or_else(|| format!("no member {name} in {members}"))
    }
}
