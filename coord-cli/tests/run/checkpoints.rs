//! Checkpoints from the command line.

use std::process::Stdio;
use std::sync::Arc;

use coord_harness::eventually;
use tokio::io::AsyncWriteExt;

use crate::scenes;
use crate::stage::{LONG, SHORT, Stage, code, words};

scenes![
    the_next_leader_continues_at_the_next_step,
    a_checkpoint_is_kept_byte_for_byte_and_fenced,
    nonsense_tokens_are_refused,
];

/// Two steps; in the second, a leader called "a" hangs.
const STEPS: &str = r#"coord="$COORD"
step=$("$coord" checkpoint load --step) || exit
if [ -z "$step" ]; then
    echo "step one by $COORD_NAME" >> "$LOG"
    printf 'state of one' | "$coord" checkpoint save --step two || exit
fi
echo "step two by $COORD_NAME from $("$coord" checkpoint load)" >> "$LOG"
[ "$COORD_NAME" != a ] || sleep 60
"$coord" checkpoint clear
"#;

async fn the_next_leader_continues_at_the_next_step(stage: Arc<Stage>) {
    let job = stage.job("steps");
    let start = |name: &str| {
        let mut command = job.command(name, &SHORT, &["sh", "-c", STEPS]);
        // The job knows nothing but what `coord run` tells it.
        command.env("COORD", env!("CARGO_BIN_EXE_coord"));
        command.spawn().expect("it starts")
    };
    let mut first = start("a");
    eventually(LONG, "the second step", || {
        let steps = job.lines("step").len();
        async move { steps == 2 }
    })
    .await;
    first.start_kill().unwrap();
    let mut second = start("b");
    assert_eq!(second.wait().await.unwrap().code(), Some(0));
    assert_eq!(
        job.lines("step"),
        ["one by a", "two by a from state of one", "two by b from state of one"]
    );
    let (out, _) = words(&stage.output(&["checkpoint", "load", &job.name, "--json"]).await);
    let row: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(
        row["step"].is_null() && row["token"].as_u64() > Some(0),
        "clear keeps the token: {out}"
    );
}

async fn save(stage: &Stage, args: &[&str], state: &[u8]) -> i32 {
    let mut process = stage.coord(args).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = process.stdin.take().unwrap();
    // Refused before all of it was read: then the pipe breaks.
    let _ = stdin.write_all(state).await;
    drop(stdin);
    process.wait().await.unwrap().code().unwrap()
}

async fn a_checkpoint_is_kept_byte_for_byte_and_fenced(stage: Arc<Stage>) {
    let (older, newer) = (stage.token().await.to_string(), stage.token().await.to_string());
    let job = stage.job("bytes");
    let state = b"\0\xff\n\x1b[31m\n\n".as_slice();
    let saving = |token| ["checkpoint", "save", &job.name, "--step", "b", "--token", token];
    assert_eq!(save(&stage, &saving(&older), state).await, 0);
    let loaded = stage
        .output(&["checkpoint", "load", &job.name, "--token", &newer])
        .await;
    assert_eq!((code(&loaded), loaded.stdout.as_slice()), (0, state));
    assert_eq!(
        save(&stage, &saving(&older), b"late").await,
        77,
        "the newer one has claimed"
    );
    assert_eq!(
        code(
            &stage
                .output(&["checkpoint", "load", &job.name, "--token", &older])
                .await
        ),
        77
    );
    let loaded = stage.output(&["checkpoint", "load", &job.name]).await;
    assert_eq!(
        (code(&loaded), loaded.stdout.as_slice()),
        (0, state),
        "reading is for all"
    );
    assert_eq!(
        code(
            &stage
                .output(&["checkpoint", "clear", &job.name, "--token", &newer])
                .await
        ),
        0
    );
    assert_eq!(
        save(&stage, &saving(&older), b"late").await,
        77,
        "clear keeps the token"
    );
    let loaded = stage.output(&["checkpoint", "load", &job.name]).await;
    assert_eq!((code(&loaded), loaded.stdout.as_slice()), (0, b"".as_slice()));
    let too_much = vec![b'x'; 600 * 1024];
    assert_eq!(save(&stage, &saving(&newer), &too_much).await, 2);
}

async fn nonsense_tokens_are_refused(stage: Arc<Stage>) {
    let job = stage.job("nonsense");
    for (token, expected) in [
        ("", 2),
        ("-1", 2),
        ("seventeen", 2),
        ("18446744073709551616", 2),
        ("0", 77),
        ("18446744073709551615", 77),
    ] {
        for args in [
            &["checkpoint", "load", &job.name][..],
            &["checkpoint", "save", &job.name, "--step", "b"],
            &["checkpoint", "clear", &job.name],
        ] {
            let token = format!("--token={token}");
            let output = stage.output(&[args, &[token.as_str()]].concat()).await;
            assert_eq!(code(&output), expected, "{args:?} {token}: {:?}", words(&output));
        }
    }
    // Nobody was locked out by it.
    let token = stage.token().await.to_string();
    assert_eq!(
        code(
            &stage
                .output(&["checkpoint", "load", &job.name, "--token", &token])
                .await
        ),
        0
    );
}
