use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use coord_api::{Class, Instant};
use etcd_client::{
    DeleteResponse, GetResponse, LeaseGrantResponse, LeaseRevokeResponse, LeaseTimeToLiveResponse, ResponseHeader,
    TxnResponse,
};
use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::marked::SentMark;
use super::{Link, Pool};
use crate::failure::{Failure, Reason};
use crate::keyspace::unsigned;

/// An endpoint that has not answered anything for this long gets a new connection.
const SILENCE: Duration = Duration::from_millis(1500);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How often a request may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It changes nothing, or the same again changes nothing: any answer will do.
    Freely,
    /// A write with a guard that lets it happen at most once: it may be sent again, but a refusal counts only if no
    /// other copy may have caused it.
    Guarded,
    /// A write that must not be sent twice.
    Once,
}

/// By when, and how often a request may be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) start: Instant,
    pub(crate) limit: Duration,
    pub(crate) repeat: Repeat,
    /// An answer that shows an older state than this does not count.
    pub(crate) at_least: u64,
}

impl Call {
    pub(crate) fn deadline(&self) -> Instant {
        self.start + self.limit
    }

    pub(crate) fn repeat(self, repeat: Repeat) -> Call {
        Call { repeat, ..self }
    }
}

/// An answer's revision of the store.
pub(crate) trait Revision {
    fn header(&self) -> Option<&ResponseHeader>;
    /// Whether a guard refused it: then it counts only if no other copy of the request may have been the reason.
    fn refused(&self) -> bool {
        false
    }
}

/// One request on its way, with what is needed to judge its end.
struct Flight<T> {
    index: usize,
    link: Arc<Link>,
    login: u64,
    sent: SentMark,
    start: Instant,
    result: Result<T, Failure>,
}

impl Pool {
    /// Sends a request until an answer counts or the deadline comes: to the preferred endpoint, to the next one when it
    /// fails or is slow, and around again.
    pub(crate) async fn call<T, F, Fut>(&self, call: Call, request: F) -> Result<T, Failure>
    where
        T: Revision,
        F: Fn(Arc<Link>) -> Fut,
        Fut: Future<Output = Result<T, etcd_client::Error>>,
    {
        let (deadline, writes) = (call.deadline(), call.repeat != Repeat::Freely);
        let mut flights = FuturesUnordered::new();
        let mut launched: Vec<(usize, Arc<Link>, SentMark, Instant)> = Vec::new();
        let mut round = self.order().into_iter();
        let mut pause = FIRST_PAUSE;
        // Whether a copy left and ended without an answer: it may have happened.
        let mut unsettled = false;
        let mut refusal: Option<Result<T, Failure>> = None;
        let mut last: Option<Failure> = None;
        loop {
            if refusal.is_none()
                && (flights.is_empty() || call.repeat != Repeat::Once)
                && let Some(index) = round.next()
            {
                let (link, sent, start) = (self.endpoints[index].link(), SentMark::default(), self.env.now());
                launched.push((index, link.clone(), sent.clone(), start));
                let request = &request;
                flights.push(async move {
                    let mut login = 0;
                    let result = async {
                        login = link.login().await?;
                        let outcome = sent.watch(request(link.clone())).await;
                        outcome.map_err(|error| Failure::of(&error, !sent.recall()))
                    };
                    let result = result.await;
                    Flight {
                        index,
                        link,
                        login,
                        sent,
                        start,
                        result,
                    }
                });
            }
            let wake = match (flights.is_empty(), round.len()) {
                (true, 0) => self.env.now() + pause,
                (true, _) => self.env.now(),
                (false, 0) => self.env.now() + SILENCE,
                (false, _) => self.env.now() + self.hedge(),
            };
            let waited = wake.min(deadline);
            tokio::select! {
                biased;
                Some(flight) = flights.next() => {
                    let Flight { index, link, login, sent, start, result } = flight;
                    launched.retain(|(_, _, other, _)| !other.same(&sent));
                    match result {
                        Ok(answer) => {
                            self.endpoints[index].hear(&self.env);
                            let revision = answer.header().map_or(0, |header| unsigned(header.revision()));
                            if revision < call.at_least {
                                self.suspect(index);
                                last = Some(Failure::unavailable(Class::NotSent, "the store showed an old state"));
                                continue;
                            }
                            self.saw(revision);
                            if writes && answer.refused() && (unsettled || !flights.is_empty()) {
                                refusal = Some(Ok(answer));
                            } else {
                                self.outran(&launched, start);
                                return Ok(answer);
                            }
                        }
                        Err(failure) if failure.reason == Reason::Token => {
                            self.endpoints[index].hear(&self.env);
                            // Refused before it was executed; with a new token it may work.
                            match self.env.timeout_at(deadline, link.login_again(login)).await {
                                Some(Ok(_)) if last.as_ref().is_none_or(|last| last.reason != Reason::Token) => {
                                    round = std::iter::once(index).chain(round).collect::<Vec<_>>().into_iter();
                                    last = Some(Failure { class: Class::NotSent, ..failure });
                                }
                                Some(Ok(_)) | None => last = Some(Failure { class: Class::NotSent, ..failure }),
                                Some(Err(failure)) if failure.is_transient() => last = Some(failure),
                                // A copy that went elsewhere may have happened all the same.
                                Some(Err(failure)) if writes && (unsettled || !flights.is_empty()) => {
                                    refusal = Some(Err(failure));
                                }
                                Some(Err(failure)) => return Err(failure),
                            }
                        }
                        Err(failure) if !failure.is_transient() => {
                            self.endpoints[index].hear(&self.env);
                            if writes && (unsettled || !flights.is_empty()) {
                                refusal = Some(Err(failure));
                            } else {
                                return Err(failure);
                            }
                        }
                        Err(failure) => {
                            self.suspect(index);
                            if failure.class == Class::Unknown {
                                unsettled = true;
                                if call.repeat == Repeat::Once {
                                    return Err(failure);
                                }
                            }
                            last = Some(failure);
                        }
                    }
                    if let (true, Some(refused)) = (flights.is_empty(), refusal.take_if(|_| flights.is_empty())) {
                        return match (unsettled, refused) {
                            (false, refused) => refused,
                            (true, Err(failure)) => Err(Failure { class: Class::Unknown, ..failure }),
                            // Perhaps by the copy without an answer, whatever became of the last one.
                            (true, Ok(_)) => {
                                Err(last.map_or_else(|| Failure::deadline(true, call.limit), Failure::unknown))
                            }
                        };
                    }
                }
                () = self.env.sleep_until(waited) => {
                    if waited == deadline {
                        let sent = unsettled || launched.iter().any(|(_, _, sent, _)| !sent.recall());
                        launched.iter().for_each(|(index, ..)| self.suspect(*index));
                        return Err(match last {
                            Some(last) if launched.is_empty() => {
                                let class = if sent { Class::Unknown } else { Class::NotSent };
                                Failure { class, ..last }
                            }
                            last => Failure::deadline(sent, call.limit).after(last.as_ref()),
                        });
                    }
                    if round.len() == 0 && (flights.is_empty() || call.repeat != Repeat::Once) {
                        for (index, link, _, start) in &launched {
                            if !self.endpoints[*index].heard_since(*start) {
                                self.suspect(*index);
                                self.endpoints[*index].relink(link);
                            }
                        }
                        if flights.is_empty() {
                            pause = (pause * 2).min(LONGEST_PAUSE);
                        }
                        round = self.order().into_iter();
                    }
                }
            }
        }
    }

    /// Somebody answered who was asked at `start`: those who were asked earlier are slow.
    fn outran(&self, launched: &[(usize, Arc<Link>, SentMark, Instant)], start: Instant) {
        self.took(self.env.now() - start);
        for (index, _, _, earlier) in launched {
            if *earlier < start {
                self.suspect(*index);
            }
        }
    }
}

macro_rules! revisions {
    ($($answer:ty),*) => {
        $(impl Revision for $answer {
            fn header(&self) -> Option<&ResponseHeader> {
                <$answer>::header(self)
            }
        })*
    };
}
revisions!(
    GetResponse,
    DeleteResponse,
    LeaseGrantResponse,
    LeaseRevokeResponse,
    LeaseTimeToLiveResponse
);

impl Revision for TxnResponse {
    fn header(&self) -> Option<&ResponseHeader> {
        TxnResponse::header(self)
    }

    fn refused(&self) -> bool {
        !self.succeeded()
    }
}
