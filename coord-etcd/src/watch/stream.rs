use std::sync::Arc;
use std::time::Duration;

use coord_api::{Class, Instant, Target, Task};
use etcd_client::{WatchOptions, WatchResponse, WatchResponseStream};
use tokio::sync::mpsc;

use crate::failure::{Failure, Reason};
use crate::keyspace::Keyspace;
use crate::pool::{Link, Pool};

/// How often the stream is asked for a sign of life, and how long it has to give one: together two seconds.
const ASK_EVERY: Duration = Duration::from_millis(900);
const ANSWER_WITHIN: Duration = Duration::from_millis(900);
const OPEN_WITHIN: Duration = Duration::from_secs(2);
/// The watch that opens the stream, on a key that is never there.
const ANCHOR: i64 = 1;

/// One watch stream of one member.
pub(super) struct Stream {
    index: usize,
    link: Arc<Link>,
    requests: mpsc::UnboundedSender<Request>,
    answers: WatchResponseStream,
    /// Since when an answer to a request for progress is owed.
    asked: Option<Instant>,
    heard: Instant,
    _writer: Task,
}

enum Request {
    Create(i64, String, Option<String>),
    Cancel(i64),
    Progress,
}

impl Stream {
    /// Opens a stream at the first endpoint that takes it.
    pub(super) async fn open(pool: &Arc<Pool>, space: &Keyspace) -> Result<Stream, Failure> {
        let mut last = Failure::unavailable(Class::NotSent, "no endpoint answers");
        for index in pool.order() {
            let link = pool.endpoint(index).link();
            let deadline = pool.env.now() + OPEN_WITHIN;
            match pool
                .env
                .timeout_at(deadline, Stream::open_at(pool, space, index, &link))
                .await
            {
                Some(Ok(stream)) => return Ok(stream),
                Some(Err(failure)) if failure.is_transient() => {
                    pool.suspect(index);
                    last = failure;
                }
                Some(Err(failure)) => last = failure,
                None => {
                    pool.suspect(index);
                    pool.endpoint(index).relink(&link);
                    last = Failure::deadline(false, OPEN_WITHIN);
                }
            }
        }
        Err(last)
    }

    async fn open_at(pool: &Arc<Pool>, space: &Keyspace, index: usize, link: &Arc<Link>) -> Result<Stream, Failure> {
        let mut login = link.login().await?;
        loop {
            let anchor = WatchOptions::new().with_watch_id(ANCHOR);
            let opened = async {
                let mut stream = link.watch().watch(space.nothing(), Some(anchor)).await?;
                let first = stream.message().await?;
                Ok::<_, etcd_client::Error>((stream, first))
            };
            let refusal = match opened.await {
                Ok((stream, Some(first))) if !first.canceled() => {
                    let (mut sender, answers) = stream.split();
                    let (requests, mut outbox) = mpsc::unbounded_channel();
                    // A task of its own: sending may wait for the member to read, and meanwhile its answers must be read.
                    let writer = pool.env.spawn(async move {
                        while let Some(request) = outbox.recv().await {
                            let sent = match request {
                                Request::Create(id, key, end) => {
                                    let mut options = WatchOptions::new().with_watch_id(id).with_fragment();
                                    if let Some(end) = end {
                                        options = options.with_range(end);
                                    }
                                    sender.watch(key, Some(options)).await
                                }
                                Request::Cancel(id) => sender.cancel(id).await,
                                Request::Progress => sender.request_progress().await,
                            };
                            if sent.is_err() {
                                return;
                            }
                        }
                    });
                    return Ok(Stream {
                        index,
                        link: link.clone(),
                        requests,
                        answers,
                        asked: None,
                        heard: pool.env.now(),
                        _writer: writer,
                    });
                }
                Ok((_, Some(first))) => refused(first.cancel_reason()),
                Ok((_, None)) => Failure::unavailable(Class::NotSent, "the watch stream ended"),
                Err(error) => Failure::of(&error, false),
            };
            if refusal.reason != Reason::Token {
                return Err(refusal);
            }
            login = link.login_again(login).await?;
        }
    }

    /// Asks for a watch from now on. Answers come in the order of the requests.
    pub(super) fn create(&self, space: &Keyspace, id: i64, target: &Target) {
        let (key, end) = match target {
            Target::Key(key) => (space.name(key), None),
            Target::Children(key) => {
                let (first, end) = space.below(key);
                (first, Some(end))
            }
        };
        let _ = self.requests.send(Request::Create(id, key, end));
    }

    pub(super) fn cancel(&self, id: i64) {
        let _ = self.requests.send(Request::Cancel(id));
    }

    pub(super) async fn next(&mut self) -> Result<WatchResponse, Failure> {
        match self.answers.message().await {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(Failure::unavailable(Class::NotSent, "the watch stream ended")),
            Err(error) => Err(Failure::of(&error, false)),
        }
    }

    pub(super) fn hear(&mut self, pool: &Pool) {
        self.heard = pool.env.now();
        self.asked = None;
    }

    /// When to look at it next.
    pub(super) fn due(&self) -> Instant {
        match self.asked {
            Some(asked) => asked + ANSWER_WITHIN,
            None => self.heard + ASK_EVERY,
        }
    }

    /// Asks for a sign of life; `false` if none came in time.
    pub(super) fn check(&mut self, pool: &Pool) -> bool {
        let now = pool.env.now();
        match self.asked {
            // Much later than it was due: it was us who did not run, and answers may be waiting. Ask again.
            Some(asked) if now <= asked + ANSWER_WITHIN + ANSWER_WITHIN / 2 => return false,
            _ => {}
        }
        self.asked = Some(now);
        let _ = self.requests.send(Request::Progress);
        true
    }

    /// It fell silent or broke: the next one goes elsewhere, or through a new connection.
    pub(super) fn give_up(self, pool: &Pool, silent: bool) {
        pool.suspect(self.index);
        if silent {
            pool.endpoint(self.index).relink(&self.link);
        }
    }
}

/// Why a watch was refused.
pub(super) fn refused(reason: &str) -> Failure {
    let code = match reason {
        reason if reason.contains("permission denied") => tonic::Code::PermissionDenied,
        reason if reason.contains("auth token") => tonic::Code::Unauthenticated,
        _ => tonic::Code::Unavailable,
    };
    Failure::of(&etcd_client::Error::GRpcStatus(tonic::Status::new(code, reason)), false)
}
