//! Whose turn it is.

use std::sync::Arc;
use std::time::Duration;

use coord_harness::eventually;
use rustix::process::Signal;

use crate::beats::{assert_all_gone, assert_one_at_a_time, now};
use crate::faults::SOON;
use crate::scenes;
use crate::stage::{Copy, LONG, SHORT, Stage, code, whose, words};

scenes![
    the_next_one_runs_when_the_leader_is_killed,
    a_copy_that_was_evicted_goes_to_the_end_of_the_line,
    what_a_job_leaves_behind_is_gone_before_the_next_turn,
    sigterm_while_waiting_leaves_the_line,
    a_store_that_is_down_at_the_start_and_comes_up,
    status_tells_who_runs_it_and_who_waits,
    whoever_asks_again_to_end_does_not_wait_for_the_store,
];

/// One process of the job in its group, one that has left it: whatever it is, it goes before the next copy starts.
const TREE: &str = r#"setsid sh -c "$BEAT" beat far & sh -c "$BEAT" beat near & exec sh -c "$BEAT" beat main"#;

async fn the_next_one_runs_when_the_leader_is_killed(stage: Arc<Stage>) {
    let job = stage.job("killed");
    let mut copies: Vec<_> = ["a", "b", "c"].map(|name| job.copy(name, &SHORT, TREE)).into();
    let mut token = 0;
    for _ in 0..2 {
        let beat = job.runs(token).await;
        token = beat.token;
        // All of the tree is there.
        eventually(LONG, "the whole tree", || {
            let of = |tag: &str| job.beats().iter().any(|beat| beat.token == token && beat.tag == tag);
            let all = of("near") && of("far");
            async move { all }
        })
        .await;
        let leader = whose(&mut copies, &beat);
        leader.signal(Signal::KILL);
        leader.code().await;
    }
    let beat = job.runs(token).await;
    let last = whose(&mut copies, &beat);
    last.signal(Signal::TERM);
    assert_eq!(last.code().await, Some(143), "the job's own end by SIGTERM");
    let beats = job.beats();
    assert_one_at_a_time(&beats);
    assert_all_gone(&beats);
}

async fn a_copy_that_was_evicted_goes_to_the_end_of_the_line(stage: Arc<Stage>) {
    let job = stage.job("evicted");
    let script = r#"trap "" TERM; sh -c "$BEAT" beat main"#;
    let mut copies = vec![job.copy("a", &[], script)];
    let first = job.runs(0).await;
    copies.push(job.copy("b", &[], script));
    job.in_line(2).await;
    let from = now();
    let output = stage.output(&["evict", &job.name, "--json"]).await;
    let (out, err) = words(&output);
    assert_eq!(code(&output), 0, "{err}");
    assert!(
        out.contains(r#""evicted":"a""#) && out.contains(&first.token.to_string()),
        "{out}"
    );
    let second = job.runs(first.token).await;
    assert_eq!(second.name, "b");
    // No grace: what ignores SIGTERM is gone, too.
    eventually(LONG, "the first job's end", || {
        let alive = coord_harness::process_alive(first.pid);
        async move { !alive }
    })
    .await;
    let last = job.beats().into_iter().filter(|beat| beat.token == first.token);
    let last = last.map(|beat| beat.at).fold(0.0, f64::max);
    assert!(last < from + SOON, "it lived {} s after its eviction", last - from);
    job.in_line(2).await;
    let output = stage.output(&["evict", "nobody-runs-this", "--json"]).await;
    assert!(words(&output).0.contains(r#""evicted":null"#));
    for copy in &copies {
        copy.signal(Signal::KILL);
    }
}

async fn what_a_job_leaves_behind_is_gone_before_the_next_turn(stage: Arc<Stage>) {
    let job = stage.job("leftovers");
    // It ends at once, and leaves one behind that does not listen.
    let script = r#"trap "" TERM; setsid sh -c "$BEAT" beat far & sleep 0.3; exit 7"#;
    let mut first = job.copy("a", &["--grace", "300ms"], script);
    let beat = job.runs(0).await;
    let mut second = job.copy("b", &[], r#"sh -c "$BEAT" beat main"#);
    assert_eq!(first.code().await, Some(7), "the command's own code");
    job.runs(beat.token).await;
    second.signal(Signal::TERM);
    second.code().await;
    let beats = job.beats();
    assert_one_at_a_time(&beats);
    assert_all_gone(&beats);
}

async fn sigterm_while_waiting_leaves_the_line(stage: Arc<Stage>) {
    let job = stage.job("waiting");
    let holder = job.copy("a", &[], r#"sh -c "$BEAT" beat main"#);
    let beat = job.runs(0).await;
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut waiting = job.copy("b", &[], "echo b >> \"$LOG\"");
        job.in_line(2).await;
        waiting.signal(signal);
        assert_eq!(waiting.code().await, Some(code));
        // At once, not with the end of its lease.
        job.in_line(1).await;
    }
    holder.signal(Signal::TERM);
    assert!(job.beats().iter().all(|seen| seen.token == beat.token));
    assert!(job.lines("b").is_empty(), "it has never run");
}

async fn a_store_that_is_down_at_the_start_and_comes_up(stage: Arc<Stage>) {
    let (job, way) = (stage.job("down"), stage.way().await);
    way.cut();
    let script = r#"echo "ran $COORD_TOKEN" >> "$LOG""#;
    let mut copy = job.copy_via(Some(&way), "a", &[], script);
    // It has tried, in vain.
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(copy.process.try_wait().unwrap().is_none(), "it waits");
    way.pass();
    assert_eq!(copy.code().await, Some(0));
    assert_eq!(job.lines("ran").len(), 1);
}

async fn status_tells_who_runs_it_and_who_waits(stage: Arc<Stage>) {
    let job = stage.job("status");
    let copies = [
        job.copy("a", &[], r#"sh -c "$BEAT" beat main"#),
        job.copy("b", &[], r#"sh -c "$BEAT" beat main"#),
    ];
    let beat = job.runs(0).await;
    job.in_line(2).await;
    let told = eventually(LONG, "since when it runs", || {
        let (stage, name) = (stage.clone(), job.name.clone());
        async move {
            let output = stage.output(&["status", &name, "--json"]).await;
            let row: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
            row["running"]["since_ms"].is_u64().then_some(row)
        }
    })
    .await;
    assert_eq!(told["running"]["name"], beat.name.as_str());
    assert_eq!(told["running"]["token"], beat.token);
    assert_eq!(told["waiting"].as_array().unwrap().len(), 1);
    let (out, _) = words(&stage.output(&["status", &job.name]).await);
    assert!(
        out.contains("running") && out.contains("waiting") && out.contains("since 20"),
        "{out}"
    );
    for copy in &copies {
        copy.signal(Signal::KILL);
    }
}

async fn whoever_asks_again_to_end_does_not_wait_for_the_store(stage: Arc<Stage>) {
    let (job, way) = (stage.job("impatient"), stage.way().await);
    let script = r#"trap 'echo "told" >> "$LOG"; exit 9' INT; echo ready >> "$LOG"; while :; do sleep 0.05; done"#;
    // Far longer than anything here: who waits for the store's answer does so for a minute.
    let mut command = job.command("a", &["--ttl", "2m"], &["sh", "-c", script]);
    let url = stage.url_at(&way);
    command.env("COORD_STORE", url).env("COORD_CALL_DEADLINE", "2m");
    let mut copy = Copy {
        name: "a".to_owned(),
        process: command.spawn().unwrap(),
    };
    for line in ["ready", "told"] {
        eventually(LONG, line, || {
            let written = !job.lines(line).is_empty();
            async move { written }
        })
        .await;
        way.black_hole();
        copy.signal(Signal::INT);
    }
    // Once for the release, once for the close.
    let code = async {
        loop {
            tokio::select! {
                code = copy.process.wait() => return code.unwrap().code(),
                () = tokio::time::sleep(Duration::from_millis(50)) => copy.signal(Signal::INT),
            }
        }
    };
    assert_eq!(tokio::time::timeout(LONG, code).await.expect("it ends"), Some(9));
}
