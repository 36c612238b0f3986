use std::time::Duration;

use rustix::process::Signal;

use crate::company::{Company, Store};

pub(crate) async fn ten_nodes_started_at_once_are_one_cluster_which_survives_kill_9_of_its_leader_and_a_rolling_restart(
    store: Store,
) {
    let mut company = Company::new(store);
    company.start(10).await;
    let cluster = company.one_cluster().await;
    let formed: usize = company.nodes.iter().map(|node| node.told("formed")).sum();
    assert_eq!(formed, 1, "one winner");

    let manager = company.manager().await;
    company.kill(manager).await;
    assert_eq!(
        company.one_cluster().await,
        cluster,
        "the same cluster, without the dead one"
    );
    company.manager().await;

    // All of them, one after the other: gracefully out, and back at the same address.
    for _ in 0..company.nodes.len() {
        let mut old = company.nodes.remove(0);
        old.signal(Signal::TERM);
        assert!(old.ended().await, "it left");
        let mut new = company.spawn(&old.address);
        new.introduce().await;
        company.nodes.push(new);
        assert_eq!(company.one_cluster().await, cluster);
    }
}

pub(crate) async fn all_killed_and_started_again_are_one_cluster_again(store: Store) {
    let mut company = Company::new(store);
    company.start(4).await;
    let before = company.one_cluster().await;
    let mut dead = vec![];
    while !company.nodes.is_empty() {
        dead.push(company.kill(0).await.address);
    }
    // Whom the seeds name are dead, also those that come back at the same addresses.
    let mut fresh: Vec<_> = dead.iter().map(|address| company.spawn(address)).collect();
    for node in &mut fresh {
        node.introduce().await;
    }
    company.nodes = fresh;
    let after = company.one_cluster().await;
    assert_ne!(before, after);
    let formed: usize = company.nodes.iter().map(|node| node.told("formed")).sum();
    assert_eq!(formed, 1, "one winner of the second generation");
}

pub(crate) async fn a_store_killed_for_longer_than_the_ttl_harms_no_cluster(store: Store) {
    let mut company = Company::new(store);
    company.start(3).await;
    let cluster = company.one_cluster().await;
    company.store.kill();
    let end = std::time::Instant::now() + Duration::from_secs(6);
    while std::time::Instant::now() < end {
        assert_eq!(company.one_cluster().await, cluster);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    company.store.start().await;
    // Advertised again: somebody new finds it.
    company.start(1).await;
    assert_eq!(company.one_cluster().await, cluster);
    company.manager().await;
}
