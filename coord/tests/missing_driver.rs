//! A driver that was not compiled in says so by name. With the default features there is none; `make test` runs this file
//! without any feature, too.

#[cfg(not(all(feature = "etcd", feature = "zookeeper", feature = "memory")))]
fn refused(url: &str) -> String {
    coordkit::connect(url).expect_err("there is no driver").to_string()
}

#[cfg(not(feature = "etcd"))]
#[test]
fn etcd_says_that_it_was_not_compiled_in() {
    let refused = refused("etcd://localhost");
    assert!(refused.contains("etcd driver, which was not compiled in"), "{refused}");
}

#[cfg(not(feature = "zookeeper"))]
#[test]
fn zookeeper_says_that_it_was_not_compiled_in() {
    let refused = refused("zk://localhost");
    assert!(
        refused.contains("zookeeper driver, which was not compiled in"),
        "{refused}"
    );
}

#[cfg(not(feature = "memory"))]
#[test]
fn memory_says_that_it_was_not_compiled_in() {
    let refused = refused("mem://");
    assert!(
        refused.contains("memory driver, which was not compiled in"),
        "{refused}"
    );
}
