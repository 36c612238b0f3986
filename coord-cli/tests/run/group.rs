//! The job's process group: signals, standard input and output, the terminal.

use std::process::Stdio;
use std::sync::Arc;

use coord_harness::eventually;
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::beats::assert_all_gone;
use crate::scenes;
use crate::stage::{Copy, LONG, Stage, code, finish, words};

scenes![
    signals_go_to_the_whole_group,
    standard_input_and_output_are_the_jobs,
    the_job_can_read_from_the_terminal,
    the_job_knows_what_it_needs_and_no_secret,
    nohup_keeps_the_job_alive_when_the_terminal_goes,
    nobody_has_to_read_standard_error,
];

async fn signals_go_to_the_whole_group(stage: Arc<Stage>) {
    let job = stage.job("signals");
    // Both write down what they get; the one behind is no child of the shell that is in front when it is signalled.
    let script = r#"trap 'echo "got USR1 front" >> "$LOG"' USR1
trap 'echo "got TERM front" >> "$LOG"; exit 9' TERM
sh -c 'trap "echo got USR1 back >> \"\$LOG\"" USR1
trap "echo got TERM back >> \"\$LOG\"; exit" TERM
echo "ready" >> "$LOG"; while :; do sleep 0.05; done' &
while :; do sleep 0.05; done"#;
    let mut copy = job.copy("a", &[], script);
    let wait_for = |lines: usize| {
        let job = &job;
        eventually(LONG, "signals", move || {
            let got = job.lines("got").len();
            async move { got == lines }
        })
    };
    eventually(LONG, "the job", || {
        let ready = !job.lines("ready").is_empty();
        async move { ready }
    })
    .await;
    copy.signal(Signal::USR1);
    wait_for(2).await;
    copy.signal(Signal::TERM);
    assert_eq!(copy.code().await, Some(9), "its own answer to SIGTERM");
    let mut got = job.lines("got");
    got.sort_unstable();
    assert_eq!(got, ["TERM back", "TERM front", "USR1 back", "USR1 front"], "each once");
}

async fn standard_input_and_output_are_the_jobs(stage: Arc<Stage>) {
    let job = stage.job("pipes");
    let mut process = job
        .command("a", &[], &["sh", "-c", "cat; echo to standard error >&2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    stdin.write_all(b"\0some\xffbytes\n").await.unwrap();
    drop(stdin);
    let output = process.wait_with_output().await.unwrap();
    assert_eq!(output.stdout, b"\0some\xffbytes\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("to standard error"));
    assert!(output.status.success());
}

/// A shell in a terminal of its own, in which `coord` is the foreground job; what was shown there.
async fn in_terminal(command: Command, typed: &[(&str, &str)]) -> String {
    let command = command.into_std();
    let mut script = Command::new("script");
    // As a shell with job control would start it: in a group of its own, in the foreground.
    let line = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")))
        .collect::<Vec<_>>()
        .join(" ");
    let line = format!("set -m; {line}; echo \"code $?\"; read -r after; echo \"after $after\"");
    script.args(["-qec", &format!("sh -c '{}'", line.replace('\'', r"'\''")), "/dev/null"]);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    let mut process = script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("script(1) starts");
    let (mut stdin, mut stdout) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
    let mut shown = Vec::new();
    let mut answers = typed.iter();
    let mut next = answers.next();
    let reading = async {
        loop {
            let mut bytes = [0; 1024];
            match stdout.read(&mut bytes).await {
                Ok(0) | Err(_) => break,
                Ok(count) => shown.extend_from_slice(&bytes[..count]),
            }
            while let Some((prompt, answer)) = next
                && String::from_utf8_lossy(&shown).contains(prompt)
            {
                stdin.write_all(answer.as_bytes()).await.unwrap();
                next = answers.next();
            }
        }
    };
    let ended = tokio::time::timeout(LONG, reading).await;
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(ended.is_ok(), "the terminal hangs: {shown}");
    shown
}

async fn the_job_can_read_from_the_terminal(stage: Arc<Stage>) {
    let job = stage.job("terminal");
    let command = job.command(
        "a",
        &[],
        &["sh", "-c", "echo ready; read -r line; echo \"got <$line>\"; exit 5"],
    );
    let shown = in_terminal(command, &[("ready", "hello\n"), ("code", "again\n")]).await;
    assert!(shown.contains("got <hello>"), "{shown}");
    assert!(shown.contains("code 5"), "{shown}");
    assert!(
        shown.contains("after again"),
        "whoever comes after has the terminal: {shown}"
    );
    // Ctrl-C reaches the job, whether it has read from the terminal before or not.
    for script in [
        r#"echo ready; exec sh -c "$BEAT" beat main"#,
        r#"echo ready; read -r line; sleep 60"#,
    ] {
        let command = job.command("a", &[], &["sh", "-c", script]);
        let shown = in_terminal(command, &[("ready", "\u{3}"), ("code", "again\n")]).await;
        assert!(shown.contains("code 130") && shown.contains("after again"), "{shown}");
        assert_all_gone(&job.beats());
    }
}

async fn the_job_knows_what_it_needs_and_no_secret(stage: Arc<Stage>) {
    let job = stage.job("environment");
    // And with that it is let in, although the file's URL says with which password, and its variable does not.
    let script = r#"env | grep ^COORD_ | sed 's/^/env /' >> "$LOG"
"$COORD" checkpoint save --step b < /dev/null"#;
    let mut command = job.command("a", &[], &["sh", "-c", script]);
    let url = command
        .as_std()
        .get_envs()
        .find(|(name, _)| *name == "COORD_STORE")
        .unwrap()
        .1;
    let url = url.unwrap().to_str().unwrap().to_owned();
    let file = job.log.with_extension("toml");
    // Below a prefix of its own: what this user makes, others may not touch.
    let url = url.replace("/app", "/of-a-user");
    std::fs::write(
        &file,
        format!("store = \"{}\"\n", url.replace("://", "://user:sesame@")),
    )
    .unwrap();
    command
        .env_remove("COORD_STORE")
        .env("COORD_CONFIG", &file)
        .env("COORD", env!("CARGO_BIN_EXE_coord"))
        // Of a job around this one.
        .env("COORD_RUN_ID", "another's");
    let output = finish(command).await;
    assert_eq!(code(&output), 0, "{:?}", words(&output));
    let told = job.lines("env").join("\n");
    for part in [format!("COORD_STORE={url}"), format!("COORD_CONFIG={}", file.display())] {
        assert!(told.contains(&part), "{part} in {told}");
    }
    for part in ["COORD_JOB=", "COORD_NAME=a", "COORD_TOKEN="] {
        assert!(told.contains(part), "{part} in {told}");
    }
    for part in ["sesame", "COORD_RUN_ID"] {
        assert!(!told.contains(part), "{part} in {told}");
    }
}

async fn nohup_keeps_the_job_alive_when_the_terminal_goes(stage: Arc<Stage>) {
    let job = stage.job("nohup");
    let script = r#"trap 'echo "got USR1" >> "$LOG"' USR1; echo ready >> "$LOG"; while :; do sleep 0.05; done"#;
    let mut command = stage.shell(r#"trap "" HUP; exec "$COORD" run "$JOB" --name a -- sh -c "$SCRIPT""#);
    command
        .env("COORD", env!("CARGO_BIN_EXE_coord"))
        .env("JOB", &job.name)
        .env("SCRIPT", script)
        .env("LOG", &job.log);
    let mut copy = Copy {
        name: "a".to_owned(),
        process: command.spawn().unwrap(),
    };
    eventually(LONG, "the job", || {
        let ready = !job.lines("ready").is_empty();
        async move { ready }
    })
    .await;
    copy.signal(Signal::HUP);
    copy.signal(Signal::USR1);
    eventually(LONG, "the next signal", || {
        let got = !job.lines("got").is_empty();
        async move { got }
    })
    .await;
    copy.signal(Signal::TERM);
    assert_eq!(copy.code().await, Some(143), "not 129: SIGHUP is ignored");
}

/// As in `coord run … 2>&1 | head -1`.
async fn nobody_has_to_read_standard_error(stage: Arc<Stage>) {
    let job = stage.job("unheard");
    let unheard = |command: &[&str]| {
        let mut process = job.command("a", &[], command).stderr(Stdio::piped()).spawn().unwrap();
        drop(process.stderr.take());
        Copy {
            name: "a".to_owned(),
            process,
        }
    };
    assert_eq!(unheard(&["/no/such/program"]).code().await, Some(127));
    let mut copy = unheard(&["sh", "-c", r#"exec sh -c "$BEAT" beat main"#]);
    let first = job.runs(0).await;
    assert_eq!(code(&stage.output(&["evict", &job.name]).await), 0);
    // It cannot tell anybody, and waits for its next turn all the same.
    job.runs(first.token).await;
    copy.signal(Signal::TERM);
    assert_eq!(copy.code().await, Some(143));
}
