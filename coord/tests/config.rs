//! The layers, and what is refused.

use std::path::{Path, PathBuf};
use std::time::Duration;

use coordkit::{Config, ErrorKind, Override, Setting, Sources, Strategy};

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("coord.toml");
    std::fs::write(&file, text).unwrap();
    (dir, file)
}

fn from_file(text: &str) -> Result<Config, String> {
    let (_dir, file) = file(text);
    load(&Sources {
        file: Some(file),
        ..Sources::default()
    })
}

fn from_environment(variables: &[(&str, &str)]) -> Result<Config, String> {
    load(&Sources {
        environment: variables
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect(),
        ..Sources::default()
    })
}

fn load(sources: &Sources) -> Result<Config, String> {
    Config::load(sources).map_err(|error| {
        assert!(matches!(error.kind(), ErrorKind::InvalidConfig(_)), "{error}");
        error.to_string()
    })
}

#[test]
fn a_file_says_everything() {
    let config = from_file(
        r#"
        store = "etcds://a:1,b:2/app"
        user = "me"
        password = "hunter2"
        call_deadline = "3s"
        stop_within = "500ms"
        tls = { ca = "ca.pem", certificate = "/etc/me.pem", key = "me.key", domain = "etcd" }
        [session]
        name = "worker"
        ttl = "20s"
        backoff = { strategy = "linear", first = "2s", step = "3s", max = "10s", jitter = 0, limit = "1m" }
        [zookeeper]
        tick = "1s"
        session_timeout = "9s"
        "#,
    )
    .unwrap();
    assert_eq!(config.store.to_string(), "etcds://a:1,b:2/app");
    assert_eq!(config.effective_call_deadline(), Duration::from_secs(3));
    assert_eq!(config.tls.certificate.as_deref(), Some(Path::new("/etc/me.pem")));
    assert_eq!(config.tls.ca.unwrap().file_name().unwrap(), "ca.pem");
    assert_eq!(
        (config.session.name.as_str(), config.session.ttl.as_secs()),
        ("worker", 20)
    );
    let seconds = Duration::from_secs;
    let linear = Strategy::Linear {
        first: seconds(2),
        step: seconds(3),
        max: seconds(10),
    };
    assert_eq!(config.session.backoff.strategy, linear);
    assert_eq!(config.session.backoff.limit, Some(seconds(60)));
    assert_eq!(config.zookeeper.session_timeout, seconds(9));
}

#[test]
fn files_are_found_beside_the_configuration_that_names_them() {
    let (dir, config) = file("store = 'etcd://localhost'\nuser = 'me'\npassword_file = 'secret'");
    std::fs::write(dir.path().join("secret"), "hunter2\r\n").unwrap();
    let config = Config::load(&Sources {
        file: Some(config),
        ..Sources::default()
    })
    .unwrap();
    assert_eq!(config.password.as_ref().unwrap().reveal(), "hunter2");
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn overrides_win_over_the_environment_and_that_over_the_file() {
    let (_dir, file) = file("store = 'mem://file'\nstop_within = '1s'\ncall_deadline = '2s'\nsession.ttl = '30s'");
    let config = Config::load(&Sources {
        file: Some(file),
        environment: [
            ("COORD_STORE".into(), "mem://environment".into()),
            ("COORD_CALL_DEADLINE".into(), "3s".into()),
        ]
        .into(),
        overrides: vec![Override::new("--store", "store", "mem://flag")],
    })
    .unwrap();
    assert_eq!(config.store.to_string(), "mem://flag");
    assert_eq!(config.call_deadline, Some(Duration::from_secs(3)));
    assert_eq!(config.stop_within, Duration::from_secs(1));
}

#[test]
fn every_setting_is_understood_in_the_file_and_in_the_environment() {
    for setting in Setting::ALL {
        // A value that is wrong for all but texts: if the key is known, the complaint is about the value.
        for error in [
            from_file(&format!("store = 'redis://'\n{} = []", setting.key)).err(),
            from_environment(&[("COORD_STORE", "redis://"), (&setting.variable(), "\u{1}")]).err(),
        ] {
            let error = error.unwrap();
            assert!(!error.contains("is no setting"), "{}: {error}", setting.key);
        }
    }
}

#[test]
fn unknown_keys_suggest_the_right_one() {
    for (key, meant) in [
        ("stor", "store"),
        ("Store", "store"),
        ("passwd", "password"),
        ("timeout", ""),
        ("ttl", "session.ttl"),
        ("session.tll", "session.ttl"),
        ("sesion.ttl", "session.ttl"),
        ("tls.cert", "tls.certificate"),
        ("tls.ca_file", "tls.ca"),
        ("session.backoff.jiter", "session.backoff.jitter"),
        ("zookeeper.tick_time", "zookeeper.tick"),
    ] {
        let error = from_file(&format!("store = 'mem://'\n{key} = 'x'")).unwrap_err();
        assert!(error.contains("coord.toml"), "{error}");
        match meant {
            "" => assert!(error.contains("is no setting"), "{error}"),
            meant => assert!(error.contains(&format!("did you mean {meant}?")), "{error}"),
        }
    }
    let error = from_environment(&[("COORD_STORE", "mem://"), ("COORD_TSL_CA", "x")]).unwrap_err();
    assert!(error.contains("did you mean COORD_TLS_CA?"), "{error}");
    // Kubernetes sets these for a service named coord, and `coord run` these for its child.
    for name in [
        "COORD_SERVICE_HOST",
        "COORD_PORT_2379_TCP",
        "COORD_NAME",
        "COORD_TOKEN",
        "COORD_JOB",
        "COORD_LOG",
    ] {
        from_environment(&[("COORD_STORE", "mem://"), (name, "x")]).unwrap();
    }
}

#[test]
fn what_cannot_be_safe_is_refused_with_the_arithmetic() {
    for (text, says) in [
        ("session.ttl = '699ms'", "stop_within 250ms + margin 100ms = 350ms"),
        ("session.ttl = '699ms'", "raise session.ttl to 700ms"),
        ("stop_within = '5s'", "stop_within 5s + margin 200ms = 5.2s"),
        ("stop_within = '5s'", "raise session.ttl to 10.417"),
        ("call_deadline = '12s'", "2s after the lease"),
        ("call_deadline = '0s'", "no call could ever succeed"),
        ("zookeeper.tick = '0s'", "zookeeper.tick is zero"),
    ] {
        let error = from_file(&format!("store = 'mem://'\n{text}")).unwrap_err();
        assert!(error.contains(says), "{text}: {error}");
    }
    from_file("store = 'mem://'\nsession.ttl = '700ms'").unwrap();
    from_file("store = 'mem://'\nstop_within = '5s'\nsession.ttl = '10418ms'").unwrap();
}

#[test]
fn a_later_source_of_the_password_overrides_all_earlier_ones() {
    let (_dir, path) = file("store = 'etcd://localhost'\nuser = 'me'\npassword_file = 'not there'");
    let environment = |name: &str, value: &str| {
        Config::load(&Sources {
            file: Some(path.clone()),
            environment: [(name.into(), value.into()), ("MINE".into(), "from mine".into())].into(),
            ..Sources::default()
        })
    };
    let revealed = |config: Config| config.password.unwrap().reveal().to_owned();
    assert_eq!(revealed(environment("COORD_PASSWORD", "direct").unwrap()), "direct");
    assert_eq!(
        revealed(environment("COORD_PASSWORD_ENV", "MINE").unwrap()),
        "from mine"
    );
    assert!(
        environment("COORD_PASSWORD_ENV", "YOURS")
            .unwrap_err()
            .to_string()
            .contains("YOURS is not set")
    );
    assert!(
        environment("OTHER", "x")
            .unwrap_err()
            .to_string()
            .contains("cannot read")
    );
}

#[test]
fn a_password_in_plain_text_leaves_this_machine_only_by_an_explicit_word() {
    let to =
        |url: &str, word: &str| from_environment(&[("COORD_STORE", url), ("COORD_ALLOW_PLAINTEXT_PASSWORD", word)]);
    let refused = to("etcd://me:hunter2@10.0.0.1", "false").unwrap_err();
    assert!(
        refused.contains("plain text to 10.0.0.1:2379") && refused.contains("etcds://"),
        "{refused}"
    );
    assert!(!refused.contains("hunter2"));
    assert!(
        to("zk://me:hunter2@localhost,zk.example", "false")
            .unwrap_err()
            .contains("zks://")
    );
    for (url, word) in [
        ("etcd://me:hunter2@10.0.0.1", "true"),
        ("zk://me:hunter2@[::1],localhost", "false"),
    ] {
        let config = to(url, word).unwrap();
        assert_eq!(config.password.unwrap().reveal(), "hunter2");
        assert!(!config.store.to_string().contains("me"), "{}", config.store);
    }
    let twice = [
        ("COORD_STORE", "etcd://me:hunter2@localhost"),
        ("COORD_PASSWORD", "other"),
        ("COORD_USER", "me"),
    ];
    assert!(
        from_environment(&twice)
            .unwrap_err()
            .contains("leave them out of the URL")
    );
}

#[test]
fn certificates_and_schemes_go_together() {
    for (text, says) in [
        ("store = 'etcds://h'", "etcds:// needs tls.ca"),
        ("store = 'etcd://h'\ntls.ca = 'ca'", "write etcds://"),
        (
            "store = 'zks://h'\ntls.ca = 'ca'\ntls.domain = 'd'",
            "tls.domain is not possible",
        ),
        (
            "store = 'zks://h'\ntls.ca = 'ca'\ntls.key = 'k'",
            "without tls.certificate",
        ),
        (
            "store = 'zks://h'\ntls.ca = 'ca'\ntls.certificate = 'k'",
            "without tls.key",
        ),
    ] {
        let error = from_file(text).unwrap_err();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn the_same_place_named_again_is_entered_as_the_one_whom_the_file_names() {
    let (_dir, path) = file("store = 'etcd://me:hunter2@localhost/app'");
    let with = |url: &str| {
        load(&Sources {
            file: Some(path.clone()),
            environment: [("COORD_STORE".into(), url.into())].into(),
            ..Sources::default()
        })
    };
    let same = with("etcd://localhost:2379/app").unwrap();
    assert_eq!(
        (same.user.as_deref(), same.password.unwrap().reveal()),
        (Some("me"), "hunter2")
    );
    // Another place is not told.
    for other in [
        "etcd://localhost:2380/app",
        "etcd://localhost/other",
        "zk://localhost:2379/app",
    ] {
        let other = with(other).unwrap();
        assert!(other.user.is_none() && other.password.is_none());
    }
    let other = with("etcd://you:sesame@localhost/app").unwrap();
    assert_eq!(other.user.as_deref(), Some("you"));
}
