use std::time::Duration;

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: lets one call of a script pass.
    Pass,
    /// It fails before anything is sent: class [`NotSent`](coord_api::Class::NotSent).
    NotSent,
    /// It is sent and never arrives; the caller cannot tell.
    LoseRequest(GiveUp),
    /// It takes effect, and the answer is lost.
    LoseAnswer(GiveUp),
    /// It takes effect this long *after* the caller has given up.
    ArriveLate(GiveUp, Duration),
    /// The request travels this long. Longer than the deadline: the caller gives up, and it arrives all the same.
    Delay(Duration),
    /// It takes effect at once, and the answer travels this long.
    DelayAnswer(Duration),
    /// A grant or renewal succeeds, but the store ends the lease as early as it may: at
    /// [`valid_until`](coord_api::Grant::valid_until), not a ttl after the acknowledgement. Nothing to other calls.
    EndLeaseEarly,
}

/// When the caller learns that there will be no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveUp {
    /// At once, as when the connection breaks: [`Unavailable`](coord_api::ErrorKind::Unavailable).
    AtOnce,
    /// At the call's deadline, as when packets vanish: [`DeadlineExceeded`](coord_api::ErrorKind::DeadlineExceeded).
    AtDeadline,
}

impl Fault {
    /// What it is called where faults are [counted](crate::Faults::met).
    pub(crate) fn name(self) -> &'static str {
        match self {
            Fault::Pass => "pass",
            Fault::NotSent => "not sent",
            Fault::LoseRequest(_) => "request lost",
            Fault::LoseAnswer(_) => "answer lost",
            Fault::ArriveLate(..) => "arrived late",
            Fault::Delay(_) => "request delayed",
            Fault::DelayAnswer(_) => "answer delayed",
            Fault::EndLeaseEarly => "lease to end early",
        }
    }
}
