//! A picture of one run: faults, who led, and how everybody's calls ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::check::{Troubles, intervals};
use crate::history::{Call, Line, Outcome, Trouble, What, calls};

const LEFT: f64 = 132.0;
const WIDTH: f64 = 1400.0;
const LANE: f64 = 48.0;
const TOP: f64 = 96.0;
const ROW: f64 = 22.0;
const LED: f64 = 36.0;
/// How finely calls are counted.
const STEP: u64 = 250_000_000;
const FONT: &str = "font-family='ui-sans-serif,system-ui,sans-serif'";
const INK: &str = "#1f2937";
const FAINT: &str = "#9ca3af";
/// One colour for each client.
const COLOURS: [&str; 6] = ["#2563eb", "#db2777", "#0891b2", "#65a30d", "#b45309", "#475569"];
/// How calls end, from the baseline up, and what is drawn of it at least.
const ENDS: [(&str, &str, f64); 4] = [
    ("ok", "#34d399", 0.0),
    ("definite failure", "#94a3b8", 2.0),
    ("not sent", "#f59e0b", 2.0),
    ("unknown", "#9f1239", 3.0),
];

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
        let throughput = TOP + faults.len().max(1) as f64 * ROW + 18.0;
        let lanes = throughput + 92.0;
        let elections: BTreeSet<String> = intervals(self.lines)
            .into_iter()
            .map(|led| led.leadership.election)
            .collect();
        let led = lanes + self.clients.len() as f64 * LANE + 14.0;
        let bottom = led + elections.len() as f64 * LED;
        let (width, height) = (LEFT + WIDTH + 28.0, bottom + 52.0);
        let _ = write!(
            self.svg,
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' {FONT} font-size='12' fill='{INK}'>\n\
             <rect width='{width}' height='{height}' fill='#ffffff'/>\n\
             <text x='24' y='34' font-size='20' font-weight='600'>{}</text>\n\
             <text x='24' y='55' fill='#6b7280'>{}</text>\n",
            escaped(title),
            escaped(&self.figures())
        );
        self.axis(bottom + 2.0);
        self.faults(&faults, bottom + 2.0);
        self.throughput(throughput);
        self.clients(lanes);
        self.leaders(led, &elections);
        self.legend(bottom + 34.0);
        self.svg.push_str("</svg>\n");
        self.svg
    }

    fn figures(&self) -> String {
        let ours = self.calls.iter().filter(|call| call.who.starts_with('c'));
        let unknown = ours.clone().filter(|call| ended(call).1 == 3).count();
        format!(
            "{} calls, {unknown} of them of unknown outcome · {} faults · {} leaderships · {:.0} s",
            ours.count(),
            self.troubles.spans.len(),
            intervals(self.lines).len(),
            (self.to - self.from) as f64 / 1e9
        )
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
                let (x, y) = (self.x(span.from), TOP + row as f64 * ROW);
                let width = (self.x(span.to) - x).max(3.0);
                let colour = match span.trouble {
                    Trouble::Servers => "#dc2626",
                    Trouble::Ways => "#ea580c",
                    Trouble::Client => "#7c3aed",
                    Trouble::None => FAINT,
                };
                let text = escaped(&format!("{} · {}", span.name, span.target));
                self.put(format_args!(
                    "<rect x='{x:.1}' y='{y:.1}' width='{width:.1}' height='{:.1}' fill='{colour}' opacity='0.06'/>\
                     <rect x='{x:.1}' y='{y:.1}' width='{width:.1}' height='17' rx='3' fill='{colour}' opacity='0.22'/>\
                     <rect x='{x:.1}' y='{y:.1}' width='2.5' height='17' rx='1' fill='{colour}'/>\
                     <text x='{:.1}' y='{:.1}' font-size='11' fill='{colour}'>{text}</text>",
                    bottom - y,
                    x + 6.0,
                    y + 12.5
                ));
            }
        }
    }

    /// Calls of our clients that ended well, a second.
    fn throughput(&mut self, y: f64) {
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

    /// For each client how its calls ended in each quarter of a second, where it lived.
    fn clients(&mut self, y: f64) {
        let room = LANE - 14.0;
        let clients = self.clients.clone();
        let mut counts: BTreeMap<(usize, u64), [usize; ENDS.len()]> = BTreeMap::new();
        for call in &self.calls {
            let who = role(&call.who);
            if let Some(client) = clients.iter().position(|client| *client == who) {
                let (at, how) = ended(call);
                counts.entry((client, at.saturating_sub(self.from) / STEP)).or_default()[how] += 1;
            }
        }
        let most = counts
            .values()
            .map(|ends| ends.iter().sum::<usize>())
            .max()
            .unwrap_or(1);
        for (number, client) in clients.iter().enumerate() {
            let base = y + number as f64 * LANE + room;
            self.label(
                base - room / 2.0 + 4.0,
                if client.starts_with('b') { "bare client" } else { client },
            );
            if !client.starts_with('b') {
                self.put(format_args!(
                    "<rect x='{}' y='{:.1}' width='6' height='{room}' rx='2' fill='{}'/>",
                    LEFT - 9.0,
                    base - room,
                    colour(number)
                ));
            }
            let mut lives: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
            for line in self.lines.iter().filter(|line| role(&line.who) == *client) {
                lives.entry(&line.who).or_insert((line.at, line.at)).1 = line.at;
            }
            for (from, to) in lives.into_values() {
                let (x, width) = (self.x(from), self.x(to) - self.x(from));
                let y = base - room;
                self.put(format_args!(
                    "<rect x='{x:.1}' y='{y:.1}' width='{width:.1}' height='{room}' rx='3' fill='#f3f4f6' opacity='0.7'/>"
                ));
            }
        }
        let width = WIDTH * STEP as f64 / (self.to - self.from).max(1) as f64;
        for ((client, step), ends) in counts {
            let mut top = y + client as f64 * LANE + room;
            let x = self.x(self.from + step * STEP);
            for ((_, colour, least), count) in ENDS.iter().zip(ends).filter(|(_, count)| *count > 0) {
                let height = (room * count as f64 / most as f64).max(*least);
                top -= height;
                self.put(format_args!(
                    "<rect x='{x:.1}' y='{top:.1}' width='{:.1}' height='{height:.1}' fill='{colour}'/>",
                    (width - 0.6).min(LEFT + WIDTH - x).max(0.6)
                ));
            }
        }
    }

    fn leaders(&mut self, y: f64, elections: &BTreeSet<String>) {
        for (number, election) in elections.iter().enumerate() {
            let y = y + number as f64 * LED;
            let name = election.rsplit('/').next().unwrap_or(election);
            self.label(y + 17.0, &format!("leader, {name}"));
            for led in intervals(self.lines)
                .iter()
                .filter(|led| led.leadership.election == *election)
            {
                let who = role(&led.who);
                let colour = colour(
                    self.clients
                        .iter()
                        .position(|client| *client == who)
                        .unwrap_or_default(),
                );
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
        let calls = ENDS.map(|(how, colour, _)| (colour, format!("calls: {how}")));
        let faults = [
            ("#dc2626", "fault of servers"),
            ("#ea580c", "fault of the ways"),
            ("#7c3aed", "fault of a client"),
        ];
        let faults = faults.map(|(colour, what)| (colour, what.to_owned()));
        let entries = calls.into_iter().chain(faults);
        let mut x = LEFT;
        for (colour, text) in entries {
            self.put(format_args!(
                "<rect x='{x:.1}' y='{:.1}' width='10' height='10' rx='2' fill='{colour}'/>\
                 <text x='{:.1}' y='{y:.1}' font-size='11'>{text}</text>",
                y - 9.0,
                x + 15.0
            ));
            x += 36.0 + 6.4 * text.len() as f64;
        }
    }
}

/// When a call ended, or began if it never did, and how: an index of [`ENDS`].
fn ended(call: &Call) -> (u64, usize) {
    match &call.end {
        Some((at, Outcome::Found { .. } | Outcome::Done { .. })) => (*at, 0),
        Some((at, Outcome::Unknown { .. })) => (*at, 3),
        Some((at, Outcome::NotSent { .. })) => (*at, 2),
        Some((at, _)) => (*at, 1),
        None => (call.from, 3),
    }
}

fn colour(client: usize) -> &'static str {
    COLOURS[client % COLOURS.len()]
}

/// `c1` of `c1.0`.
fn role(who: &str) -> String {
    who.split('.').next().unwrap_or_default().to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&#39;")
}
