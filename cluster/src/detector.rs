use std::collections::VecDeque;
use std::time::Duration;

/// When silence becomes suspicion.
#[derive(Debug, Clone)]
pub struct DetectorConfig {
    /// The `phi` above which a node is suspected: 8 fits most networks, 12 fits clouds.
    pub threshold: f64,
    /// How many intervals between heartbeats are remembered.
    pub history: usize,
    /// The least standard deviation assumed, so that very regular heartbeats do not make the detector nervous.
    pub min_deviation: Duration,
    /// A pause that is no reason for suspicion: garbage collection, a busy machine, a lost heartbeat or two.
    pub acceptable_pause: Duration,
    /// The interval assumed before the first heartbeats have come.
    pub first_interval: Duration,
}

impl Default for DetectorConfig {
    fn default() -> Self {
        Self {
            threshold: 8.0,
            history: 200,
            min_deviation: Duration::from_millis(100),
            acceptable_pause: Duration::from_secs(3),
            first_interval: Duration::from_secs(1),
        }
    }
}

impl DetectorConfig {
    /// The values for networks that hiccup, such as those of public clouds.
    pub fn cloud() -> Self {
        Self {
            threshold: 12.0,
            ..Self::default()
        }
    }

    /// After how many standard deviations beyond the mean `phi` reaches the threshold.
    fn deviations_to_threshold(&self) -> f64 {
        let (mut low, mut high) = (0.0, 40.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if phi_of(middle) < self.threshold {
                low = middle
            } else {
                high = middle
            }
        }
        high
    }
}

/// The phi-accrual failure detector after Hayashibara and others: instead of yes or no it gives a value that grows
/// with the silence, on a scale that adapts to how regular the heartbeats have been.
#[derive(Debug, Clone)]
pub struct PhiAccrual {
    config: DetectorConfig,
    deviations: f64,
    intervals: VecDeque<f64>,
    sum: f64,
    sum_of_squares: f64,
    /// When the last heartbeat came; intervals are measured between these.
    last_heartbeat: Duration,
    /// The last sign of life of any kind.
    last_sign: Duration,
    heard: bool,
}

impl PhiAccrual {
    /// A detector for a node that was not heard of before `now`.
    pub fn new(config: &DetectorConfig, now: Duration) -> Self {
        let mut detector = Self {
            deviations: config.deviations_to_threshold(),
            config: config.clone(),
            intervals: VecDeque::new(),
            sum: 0.0,
            sum_of_squares: 0.0,
            last_heartbeat: now,
            last_sign: now,
            heard: false,
        };
        // Two made-up intervals around the expected one: an estimate with a wide deviation until facts replace it.
        let first = config.first_interval.as_secs_f64();
        detector.remember(first * 0.75);
        detector.remember(first * 1.25);
        detector
    }

    /// A heartbeat came.
    pub fn heartbeat(&mut self, now: Duration) {
        let interval = now.saturating_sub(self.last_heartbeat);
        // The first interval started when watching did, not with a heartbeat; and the silence of an outage that is
        // over says nothing about the rhythm of a healthy node.
        if self.heard && interval < self.config.acceptable_pause + self.config.first_interval {
            self.remember(interval.as_secs_f64());
        }
        self.heard = true;
        self.last_heartbeat = now;
        self.last_sign = self.last_sign.max(now);
    }

    /// The node showed life without being asked: refreshes, but says nothing about its rhythm.
    pub fn sign_of_life(&mut self, now: Duration) {
        self.last_sign = self.last_sign.max(now);
    }

    /// The watcher itself slept for `pause`; the silence was its own.
    pub fn forgive(&mut self, pause: Duration) {
        self.last_sign += pause;
        self.last_heartbeat += pause;
    }

    /// How unlikely the present silence is: -log10 of the probability that a heartbeat is still to come.
    pub fn phi(&self, now: Duration) -> f64 {
        let silence = now.saturating_sub(self.last_sign).as_secs_f64();
        let (mean, deviation) = self.rhythm();
        phi_of((silence - mean - self.config.acceptable_pause.as_secs_f64()) / deviation)
    }

    /// When `phi` will have reached the threshold if nothing is heard until then.
    pub fn deadline(&self) -> Duration {
        let (mean, deviation) = self.rhythm();
        self.last_sign + self.config.acceptable_pause + Duration::from_secs_f64(mean + self.deviations * deviation)
    }

    fn rhythm(&self) -> (f64, f64) {
        let count = self.intervals.len().max(1) as f64;
        let mean = self.sum / count;
        let variance = (self.sum_of_squares / count - mean * mean).max(0.0);
        (
            mean,
            variance.sqrt().max(self.config.min_deviation.as_secs_f64()).max(1e-6),
        )
    }

    fn remember(&mut self, interval: f64) {
        if self.intervals.len() >= self.config.history.max(2)
            && let Some(oldest) = self.intervals.pop_front()
        {
            self.sum -= oldest;
            self.sum_of_squares -= oldest * oldest;
        }
        self.intervals.push_back(interval);
        self.sum += interval;
        self.sum_of_squares += interval * interval;
    }
}

/// `phi` for a silence that is `y` standard deviations beyond the mean, by the usual logistic approximation of the
/// normal distribution.
fn phi_of(y: f64) -> f64 {
    let e = (-y * (1.5976 + 0.070566 * y * y)).exp();
    if y > 0.0 {
        -(e / (1.0 + e)).log10()
    } else {
        -(1.0 - 1.0 / (1.0 + e)).log10()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_regular_heartbeats(config: &DetectorConfig) -> (PhiAccrual, Duration) {
        let mut detector = PhiAccrual::new(config, Duration::ZERO);
        let mut now = Duration::ZERO;
        for _ in 0..300 {
            now += Duration::from_secs(1);
            detector.heartbeat(now);
        }
        (detector, now)
    }

    #[test]
    fn phi_grows_with_silence_and_crosses_the_threshold_at_the_deadline() {
        let (detector, now) = after_regular_heartbeats(&DetectorConfig::default());
        assert!(
            detector.phi(now + Duration::from_secs(2)) < 1.0,
            "within the acceptable pause"
        );
        let deadline = detector.deadline();
        assert!(detector.phi(deadline - Duration::from_millis(20)) < 8.0);
        assert!(detector.phi(deadline + Duration::from_millis(1)) >= 8.0);
        assert!(
            deadline - now < Duration::from_secs(5),
            "a crash is noticed within five seconds"
        );
    }

    #[test]
    fn the_cloud_threshold_waits_longer() {
        let (default, _) = after_regular_heartbeats(&DetectorConfig::default());
        let (cloud, _) = after_regular_heartbeats(&DetectorConfig::cloud());
        assert!(cloud.deadline() > default.deadline());
    }

    #[test]
    fn irregular_heartbeats_make_it_more_patient() {
        let mut irregular = PhiAccrual::new(&DetectorConfig::default(), Duration::ZERO);
        let mut now = Duration::ZERO;
        for i in 0..300 {
            now += Duration::from_millis(if i % 2 == 0 { 300 } else { 1700 });
            irregular.heartbeat(now);
        }
        let (regular, end) = after_regular_heartbeats(&DetectorConfig::default());
        assert!(irregular.deadline() - now > regular.deadline() - end);
    }

    #[test]
    fn an_own_pause_is_forgiven() {
        let (mut detector, now) = after_regular_heartbeats(&DetectorConfig::default());
        let later = now + Duration::from_secs(60);
        assert!(detector.phi(later) > 8.0);
        detector.forgive(Duration::from_secs(60));
        assert!(detector.phi(later) < 1.0);
    }
}
