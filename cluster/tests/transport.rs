//! Real sockets on loopback: joining, leaving, coming back, and what strangers can (not) do.

mod common;

use std::time::Duration;

use coord_cluster::{
    Address, ClusterNode, Event, JoinError, MemberState, Phase, Refusal, Secret, Settings, Start, Stats,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use common::{DEADLINE, eventually, quick_settings};

async fn start(start: Start) -> ClusterNode {
    let mut settings = quick_settings(start);
    settings.secret = Some(Secret::new("for tests"));
    ClusterNode::start(settings).await.unwrap()
}

fn address(node: &ClusterNode) -> Address {
    node.self_node().address
}

async fn cluster_of(size: usize) -> Vec<ClusterNode> {
    let mut nodes = vec![start(Start::Form).await];
    let contact = address(&nodes[0]);
    for _ in 1..size {
        nodes.push(start(Start::Join(vec![contact.clone()])).await);
    }
    for node in &nodes {
        all_up(node, size).await;
    }
    nodes
}

async fn all_up(node: &ClusterNode, size: usize) {
    let ready = node
        .watch()
        .wait_for(|view| view.converged && view.up().count() == size)
        .await
        .map(|_| ());
    ready.unwrap();
}

async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, what)
        .await
        .expect("done before the deadline")
}

#[tokio::test]
async fn nodes_form_one_cluster_with_one_leader() {
    let nodes = in_time(cluster_of(4)).await;
    let leader = nodes[0].view().leader;
    let cluster = nodes[0].view().cluster;
    assert!(leader.is_some());
    for node in &nodes {
        let view = node.view();
        assert_eq!((&view.leader, view.cluster, view.members.len()), (&leader, cluster, 4));
        assert_eq!(view.deputies.len(), 3);
    }
}

#[tokio::test]
async fn contact_points_are_tried_in_turn_each_with_a_deadline() {
    let founder = start(Start::Form).await;
    let deaf = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let waiting = start(Start::Wait).await;
    let newcomer = start(Start::Wait).await;
    let contacts = vec![
        closed.into(),
        deaf.local_addr().unwrap().into(),
        address(&newcomer),
        address(&waiting),
        address(&founder),
    ];
    let cluster = newcomer.join(contacts, DEADLINE).await.unwrap();
    assert_eq!(cluster, founder.view().cluster);
    in_time(all_up(&founder, 2)).await;
}

#[tokio::test]
async fn a_join_fails_when_nobody_lets_the_node_in_and_can_be_tried_again() {
    let waiting = start(Start::Wait).await;
    let newcomer = start(Start::Wait).await;
    let refused = newcomer.join(vec![address(&waiting)], DEADLINE).await;
    assert_eq!(refused, Err(JoinError::Refused(Refusal::NotAMember)));
    let deaf = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let late = newcomer
        .join(vec![deaf.local_addr().unwrap().into()], Duration::from_millis(50))
        .await;
    assert_eq!(late, Err(JoinError::TimedOut));
    in_time(newcomer.watch().wait_for(|view| view.phase == Phase::Idle))
        .await
        .unwrap();
    waiting.form(None).await.unwrap();
    assert!(newcomer.join(vec![address(&waiting)], DEADLINE).await.is_ok());
}

#[tokio::test]
async fn a_leaving_node_is_removed_and_stops() {
    let mut nodes = in_time(cluster_of(3)).await;
    let leaver = nodes.remove(0);
    let mut events = nodes[0].events();
    assert!(
        in_time(leaver.leave(DEADLINE)).await.unwrap().graceful,
        "everybody agreed"
    );
    assert_eq!(leaver.view().phase, Phase::Stopped);
    for node in &nodes {
        in_time(all_up(node, 2)).await;
    }
    let mut removed = false;
    while let Ok(event) = events.try_recv() {
        removed |= matches!(
            event,
            Event::Member {
                to: MemberState::Removed,
                ..
            }
        );
    }
    assert!(removed, "the others were told");
}

#[tokio::test]
async fn the_last_node_leaves_at_once() {
    let node = start(Start::Form).await;
    let departed = in_time(node.leave(DEADLINE)).await.unwrap();
    assert!(departed.graceful && departed.last);
    assert!(
        in_time(node.leave(DEADLINE)).await.unwrap().graceful,
        "asking again gives the same answer"
    );
}

#[tokio::test]
async fn a_downed_node_that_is_alive_comes_back_as_a_new_incarnation() {
    let nodes = in_time(cluster_of(3)).await;
    let victim = nodes[2].self_node();
    nodes[0].down(victim.clone()).await.unwrap();
    in_time(
        nodes[2]
            .watch()
            .wait_for(|view| view.self_node.incarnation > victim.incarnation),
    )
    .await
    .unwrap();
    for node in &nodes {
        in_time(all_up(node, 3)).await;
        assert!(node.view().members.iter().all(|member| member.node != victim));
    }
}

#[tokio::test]
async fn a_crashed_node_becomes_unreachable_and_its_restart_replaces_it() {
    let mut nodes = in_time(cluster_of(3)).await;
    let dead = nodes.pop().unwrap();
    let (local, old) = (dead.local_addr(), dead.self_node());
    drop(dead);
    let gone = |view: &coord_cluster::ClusterView| view.members.iter().any(|m| m.node == old && !m.reachable);
    in_time(nodes[0].watch().wait_for(gone)).await.unwrap();
    // Dropping a node ends its listener: the address is free again.
    let listener = in_time(eventually(|| std::net::TcpListener::bind(local).ok())).await;
    listener.set_nonblocking(true).unwrap();
    let mut settings = quick_settings(Start::Join(vec![address(&nodes[0])]));
    settings.secret = Some(Secret::new("for tests"));
    nodes.push(ClusterNode::start_on(TcpListener::from_std(listener).unwrap(), settings).unwrap());
    for node in &nodes {
        in_time(all_up(node, 3)).await;
    }
}

#[tokio::test]
async fn a_whole_cluster_joins_another_and_adopts_its_id() {
    let (first, second) = (in_time(cluster_of(2)).await, in_time(cluster_of(3)).await);
    let (old, new) = (second[0].view().cluster, first[0].view().cluster);
    assert_ne!(old, new);
    let joined = in_time(second[1].join(vec![address(&first[1])], DEADLINE)).await;
    assert_eq!(joined, Ok(new));
    for node in first.iter().chain(&second) {
        in_time(all_up(node, 5)).await;
        assert_eq!(node.view().cluster, new);
    }
    let again = in_time(second[0].join(vec![address(&first[0])], DEADLINE)).await;
    assert_eq!(again, Ok(new), "already together");
}

#[tokio::test]
async fn a_node_with_another_secret_stays_outside() {
    let founder = start(Start::Form).await;
    let mut settings = quick_settings(Start::Wait);
    settings.secret = Some(Secret::new("another"));
    let stranger = ClusterNode::start(settings).await.unwrap();
    assert_eq!(
        stranger.join(vec![address(&founder)], DEADLINE).await,
        Err(JoinError::NobodyLetIn)
    );
    in_time(eventually(|| (founder.stats().unauthentic > 0).then_some(()))).await;
    assert_eq!(founder.view().members.len(), 1);
}

#[tokio::test]
async fn nonsense_is_counted_and_harms_nobody() {
    let node = start(Start::Form).await;
    for bytes in [
        &[0xff; 64][..],
        &[0, 0, 0, 5, 1, 2, 3, 4, 5],
        &[0, 0, 0, 9, 1],
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(node.local_addr()).await.unwrap();
        let mut greeting = [0; 20];
        stream.read_exact(&mut greeting).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        // The node hangs up: an end or a reset, but no answer.
        let _ = in_time(stream.read_to_end(&mut rest)).await;
        assert!(rest.is_empty());
    }
    let counted = |stats: Stats| (stats.malformed >= 2 && stats.oversized >= 2).then_some(());
    in_time(eventually(|| counted(node.stats()))).await;
    assert!(node.view().converged);
    let friend = start(Start::Join(vec![address(&node)])).await;
    in_time(all_up(&friend, 2)).await;
}

#[tokio::test]
async fn listening_everywhere_needs_an_address_to_advertise() {
    let settings = Settings::new("0.0.0.0:0".parse().unwrap());
    let error = ClusterNode::start(settings).await.unwrap_err();
    assert!(error.to_string().contains("advertise"));
}
