//! What cannot be is refused with its exit code, the thing, the reason and the next step.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use crate::support::{command, coord, finish};

#[tokio::test]
async fn nonsense_urls_are_usage_errors_that_say_what_to_write() {
    for (url, says) in [
        ("localhost:2379", "etcd://localhost:2379"),
        ("zookeeper://h", "did you mean zk://"),
        ("etcd://", "its name is missing"),
        ("etcd://h:port", "from 1 to 65535"),
        ("etcd://h/x?y", "configuration file"),
        ("etcds://h", "tls.ca"),
        ("etcd://u@h", "without a password"),
        ("etcd://u:s3cret@10.0.0.1", "plain text"),
    ] {
        let done = coord(url, &["get", "/a"]).await;
        assert_eq!(done.code, Some(2), "{url}: {done:?}");
        assert!(done.stderr.contains(says), "{url}: {done:?}");
        assert!(!done.stderr.contains("s3cret"), "{done:?}");
        assert_eq!(done.stdout, "");
    }
    let done = finish(command(&["get", "/a"])).await;
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("COORD_STORE"), "{done:?}");
}

#[tokio::test]
async fn nonsense_files_are_usage_errors_that_name_the_place() {
    for (text, says) in [
        ("stroe = 'mem://'", "did you mean store?"),
        ("store = 'mem://'\n[session]\ntll = '5s'", "did you mean session.ttl?"),
        ("store = 'mem://'\nttl = '5s'", "did you mean session.ttl?"),
        ("store = 'mem://'\n[session]\nttl = 5", "write 5s"),
        (
            "store = 'mem://'\n[session]\nttl = '300ms'",
            "stop_within 250ms + margin 100ms = 350ms",
        ),
        (
            "store = 'mem://'\ncall_deadline = '11s'",
            "longer than session.ttl = 10s",
        ),
        (
            "store = 'mem://'\n[session.backoff]\nstrategy = 'random'",
            "exponential, linear and constant",
        ),
        ("store = 'mem://'\n[session.backoff]\nstep = '1s'", "no meaning"),
        (
            "store = 'etcd://h'\nuser = 'u'\npassword = 'a'\npassword_env = 'B'",
            "one of them is enough",
        ),
        ("store = 'etcd://h'\nuser = 'u'\npassword_file = 'none'", "cannot read"),
        ("password = s3cret", "no TOML"),
    ] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let done = finish(command(&["--config", file.path().to_str().unwrap(), "get", "/a"])).await;
        assert_eq!(done.code, Some(2), "{text}: {done:?}");
        assert!(done.stderr.contains(says), "{text}: {done:?}");
        assert!(!done.stderr.contains("s3cret"), "{done:?}");
    }
    let done = finish(command(&["--config", "/nowhere/coord.toml", "get", "/a"])).await;
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("/nowhere/coord.toml"), "{done:?}");
}

#[tokio::test]
async fn flags_override_the_environment_and_that_the_file() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"store = 'mem://'\n[session]\nttl = '1ms'").unwrap();
    let file = file.path().to_str().unwrap();
    let granted = async |environment: Option<&str>, flag: &[&str]| {
        let mut command = command(&[&["--config", file, "--json", "check"], flag].concat());
        command.envs(environment.map(|ttl| ("COORD_SESSION_TTL", ttl)));
        finish(command).await
    };
    assert_eq!(granted(None, &[]).await.code, Some(2), "the file's ttl is too short");
    let by_environment = granted(Some("20s"), &[]).await.ok();
    assert_eq!(by_environment.rows()[0]["granted_ttl_ms"], 20_000);
    let by_flag = granted(Some("20s"), &["--ttl", "30s"]).await.ok();
    assert_eq!(by_flag.rows()[0]["granted_ttl_ms"], 30_000);

    let mut typo = command(&["get", "/a", "--store", "mem://"]);
    typo.env("COORD_SESION_TTL", "5s");
    let typo = finish(typo).await;
    assert_eq!(typo.code, Some(2));
    assert!(typo.stderr.contains("did you mean COORD_SESSION_TTL?"), "{typo:?}");
}

#[tokio::test]
async fn nonsense_arguments_are_usage_errors() {
    for (args, says) in [
        (&["get", "a"][..], "did you mean /a?"),
        (&["get", "/a//b"], "empty segment"),
        (&["get"], "<KEY>"),
        (&["obsreve", "a"], "'observe'"),
        (&["create", "/a", "x", "--sequential"], "--ttl"),
        (&["create", "/a", "x", "--ttl", "5"], "write 5s"),
        (&["update", "/a", "x", "--version", "7"], "not a version"),
        (&["elect", "a/b"], "'/'"),
        (&["elect", "a", "--recipe", "fastest"], "sequence"),
        (&["elect", "a", "--ttl", "never"], "no duration"),
        (&["register", "web", "1", "h:1", "--meta", "zone"], "NAME=VALUE"),
        (&["bench", "handover", "--candidates", "1"], "2..=10000"),
        (&["conformance", "--only", "nothing-like-this"], "no promise"),
    ] {
        let done = coord("mem://", args).await;
        assert_eq!(done.code, Some(2), "{args:?}: {done:?}");
        assert!(done.stderr.contains(says), "{args:?}: {done:?}");
    }
}

/// Passed over, it would be the default, or nobody's token.
#[tokio::test]
async fn our_variables_that_are_no_text_are_usage_errors() {
    for (name, args) in [
        ("COORD_SESSION_TTL", &["get", "/a"][..]),
        ("COORD_CONFIG", &["get", "/a"]),
        ("COORD_TOKEN", &["checkpoint", "load", "nightly"]),
    ] {
        let mut command = command(&[&["--store", "mem://"], args].concat());
        command.env(name, std::ffi::OsStr::from_bytes(b"1\xe9"));
        let done = finish(command).await;
        assert_eq!(done.code, Some(2), "{name}: {done:?}");
    }
}

#[tokio::test]
async fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = finish(command(&["completions", shell])).await.ok();
        assert!(done.stdout.contains("conformance"), "{shell}");
        assert!(
            !done.stdout.contains("__guardian"),
            "{shell}: what is internal is not offered"
        );
    }
}
