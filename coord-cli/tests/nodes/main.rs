//! Real `coord node` processes on real stores: started at once, killed, restarted, and without their store.

mod company;
mod middleman;
mod pages;
mod scenes;
mod secret;

use company::Store;

macro_rules! on_both {
    ($($scene:ident),* $(,)?) => {
        mod etcd {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scene() {
                crate::scenes::$scene(crate::Store::etcd().await).await;
            })*
        }
        mod zookeeper {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scene() {
                crate::scenes::$scene(crate::Store::zookeeper().await).await;
            })*
        }
    };
}

on_both![
    ten_nodes_started_at_once_are_one_cluster_which_survives_kill_9_of_its_leader_and_a_rolling_restart,
    all_killed_and_started_again_are_one_cluster_again,
    a_store_killed_for_longer_than_the_ttl_harms_no_cluster,
];
