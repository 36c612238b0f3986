//! Each fault of the wire: calls end by their deadline, and everything works again with the same client.

use std::time::{Duration, Instant};

use coord_api::{Class, Coordinator, CoordinatorExt, Expect, Target, WatchEvent};
use coord_harness::{Direction, Flow, Proxy, eventually};
use futures::future::join_all;

use crate::support::{LIMIT, SOON, behind_a_proxy, client, key, nodes, proxies};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn black_hole() {
    let (_etcd, proxy, mut work) = behind_a_proxy().await;
    proxy.black_hole();
    work.every_call_fails_in_time().await;
    proxy.pass();
    work.works_again().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_is_refused_although_the_store_cannot_be_reached() {
    // Takes connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = client(vec![format!("http://{}", silent.local_addr().unwrap())], LIMIT);
    let started = Instant::now();
    coord_conformance::bad_input_is_refused_unsent(&*client).await;
    assert!(started.elapsed() < LIMIT * 2, "only the close may wait for the store");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_and_reset() {
    let (_etcd, proxy, mut work) = behind_a_proxy().await;
    proxy.cut();
    work.every_call_fails_in_time().await;
    proxy.pass();
    work.works_again().await;
    proxy.reset();
    work.works_again().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_held_and_released() {
    let (_etcd, proxy, mut work) = behind_a_proxy().await;
    proxy.hold_requests();
    work.every_call_fails_in_time().await;
    proxy.release();
    proxy.pass();
    work.works_again().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_lost() {
    let (_etcd, proxy, mut work) = behind_a_proxy().await;
    proxy.drop_answers();
    work.every_call_fails_in_time().await;
    let error = work.client.create_persistent(&key("/lost"), "x").await.unwrap_err();
    assert!(error.is_unknown() || error.class() == Class::NotSent, "{error:?}");
    proxy.pass();
    work.works_again().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_answer_was_lost_is_unknown_though_later_copies_were_not_sent() {
    let etcd = nodes(1).await;
    let proxy = Proxy::start(etcd.node(0).client_addr()).await;
    let (cut_off, direct) = (
        client(vec![format!("http://{}", proxy.addr())], SOON),
        client(etcd.endpoints(), SOON),
    );
    let key = key("/lost");
    let made = cut_off.create_persistent(&key, "before").await.unwrap();
    proxy.drop_answers();
    let update = cut_off.update(&key, "after".into(), made.version.into());
    let fault = async {
        eventually(SOON, "the first copy has happened", async || {
            match direct.get_latest(&key).await.map_err(|error| error.to_string())? {
                Some(entry) if entry.value == "after" => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        // As long as this lasts, copies find nobody who takes the connection; the first afterwards finds its own doing.
        proxy.cut();
        tokio::time::sleep(Duration::from_millis(300)).await;
        proxy.pass();
    };
    let (outcome, ()) = tokio::join!(update, fault);
    let error = outcome.unwrap_err();
    assert!(error.is_unknown(), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_held_and_released() {
    let (_etcd, proxy, mut work) = behind_a_proxy().await;
    proxy.set(Direction::ToClient, Flow::Hold);
    work.every_call_fails_in_time().await;
    proxy.pass();
    work.works_again().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn close_ends_by_its_deadline_though_others_wait_longer() {
    let etcd = nodes(1).await;
    let proxy = Proxy::start(etcd.node(0).client_addr()).await;
    let client = client(vec![format!("http://{}", proxy.addr())], SOON);
    client.grant(Duration::from_secs(60)).await.unwrap();
    proxy.black_hole();
    // The first create asks for what all creates share, and waits for it.
    let first = key("/first");
    let mut create = std::pin::pin!(client.create_persistent(&first, "x"));
    let early = client.env().now() + Duration::from_millis(100);
    assert!(client.env().timeout_at(early, create.as_mut()).await.is_none());
    let started = Instant::now();
    let error = client.within(Duration::from_millis(500)).close().await.unwrap_err();
    assert!(started.elapsed() < SOON / 4, "{:?}", started.elapsed());
    assert!(error.is_unknown(), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delayed_and_trickled() {
    let (_etcd, proxy, mut work) = behind_a_proxy().await;
    proxy.delay(Duration::from_millis(100));
    work.works_again().await;
    proxy.set_both(Flow::Trickle {
        bytes: 64,
        every: Duration::from_millis(1),
    });
    work.works_again().await;
    proxy.pass();
    work.works_again().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_cut_off_during_a_compaction_resyncs() {
    let (etcd, proxy, mut work) = behind_a_proxy().await;
    let other = client(etcd.endpoints(), Duration::from_secs(5));
    let gone = other.create_persistent(&key("/work/gone"), "x").await.unwrap();
    let mut watch = work.client.watch(&Target::Children(key("/work"))).await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::State(_)))));
    proxy.cut();
    other.delete(&gone.key, gone.version.into()).await.unwrap();
    let revision = other.create_persistent(&key("/work/late"), "x").await.unwrap().created;
    etcd.etcdctl(&["compact", &revision.to_string()]).await;
    proxy.pass();
    let resync = tokio::time::timeout(SOON, watch.next())
        .await
        .expect("it heals")
        .unwrap()
        .unwrap();
    let WatchEvent::Resync(entries) = resync else {
        panic!("{resync:?}")
    };
    let names: Vec<_> = entries.iter().map(|entry| entry.key.name()).collect();
    assert_eq!(names, ["late", "me", "state"]);
    work.works_again().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_on_the_watch_stream_is_noticed_within_two_seconds() {
    let etcd = nodes(1).await;
    let ways = [
        Proxy::start(etcd.node(0).client_addr()).await,
        Proxy::start(etcd.node(0).client_addr()).await,
    ];
    let endpoints = ways.iter().map(|way| format!("http://{}", way.addr())).collect();
    let client = client(endpoints, Duration::from_secs(5));
    let writer = crate::support::client(etcd.endpoints(), Duration::from_secs(5));
    let entry = writer.create_persistent(&key("/k"), "0").await.unwrap();
    let mut watch = client.watch(&Target::Key(key("/k"))).await.unwrap();
    watch.next().await.unwrap().unwrap();
    // Only one way has been used, whichever was preferred.
    let used = ways.iter().find(|way| way.stats().live > 0).expect("a way was used");
    used.black_hole();
    let started = Instant::now();
    writer.update(&entry.key, "1".into(), Expect::Any).await.unwrap();
    let event = tokio::time::timeout(SOON, watch.next())
        .await
        .expect("it is noticed")
        .unwrap()
        .unwrap();
    let took = started.elapsed();
    assert!(
        matches!(&event, WatchEvent::Put(_) | WatchEvent::Resync(_)),
        "{event:?}"
    );
    assert!(
        took < Duration::from_millis(3500),
        "noticed and healed only after {took:?}"
    );
}

/// The stream lives, but the server gets no further than its buffers, and compacts what some watches have yet to be told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_that_a_compaction_overtakes_on_a_living_stream_go_on() {
    const WATCHES: usize = 3000;
    let etcd = nodes(1).await;
    let (ways, endpoints) = proxies(&etcd).await;
    let reader = client(endpoints, SOON);
    let writer = client(etcd.endpoints(), SOON);
    let entry = writer.create_persistent(&key("/k"), "0").await.unwrap();
    let target = Target::Key(entry.key.clone());
    let watches = join_all((0..WATCHES).map(|_| reader.watch(&target))).await;
    ways[0].set(Direction::ToClient, Flow::Hold);
    for _ in 0..3 {
        let value = vec![b'x'; 8192];
        writer.update(&entry.key, value.into(), Expect::Any).await.unwrap();
    }
    let revision = writer.create_persistent(&key("/late"), "x").await.unwrap().created;
    etcd.etcdctl(&["compact", &revision.to_string()]).await;
    ways[0].pass();
    writer.update(&entry.key, "end".into(), Expect::Any).await.unwrap();
    let told = join_all(watches.into_iter().map(async |watch| {
        let mut watch = watch.unwrap();
        loop {
            let entries = match watch.next().await.unwrap().unwrap() {
                WatchEvent::State(entries) | WatchEvent::Resync(entries) => entries,
                WatchEvent::Put(entry) => vec![entry],
                WatchEvent::Delete { .. } => vec![],
            };
            if entries.iter().any(|entry| entry.value == "end") {
                return;
            }
        }
    }));
    tokio::time::timeout(SOON, told)
        .await
        .expect("every watch is told the end");
}
