//! Trouble of a watch: pauses that grow for as long as it lasts, and one line about it.

use std::time::Duration;

use tokio::time::Instant;

use super::retry::Pauses;

/// Time without trouble after which the next one is another.
const CALM: Duration = Duration::from_secs(60);

/// Trouble of a watch. That a list begins or that parts of it come is no end of it: only time is.
#[derive(Debug, Default)]
pub struct Outage {
    pauses: Pauses,
    last: Option<Instant>,
}

impl Outage {
    /// Notes that something went wrong. Returns the pause before the next attempt, and true if it is the first trouble after a
    /// calm time.
    pub fn goes_on(&mut self, now: Instant) -> (Duration, bool) {
        let is_new = self.last.is_none_or(|last| now.saturating_duration_since(last) > CALM);
        if is_new {
            self.pauses = Pauses::default();
        }
        // The pause itself is no calm time.
        let pause = self.pauses.next().unwrap_or(CALM);
        self.last = Some(now.checked_add(pause).unwrap_or(now));
        (pause, is_new)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{CALM, Outage};

    #[test]
    fn pauses_grow_until_it_was_calm() {
        let (begin, mut outage) = (Instant::now(), Outage::default());
        let (mut now, mut said) = (begin, 0);
        for _ in 0..20 {
            let (pause, is_new) = outage.goes_on(now);
            now += pause;
            said += usize::from(is_new);
        }
        assert_eq!(said, 1, "one line for one outage");
        assert!(now - begin > Duration::from_secs(100), "{:?}", now - begin);
        now += CALM + Duration::from_secs(1);
        assert_eq!(outage.goes_on(now), (Duration::from_millis(50), true));
    }
}
