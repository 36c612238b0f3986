mod counted;
mod handover;
mod ops;

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::Global;
use crate::exit::Exit;

/// Measure a store as the recipes use it
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Handover(handover::Handover),
    Ops(ops::Ops),
}

// === impl Bench ===

impl Bench {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Exit> {
        match self.what {
            What::Handover(bench) => bench.run(global).await,
            What::Ops(bench) => bench.run(global).await,
        }
    }
}

/// Durations, and what they say.
#[derive(Default)]
struct Samples(Vec<Duration>);

// === impl Samples ===

impl Samples {
    fn add(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// The duration that this share of the samples does not exceed, in microseconds.
    fn quantile_us(&mut self, share: f64) -> u64 {
        self.0.sort_unstable();
        let rank = (share * self.0.len() as f64).ceil() as usize;
        let sample = self.0.get(rank.saturating_sub(1).min(self.0.len().saturating_sub(1)));
        sample.map_or(0, |sample| u64::try_from(sample.as_micros()).unwrap_or(u64::MAX))
    }
}

/// Microseconds as people read them.
fn shown(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.2} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let mut samples = Samples((1..=100).map(Duration::from_micros).collect());
        assert_eq!((samples.quantile_us(0.5), samples.quantile_us(0.99)), (50, 99));
        let mut one = Samples(vec![Duration::from_micros(7)]);
        assert_eq!((one.quantile_us(0.5), one.quantile_us(0.99)), (7, 7));
        assert_eq!(Samples::default().quantile_us(0.5), 0);
    }
}
