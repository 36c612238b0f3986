use async_trait::async_trait;
use coord_cluster::{Address, ClusterId, ClusterView, Departed, NodeId};
use futures::stream::BoxStream;
use std::time::Duration;

/// What bootstrap needs of a membership protocol. [`ClusterNode`](coord_cluster::ClusterNode) implements it; whoever uses
/// another library implements it for that.
///
/// The node must act on its own in two ways only: follow its cluster, and tell. It joins, forms and comes back nowhere
/// unless told: with `ClusterNode`, [`Config::rejoin`](coord_cluster::Config::rejoin) is off.
#[async_trait]
pub trait Cluster: Send + Sync + 'static {
    /// The cluster as this node sees it now, itself included.
    fn view(&self) -> ClusterView;

    /// An item after each change of the view; several changes may be one item.
    fn changes(&self) -> BoxStream<'static, ()>;

    /// Forms the cluster `id`, of this node alone. Does nothing in a cluster.
    async fn form(&self, id: ClusterId) -> Result<(), NodeGone>;

    /// Asks one contact to be let into the cluster `id` and no other. Dropping the future gives the attempt up; should it
    /// have succeeded all the same, the view tells.
    async fn join(&self, id: ClusterId, contact: &Address) -> Result<(), NotLetIn>;

    /// Forgets the cluster and becomes a new incarnation in none.
    async fn reset(&self) -> Result<(), NodeGone>;

    /// Gossips with whoever is at this address: if it is in the same cluster and the two do not know each other, because each
    /// side of a split has removed the other, their views become one.
    async fn meet(&self, contact: &Address) -> Result<(), NodeGone>;

    /// Puts a member down.
    async fn down(&self, node: NodeId) -> Result<(), NodeGone>;

    /// Leaves gracefully and stops, at the deadline in any case.
    async fn leave(&self, within: Duration) -> Result<Departed, NodeGone>;
}

/// Why a contact did not let this node in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotLetIn {
    /// It is a member of the cluster that was asked for, and refused.
    #[error("the cluster lives and does not let this node in")]
    ByTheCluster,
    /// It answered, and is no member of that cluster.
    #[error("the contact is not in this cluster")]
    NotThere,
    /// It did not answer.
    #[error("the contact did not answer")]
    NoAnswer,
}

/// The node has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the node has stopped")]
pub struct NodeGone;
