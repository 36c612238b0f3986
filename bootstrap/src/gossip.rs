//! [`Cluster`] for the gossip membership of `coord-cluster`.

use std::time::Duration;

use async_trait::async_trait;
use coord_cluster::{Address, ClusterId, ClusterNode, ClusterView, Departed, JoinError, NodeId, NodeStopped, Refusal};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::{Cluster, NodeGone, NotLetIn};

/// Bootstrap has its own deadline for each contact; this one only has to be later.
const LONG: Duration = Duration::from_secs(60);

#[async_trait]
impl Cluster for ClusterNode {
    fn view(&self) -> ClusterView {
        ClusterNode::view(self)
    }

    fn changes(&self) -> BoxStream<'static, ()> {
        let follow = |mut view: tokio::sync::watch::Receiver<ClusterView>| async move {
            view.changed().await.ok()?;
            Some(((), view))
        };
        stream::unfold(self.watch(), follow).boxed()
    }

    async fn form(&self, id: ClusterId) -> Result<(), NodeGone> {
        let mut view = self.watch();
        ClusterNode::form(self, Some(id)).await?;
        // The node has its own task: only when it says so, it has formed.
        let formed =
            view.wait_for(|view| view.cluster != ClusterId::NONE || view.phase == coord_cluster::Phase::Stopped);
        formed.await.map_err(|_| NodeGone).map(drop)
    }

    async fn join(&self, id: ClusterId, contact: &Address) -> Result<(), NotLetIn> {
        match self.enter(id, vec![contact.clone()], LONG).await {
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn reset(&self) -> Result<(), NodeGone> {
        let mut view = self.watch();
        let old = view.borrow_and_update().self_node.clone();
        ClusterNode::reset(self).await?;
        let reset = view.wait_for(|view| view.self_node != old || view.phase == coord_cluster::Phase::Stopped);
        reset.await.map_err(|_| NodeGone).map(drop)
    }

    async fn meet(&self, contact: &Address) -> Result<(), NodeGone> {
        Ok(ClusterNode::meet(self, contact.clone()).await?)
    }

    async fn down(&self, node: NodeId) -> Result<(), NodeGone> {
        Ok(ClusterNode::down(self, node).await?)
    }

    async fn leave(&self, within: Duration) -> Result<Departed, NodeGone> {
        Ok(ClusterNode::leave(self, within).await?)
    }
}

impl From<NodeStopped> for NodeGone {
    fn from(_: NodeStopped) -> NodeGone {
        NodeGone
    }
}

impl From<JoinError> for NotLetIn {
    fn from(error: JoinError) -> NotLetIn {
        match error {
            JoinError::Refused(refusal) => refusal.into(),
            _ => NotLetIn::NoAnswer,
        }
    }
}

impl From<Refusal> for NotLetIn {
    fn from(refusal: Refusal) -> NotLetIn {
        match refusal {
            Refusal::NotAMember | Refusal::OtherCluster(_) => NotLetIn::NotThere,
            _ => NotLetIn::ByTheCluster,
        }
    }
}
