//! `coord register` and `coord services`.

use rustix::process::Signal;

use crate::store::Store;
use crate::support::{Running, coord};

async fn play(store: Store) {
    let url = &store.url();
    let mut watch = Running::start(url, &["services", "--watch"]);
    let register = |id: &str, owner: &str, address: &str| {
        Running::start(
            url,
            &[
                "register", "web", id, address, "--meta", "zone=a", "--owner", owner, "--ttl", "2s",
            ],
        )
    };
    let mut one = register("1", "host-1", "10.0.0.1:80");
    one.event(0, "registered").await;
    let added = watch.event(0, "added").await;
    assert_eq!((&added["service"], &added["id"]), (&"web".into(), &"1".into()));
    assert_eq!(
        (&added["address"], &added["metadata"]["zone"]),
        (&"10.0.0.1:80".into(), &"a".into())
    );

    // The name is another's: it waits until that goes.
    let rival = register("1", "host-2", "10.0.0.2:80");
    let taken = rival.event(0, "taken").await;
    assert_eq!(
        (&taken["owner"], &taken["address"]),
        (&"host-1".into(), &"10.0.0.1:80".into())
    );
    one.terminate().await;
    assert_eq!(one.rows().last().unwrap()["event"], "unregistered");
    rival.event(0, "registered").await;

    // Deleted by hand: put back. Killed: gone by the ttl.
    coord(url, &["delete", "/services/web/1"]).await.ok();
    rival.row(2, "put back", |row| row["event"] == "registered").await;
    let listed = coord(url, &["--json", "services", "web"]).await.ok().rows();
    assert_eq!((listed.len(), &listed[0]["address"]), (1, &"10.0.0.2:80".into()));
    let before = watch.rows().len();
    rival.signal(Signal::KILL);
    watch.event(before, "removed").await;
    assert_eq!(coord(url, &["services"]).await.ok().stdout, "");
    watch.terminate().await;
}

#[tokio::test]
async fn instances_come_and_go_on_etcd() {
    play(Store::etcd().await).await;
}

#[tokio::test]
async fn instances_come_and_go_on_zookeeper() {
    play(Store::zookeeper().await).await;
}
