//! A picture of one run: faults, who led, and how everybody's calls ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::check::{Troubles, intervals};
use crate::history::{Call, Line, Outcome, Trouble, What, calls};

const LEFT: f64 = 132.0;
const WIDTH: f64 = 1400.0;
const LANE: f64 = 46.0;
const TOP: f64 = 64.0;
const FONT: &str = "font-family='ui-sans-serif,system-ui,sans-serif'";
const INK: &str = "#1f2937";
const FAINT: &str = "#9ca3af";
/// One colour for each client.
const COLOURS: [&str; 6] = ["#2563eb", "#d97706", "#059669", "#9333ea", "#db2777", "#0891b2"];

/// The history as an SVG picture.
pub fn timeline(title: &str, lines: &[Line]) -> String {
    Picture::new(lines).draw(title)
}

struct Picture<'a> {
    lines: &'a [Line],
    calls: Vec<Call>,
    troubles: Troubles,
    clients: Vec<String>,
    from: u64,
    to: u64,
    svg: String,
}

impl<'a> Picture<'a> {
    fn new(lines: &'a [Line]) -> Picture<'a> {
        let ready = lines.iter().filter(|line| matches!(line.what, What::Ready { .. }));
        let clients: BTreeSet<String> = ready.map(|line| role(&line.who)).collect();
        let calls = calls(lines);
        Picture {
            lines,
            from: calls.first().map_or(0, |call| call.from),
            to: lines.iter().map(|line| line.at).max().unwrap_or_default(),
            troubles: Troubles::of(lines),
            // Ours before the bare one.
            clients: clients
                .iter()
                .rev()
                .filter(|who| who.starts_with('c'))
                .rev()
                .chain(clients.iter().filter(|who| !who.starts_with('c')))
                .cloned()
                .collect(),
            calls,
            svg: String::new(),
        }
    }

    fn x(&self, at: u64) -> f64 {
        let span = self.to.saturating_sub(self.from).max(1) as f64;
        LEFT + WIDTH * (at.clamp(self.from, self.to) - self.from) as f64 / span
    }

    fn draw(mut self, title: &str) -> String {
        let faults = self.fault_rows();
        let rows = faults.len().max(1) as f64;
        let throughput = TOP + rows * 22.0 + 16.0;
        let lanes = throughput + 86.0;
        let elections: BTreeSet<String> = intervals(self.lines)
            .into_iter()
            .map(|led| led.leadership.election)
            .collect();
        let led = lanes + self.clients.len() as f64 * LANE + 18.0;
        let height = led + elections.len() as f64 * 34.0 + 56.0;
        let width = LEFT + WIDTH + 24.0;
        let mut svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' {FONT} font-size='12' fill='{INK}'>\n\
             <rect width='{width}' height='{height}' fill='#ffffff'/>\n\
             <text x='20' y='30' font-size='18' font-weight='600'>{}</text>\n",
            escaped(title)
        );
        std::mem::swap(&mut self.svg, &mut svg);
        self.axis(height - 40.0);
        self.faults(&faults, led - 8.0);
        self.throughput(throughput);
        self.clients(lanes);
        self.leaders(led, &elections);
        self.legend(height - 12.0);
        self.svg.push_str("</svg>\n");
        self.svg
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.svg.write_fmt(element);
        self.svg.push('\n');
    }

    fn label(&mut self, y: f64, text: &str) {
        let x = LEFT - 12.0;
        self.put(format_args!(
            "<text x='{x}' y='{y:.1}' text-anchor='end'>{}</text>",
            escaped(text)
        ));
    }

    fn axis(&mut self, bottom: f64) {
        let seconds = (self.to.saturating_sub(self.from)) / 1_000_000_000;
        for second in (0..=seconds).step_by(5) {
            let x = self.x(self.from + second * 1_000_000_000);
            self.put(format_args!(
                "<line x1='{x:.1}' x2='{x:.1}' y1='{}' y2='{bottom}' stroke='#f0f2f5'/>\
                 <text x='{x:.1}' y='{}' text-anchor='middle' font-size='11' fill='{FAINT}'>{second} s</text>",
                TOP - 8.0,
                TOP - 14.0
            ));
        }
    }

    /// Faults in rows, so that no two names of a row cover each other.
    fn fault_rows(&self) -> Vec<Vec<usize>> {
        let mut rows: Vec<(f64, Vec<usize>)> = vec![];
        for (number, span) in self.troubles.spans.iter().enumerate() {
            let from = self.x(span.from);
            let name = 6.4 * (span.name.len() + span.target.len() + 3) as f64;
            let to = self.x(span.to).max(from + name) + 8.0;
            match rows.iter_mut().find(|(end, _)| *end <= from) {
                Some(row) => {
                    row.0 = to;
                    row.1.push(number);
                }
                None => rows.push((to, vec![number])),
            }
        }
        rows.into_iter().map(|(_, row)| row).collect()
    }

    fn faults(&mut self, rows: &[Vec<usize>], bottom: f64) {
        self.label(TOP + 14.0, "faults");
        for (row, numbers) in rows.iter().enumerate() {
            for number in numbers {
                let span = self.troubles.spans[*number].clone();
                let (x, y) = (self.x(span.from), TOP + row as f64 * 22.0);
                let width = (self.x(span.to) - x).max(2.0);
                let colour = match span.trouble {
                    Trouble::Servers => "#dc2626",
                    Trouble::Ways => "#ea580c",
                    Trouble::Client => "#7c3aed",
                    Trouble::None => FAINT,
                };
                let text = escaped(&format!("{} · {}", span.name, span.target));
                self.put(format_args!(
                    "<rect x='{x:.1}' y='{y:.1}' width='{width:.1}' height='{:.1}' fill='{colour}' opacity='0.07'/>\
                     <rect x='{x:.1}' y='{y:.1}' width='{width:.1}' height='18' rx='3' fill='{colour}' opacity='0.25'/>\
                     <text x='{:.1}' y='{:.1}' font-size='11' fill='{colour}'>{text}</text>",
                    bottom - y,
                    x + 4.0,
                    y + 13.0
                ));
            }
        }
    }

    /// Calls that ended well, and those of unknown outcome, in each quarter of a second.
    fn throughput(&mut self, y: f64) {
        const STEP: u64 = 250_000_000;
        self.label(y + 14.0, "calls a second");
        let mut ok: BTreeMap<u64, usize> = BTreeMap::new();
        for call in &self.calls {
            if let (true, Some((at, Outcome::Found { .. } | Outcome::Done { .. }))) =
                (call.who.starts_with('c'), &call.end)
            {
                *ok.entry((at.saturating_sub(self.from)) / STEP).or_default() += 1;
            }
        }
        let most = ok.values().copied().max().unwrap_or(1).max(1);
        let steps = self.to.saturating_sub(self.from) / STEP;
        let (base, mut points) = (y + 70.0, String::new());
        for step in 0..=steps {
            let count = ok.get(&step).copied().unwrap_or_default();
            let height = 64.0 * count as f64 / most as f64;
            let x = self.x(self.from + step * STEP);
            let _ = write!(points, "{x:.1},{:.1} ", base - height);
        }
        self.put(format_args!(
            "<polygon points='{LEFT},{base} {points} {},{base}' fill='#2563eb' opacity='0.15'/>\
             <polyline points='{points}' fill='none' stroke='#2563eb' stroke-width='1.4'/>\
             <text x='{}' y='{}' text-anchor='end' font-size='11' fill='{FAINT}'>{}</text>",
            LEFT + WIDTH,
            LEFT - 12.0,
            y + 30.0,
            most * 4
        ));
    }

    fn clients(&mut self, y: f64) {
        let clients = self.clients.clone();
        for (number, client) in clients.iter().enumerate() {
            let y = y + number as f64 * LANE;
            self.label(y + 18.0, if client.starts_with('b') { "bare client" } else { client });
            // While it lives.
            let mut lives: BTreeMap<String, (u64, u64)> = BTreeMap::new();
            for line in self.lines.iter().filter(|line| role(&line.who) == *client) {
                lives.entry(line.who.clone()).or_insert((line.at, line.at)).1 = line.at;
            }
            for (from, to) in lives.into_values() {
                let (x, width) = (self.x(from), self.x(to) - self.x(from));
                self.put(format_args!(
                    "<rect x='{x:.1}' y='{:.1}' width='{width:.1}' height='20' rx='3' fill='#f3f4f6'/>",
                    y + 4.0
                ));
            }
            // Each call where it ended; those that failed reach out.
            let mut marks: BTreeMap<&str, String> = BTreeMap::new();
            for call in self.calls.iter().filter(|call| role(&call.who) == *client) {
                let (at, colour, (above, below)) = match &call.end {
                    Some((at, Outcome::Found { .. } | Outcome::Done { .. })) => (*at, "#10b981", (6.0, 22.0)),
                    Some((at, Outcome::Unknown { .. })) => (*at, "#dc2626", (0.0, 30.0)),
                    Some((at, Outcome::NotSent { .. })) => (*at, "#f59e0b", (2.0, 26.0)),
                    Some((at, _)) => (*at, "#6b7280", (8.0, 20.0)),
                    None => (call.from, "#dc2626", (0.0, 30.0)),
                };
                let mark = marks.entry(colour).or_default();
                let _ = write!(mark, "M{:.1} {:.1}V{:.1}", self.x(at), y + above, y + below);
            }
            for (colour, mark) in marks {
                self.put(format_args!(
                    "<path d='{mark}' stroke='{colour}' stroke-width='0.8' opacity='0.8'/>"
                ));
            }
        }
    }

    fn leaders(&mut self, y: f64, elections: &BTreeSet<String>) {
        for (number, election) in elections.iter().enumerate() {
            let y = y + number as f64 * 34.0;
            let name = election.rsplit('/').next().unwrap_or(election);
            self.label(y + 17.0, &format!("leader, {name}"));
            for led in intervals(self.lines)
                .iter()
                .filter(|led| led.leadership.election == *election)
            {
                let who = role(&led.who);
                let colour = self
                    .clients
                    .iter()
                    .position(|client| *client == who)
                    .unwrap_or_default();
                let colour = COLOURS[colour % COLOURS.len()];
                let (x, end) = (self.x(led.from), self.x(led.until));
                let width = (end - x).max(1.5);
                self.put(format_args!(
                    "<rect x='{x:.1}' y='{y:.1}' width='{width:.1}' height='24' rx='3' fill='{colour}' opacity='0.85'>\
                     <title>{} under token {}</title></rect>",
                    led.who, led.leadership.token
                ));
                if width > 22.0 {
                    let middle = x + width / 2.0;
                    self.put(format_args!(
                        "<text x='{middle:.1}' y='{:.1}' text-anchor='middle' fill='#ffffff' font-size='11'>{who}</text>",
                        y + 16.0
                    ));
                }
            }
        }
    }

    fn legend(&mut self, y: f64) {
        let entries = [
            ("#10b981", "ok"),
            ("#6b7280", "definite failure"),
            ("#f59e0b", "not sent"),
            ("#dc2626", "unknown, or a fault of servers"),
            ("#ea580c", "a fault of the ways"),
            ("#7c3aed", "a fault of a client"),
        ];
        let mut x = LEFT;
        for (colour, text) in entries {
            self.put(format_args!(
                "<rect x='{x:.1}' y='{:.1}' width='10' height='10' rx='2' fill='{colour}'/>\
                 <text x='{:.1}' y='{y:.1}' font-size='11'>{text}</text>",
                y - 9.0,
                x + 15.0
            ));
            x += 40.0 + 6.2 * text.len() as f64;
        }
    }
}

/// `c1` of `c1.0`.
fn role(who: &str) -> String {
    who.split('.').next().unwrap_or_default().to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&#39;")
}
