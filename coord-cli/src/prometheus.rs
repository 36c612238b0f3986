//! What the libraries count, as text for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

/// A recorder of counters and gauges; of histograms it keeps the count and the sum. That is all that anything here uses,
/// so that it need not bring the weight of a whole exporter.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prometheus(Arc<Mutex<BTreeMap<String, Family>>>);

#[derive(Debug)]
struct Family {
    kind: &'static str,
    /// By their labels, as Prometheus writes them.
    cells: BTreeMap<String, Arc<Cell>>,
}

/// A number, and for histograms how many were added up.
#[derive(Debug, Default)]
struct Cell {
    /// Of counters the count, of the others the bits of an `f64`.
    value: AtomicU64,
    count: AtomicU64,
}

/// A cell of an `f64`.
#[derive(Debug)]
struct Float(Arc<Cell>);

/// A cell of a count.
#[derive(Debug)]
struct Count(Arc<Cell>);

// === impl Prometheus ===

impl Prometheus {
    /// The page at `/metrics`.
    pub(crate) fn page(&self) -> String {
        let mut page = String::new();
        for (name, family) in &*self.lock() {
            // Writing to a string cannot fail.
            let _ = writeln!(page, "# TYPE {name} {}", family.kind);
            for (labels, cell) in &family.cells {
                let value = cell.value.load(Ordering::Relaxed);
                let _ = match family.kind {
                    "counter" => writeln!(page, "{name}{labels} {value}"),
                    "gauge" => writeln!(page, "{name}{labels} {}", f64::from_bits(value)),
                    _ => {
                        let count = cell.count.load(Ordering::Relaxed);
                        writeln!(
                            page,
                            "{name}_sum{labels} {}\n{name}_count{labels} {count}",
                            f64::from_bits(value)
                        )
                    }
                };
            }
        }
        page
    }

    fn cell(&self, key: &Key, kind: &'static str) -> Arc<Cell> {
        let mut families = self.lock();
        let family = families.entry(plain(key.name())).or_insert_with(|| Family {
            kind,
            cells: BTreeMap::new(),
        });
        family.cells.entry(labels(key)).or_default().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Family>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder for Prometheus {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(Count(self.cell(key, "counter"))))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(Float(self.cell(key, "gauge"))))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Float(self.cell(key, "summary"))))
    }
}

fn plain(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    name.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

fn labels(key: &Key) -> String {
    let labels: Vec<String> = key
        .labels()
        .map(|label| {
            let value = label
                .value()
                .replace('\\', r"\\")
                .replace('"', "\\\"")
                .replace('\n', r"\n");
            format!("{}=\"{value}\"", plain(label.key()))
        })
        .collect();
    if labels.is_empty() {
        String::new()
    } else {
        format!("{{{}}}", labels.join(","))
    }
}

impl CounterFn for Count {
    fn increment(&self, by: u64) {
        self.0.value.fetch_add(by, Ordering::Relaxed);
    }

    fn absolute(&self, value: u64) {
        self.0.value.fetch_max(value, Ordering::Relaxed);
    }
}

impl Float {
    fn change(&self, change: impl Fn(f64) -> f64) {
        let change = |bits| Some(change(f64::from_bits(bits)).to_bits());
        // It always gives a value: this cannot fail.
        let _ = self.0.value.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }
}

impl GaugeFn for Float {
    fn increment(&self, by: f64) {
        self.change(|value| value + by);
    }

    fn decrement(&self, by: f64) {
        self.change(|value| value - by);
    }

    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

impl HistogramFn for Float {
    fn record(&self, value: f64) {
        self.change(|sum| sum + value);
        self.0.count.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_prometheus_reads() {
        let prometheus = Prometheus::default();
        metrics::with_local_recorder(&prometheus, || {
            metrics::counter!("dropped.total", "reason" => "a \"b\"\\").increment(2);
            metrics::counter!("dropped.total", "reason" => "c").increment(1);
            metrics::gauge!("managing").set(1.0);
            metrics::gauge!("managing").decrement(0.5);
            metrics::histogram!("took").record(1.5);
            metrics::histogram!("took").record(2.0);
        });
        let page = "# TYPE dropped_total counter\ndropped_total{reason=\"a \\\"b\\\"\\\\\"} 2\n\
                    dropped_total{reason=\"c\"} 1\n# TYPE managing gauge\nmanaging 0.5\n\
                    # TYPE took summary\ntook_sum 3.5\ntook_count 2\n";
        assert_eq!(prometheus.page(), page);
    }
}
