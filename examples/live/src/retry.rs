//! Calls that are repeated until they are answered, within a limit.

use std::time::Duration;

use kube::Error;
use kube::runtime::utils::Backoff;

use super::failure::{Trouble, trouble};

/// Time after which an answer is taken for lost.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of times that a call is made.
const ATTEMPTS: u32 = 10;

/// Pauses between attempts: doubled each time, up to a longest one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pauses {
    next: Duration,
    longest: Duration,
}

impl Pauses {
    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(10);

    /// Returns pauses that grow up to a longest one.
    #[must_use]
    pub const fn up_to(longest: Duration) -> Self {
        Self { next: Self::FIRST, longest }
    }
}

impl Default for Pauses {
    fn default() -> Self {
        Self::up_to(Self::LONGEST)
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.longest);
        Some(pause)
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        *self = Self::up_to(self.longest);
    }
}

/// Answer to a call that may have been made several times.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "an answer, and what went before")]
pub struct Answered<T> {
    /// Last answer.
    pub outcome: Result<T, Error>,
    /// True if an earlier attempt had no answer: it may have been carried out, and the last answer be about its result.
    pub was_lost: bool,
}

/// Waits for the answer to a call that is made once, for ten seconds at most.
///
/// # Errors
/// Those of the call; there is no answer.
pub async fn once<T>(call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, call).await;
    answer.unwrap_or_else(|_| Err(Error::Service("no answer within ten seconds".into())))
}

/// Makes a call, again if there is no answer or the server asks for patience: ten times in all, within half a minute unless
/// the server is silent.
pub async fn answered<T, F: Future<Output = Result<T, Error>>>(call: impl Fn() -> F) -> Answered<T> {
    answered_within(ATTEMPTS, call).await
}

/// Makes a call as [`answered`] does, a number of times at most.
pub async fn answered_within<T, F: Future<Output = Result<T, Error>>>(most: u32, call: impl Fn() -> F) -> Answered<T> {
    let (mut pauses, mut was_lost, mut attempts) = (Pauses::default(), false, 0_u32);
    loop {
        let outcome = once(call()).await;
        attempts = attempts.saturating_add(1);
        let kind = match &outcome {
            Err(error) if attempts < most => trouble(error),
            _ => return Answered { outcome, was_lost },
        };
        if !matches!(kind, Trouble::Unanswered | Trouble::Later) {
            return Answered { outcome, was_lost };
        }
        was_lost |= kind == Trouble::Unanswered;
        tokio::time::sleep(pauses.next().unwrap_or(Pauses::LONGEST)).await;
    }
}
