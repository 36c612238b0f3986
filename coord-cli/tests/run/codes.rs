//! Exit codes, and what is said with them.

use std::sync::Arc;

use coord_harness::{EtcdCluster, EtcdOptions};
use rustix::process::Signal;

use crate::beats::assert_all_gone;
use crate::scenes;
use crate::stage::{Stage, code, finish, words};

scenes![
    the_commands_own_code_is_ours,
    usage_and_configuration_are_2,
    a_store_that_cannot_be_reached_is_69,
    not_our_turn_is_75,
    leadership_lost_is_76,
    refused_by_a_newer_token_is_77,
    the_examples_in_the_helps_work,
];

/// ZooKeeper lets everybody in, and asks entry by entry.
pub(crate) const OF_ETCD: &[crate::stage::Scene] = &[("wrong_credentials_are_2", |stage| {
    Box::pin(wrong_credentials_are_2(stage))
})];

async fn wrong_credentials_are_2(stage: Arc<Stage>) {
    let etcd = EtcdCluster::start(EtcdOptions::default()).await;
    etcd.etcdctl(&["user", "add", "root:sesame"]).await;
    etcd.etcdctl(&["role", "add", "root"]).await;
    etcd.etcdctl(&["user", "grant-role", "root", "root"]).await;
    etcd.etcdctl(&["auth", "enable"]).await;
    let mut command = stage.coord(&["run", "job", "--", "true"]);
    let url = format!("etcd://root:open@{}", etcd.node(0).client_addr());
    command.env("COORD_STORE", url);
    let output = finish(command).await;
    let (_, err) = words(&output);
    assert!(
        code(&output) == 2 && err.contains("check user, password"),
        "{} {err}",
        code(&output)
    );
}

async fn the_commands_own_code_is_ours(stage: Arc<Stage>) {
    let job = stage.job("codes");
    for (script, expected) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
    ] {
        let output = finish(job.command("a", &[], &["sh", "-c", script])).await;
        assert_eq!(code(&output), expected, "{script}: {:?}", words(&output));
    }
    for (command, expected) in [("/no/such/program", 127), ("/etc/passwd", 126)] {
        let output = finish(job.command("a", &[], &[command])).await;
        let (_, err) = words(&output);
        assert!(
            code(&output) == expected && err.contains(command),
            "{} {err}",
            code(&output)
        );
    }
}

async fn usage_and_configuration_are_2(stage: Arc<Stage>) {
    let cases: [(&[&str], &str); 9] = [
        (&["run", "job"], "CMD"),
        (&["run", "jo b", "--", "true"], "only letters"),
        (&["run", "job", "--run-id", "x", "--", "true"], "--once"),
        (&["run", "job", "--once", "--run-id", "a/b", "--", "true"], "'/'"),
        (&["run", "job", "--ttl", "8s", "--grace", "4s", "--", "true"], "3.74s"),
        (&["run", "job", "--grace", "soon", "--", "true"], "soon"),
        (&["run", "job", "--wait", "0s", "--", "true"], "a second or more"),
        (&["run", "job", "--store", "http://x", "--", "true"], "http"),
        (&["checkpoint", "save", "job", "--step", "b"], "COORD_TOKEN"),
    ];
    for (args, hint) in cases {
        let output = stage.output(args).await;
        let (_, err) = words(&output);
        assert!(
            code(&output) == 2 && err.contains(hint),
            "{args:?}: {} {err}",
            code(&output)
        );
    }
}

async fn a_store_that_cannot_be_reached_is_69(stage: Arc<Stage>) {
    let (job, way) = (stage.job("gone"), stage.way().await);
    way.cut();
    let mut copy = job.copy_via(Some(&way), "a", &["--wait", "1s"], "echo ran >> \"$LOG\"");
    assert_eq!(copy.code().await, Some(69));
    assert!(job.lines("ran").is_empty());
}

async fn not_our_turn_is_75(stage: Arc<Stage>) {
    let job = stage.job("busy");
    let holder = job.copy("a", &[], r#"sh -c "$BEAT" beat main"#);
    job.runs(0).await;
    let output = finish(job.command("b", &["--wait", "500ms"], &["true"])).await;
    let (_, err) = words(&output);
    assert!(
        code(&output) == 75 && err.contains("coord status"),
        "{} {err}",
        code(&output)
    );
    job.in_line(1).await;
    holder.signal(Signal::KILL);
}

async fn leadership_lost_is_76(stage: Arc<Stage>) {
    let job = stage.job("lost");
    let mut copy = job.copy("a", &["--no-recontend"], r#"sh -c "$BEAT" beat main"#);
    job.runs(0).await;
    assert_eq!(code(&stage.output(&["evict", &job.name]).await), 0);
    assert_eq!(copy.code().await, Some(76));
    assert_all_gone(&job.beats());
}

async fn refused_by_a_newer_token_is_77(stage: Arc<Stage>) {
    let job = stage.job("newer");
    // While the job runs, a newer leader claims the run: what ends well after that is not to be marked.
    let script = r#"echo "ready $COORD_TOKEN" >> "$LOG"; until grep -q go "$LOG"; do sleep 0.05; done"#;
    let mut copy = job.copy("a", &["--once", "--run-id", "today"], script);
    let token: u64 = coord_harness::eventually(crate::stage::LONG, "the job", || {
        let ready = job.lines("ready").first().and_then(|token| token.parse().ok());
        async move { ready }
    })
    .await;
    let newer = stage.token().await;
    assert!(newer > token);
    let claim = [
        "checkpoint",
        "load",
        &job.name,
        "--run-id",
        "today",
        "--token",
        &newer.to_string(),
    ];
    assert_eq!(code(&stage.output(&claim).await), 0);
    std::fs::write(&job.log, "go\n").unwrap();
    assert_eq!(copy.code().await, Some(77));
    let older = [
        "checkpoint",
        "clear",
        &job.name,
        "--run-id",
        "today",
        "--token",
        &token.to_string(),
    ];
    let output = stage.output(&older).await;
    let (_, err) = words(&output);
    assert!(code(&output) == 77 && err.contains(&newer.to_string()), "{err}");
}

/// The command lines in a command's help.
async fn examples(stage: &Stage, of: &[&str]) -> Vec<String> {
    let (help, _) = words(&stage.output(&[of, &["--help"]].concat()).await);
    let examples = help
        .lines()
        .map(str::trim)
        .skip_while(|line| !line.starts_with("Example"));
    let examples: Vec<_> = examples
        .filter(|line| line.contains("coord ") && !line.starts_with("Example"))
        .map(str::to_owned)
        .collect();
    assert!(!examples.is_empty(), "{of:?} has no example");
    examples
}

async fn the_examples_in_the_helps_work(stage: Arc<Stage>) {
    let job = stage.job("examples");
    let url = stage.url();
    // `coord` by its name, as people type it.
    let programs = std::path::Path::new(env!("CARGO_BIN_EXE_coord")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let by_hand: [&[&str]; 4] = [&["run"], &["status"], &["evict"], &["checkpoint", "load"]];
    let in_a_job: [&[&str]; 2] = [&["checkpoint", "save"], &["checkpoint", "clear"]];
    for (of, within) in by_hand
        .map(|of| (of, false))
        .into_iter()
        .chain(in_a_job.map(|of| (of, true)))
    {
        for example in examples(&stage, of).await {
            let line = example
                .replace("etcd://localhost:2379", &url)
                .replace("zk://localhost:2181", &url);
            let mut shell = match within {
                true => job.command("a", &[], &["sh", "-c", &line]),
                false => stage.shell(&line),
            };
            shell.env("PATH", &path);
            let output = finish(shell).await;
            assert_eq!(code(&output), 0, "{line}: {:?}", words(&output));
        }
    }
}
