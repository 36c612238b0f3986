use std::time::Duration;

use crate::Env;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);

/// How long to wait before trying again: longer each time, never the same for two.
#[derive(Debug)]
pub(crate) struct Pace(Duration);

impl Pace {
    pub(crate) fn new() -> Pace {
        Pace(FIRST)
    }

    pub(crate) async fn wait(&mut self, env: &Env) {
        let delay = self.0 - env.random_duration(self.0 / 2);
        self.0 = (self.0 * 2).min(LONGEST);
        env.sleep(delay).await;
    }
}
