//! Whoever takes the library takes no command line, and of the drivers only those asked for.

use std::process::Command;

/// The names of all packages that a build of the library needs.
fn packages(features: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--package",
            "coordkit",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .args([
            "--locked",
            "--offline",
            "--no-default-features",
            "--features",
            &features.join(","),
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines()
        .filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
        .collect()
}

#[test]
fn no_feature_brings_a_command_line() {
    let all = packages(&["etcd", "zookeeper", "memory"]);
    assert!(
        all.iter().any(|name| name == "etcd-client"),
        "the list is a list: {all:?}"
    );
    for name in [
        "clap",
        "clap_complete",
        "reqwest",
        "coord-cli",
        "coord-conformance",
        "coord-harness",
    ] {
        assert!(!all.iter().any(|package| package == name), "{name}");
    }
}

#[test]
fn a_driver_brings_no_other_one_and_only_etcd_brings_http() {
    let has = |packages: &[String], name: &str| packages.iter().any(|package| package == name);
    let zookeeper = packages(&["zookeeper"]);
    for name in ["coord-etcd", "coord-mem", "tonic", "hyper", "http", "axum"] {
        assert!(!has(&zookeeper, name), "{name}");
    }
    assert!(has(&zookeeper, "zookeeper-client"));
    let etcd = packages(&["etcd"]);
    assert!(has(&etcd, "tonic") && !has(&etcd, "zookeeper-client") && !has(&etcd, "coord-mem"));
    let none = packages(&[]);
    for name in ["coord-etcd", "coord-zk", "coord-mem", "http"] {
        assert!(!has(&none, name), "{name}");
    }
}
