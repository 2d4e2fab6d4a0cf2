//! A picture of how times grow with size. Both axes are logarithmic. Each way has one line.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Result, Series, shown};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 520.0;
/// The space for the axes, in pixels. On the right it is the space for the names.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 250.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 60.0;
const COLOURS: [&str; 6] = ["#0b6e4f", "#1f9e89", "#b5332a", "#e08214", "#7b3294", "#3b5b92"];

/// The folder for pictures. It is in Cargo's folder for build output.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// The times of several ways, by size.
#[derive(Default)]
pub struct Picture {
    /// The sizes, each with the median of each way.
    points: Vec<(usize, Vec<(String, Duration)>)>,
}

impl Picture {
    /// Adds what was measured at one size.
    pub fn add(&mut self, size: usize, series: &[Series]) {
        self.points.push((size, series.iter().map(|s| (s.name.clone(), s.median())).collect()));
    }

    /// Writes the picture as an SVG file.
    pub fn write(&self, path: &Path, title: &str, unit: &str) -> Result<()> {
        fs::write(path, self.svg(title, unit))?;
        Ok(())
    }

    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.points.iter().flat_map(|(_, times)| times) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    fn svg(&self, title: &str, unit: &str) -> String {
        let sizes = Scale::over(self.points.iter().map(|(size, _)| count(*size)), LEFT, WIDTH - RIGHT);
        let times = self.points.iter().flat_map(|(_, times)| times.iter().map(|(_, t)| t.as_secs_f64()));
        let times = Scale::over(times, HEIGHT - BOTTOM, TOP);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"28\" font-size=\"17\">{}</text>\n",
            plain(title)
        );
        self.axes(&mut svg, &sizes, &times, unit);
        // The names at the right end of the lines must not cover each other.
        let mut taken: Vec<f64> = Vec::new();
        for (at, name) in self.names().into_iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let points: Vec<(f64, f64)> = self
                .points
                .iter()
                .filter_map(|(size, all)| {
                    let (_, time) = all.iter().find(|(n, _)| n == name)?;
                    Some((sizes.at(count(*size)), times.at(time.as_secs_f64())))
                })
                .collect();
            line(&mut svg, &points, colour);
            let Some((x, y)) = points.last() else { continue };
            let mut label = *y + 4.0;
            while let Some(other) = taken.iter().find(|t| (*t - label).abs() < 15.0) {
                label = other + 15.0;
            }
            taken.push(label);
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{label:.1}\" fill=\"{colour}\">{}</text>",
                x + 10.0,
                plain(name)
            );
        }
        svg + "</svg>\n"
    }

    fn axes(&self, svg: &mut String, sizes: &Scale, times: &Scale, unit: &str) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for time in times.decades() {
            let y = times.at(time);
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                shown(Duration::from_secs_f64(time)).replace(".00", "").replace(".0 ", " ")
            );
        }
        for (size, _) in &self.points {
            let x = sizes.at(count(*size));
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#eee\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{size} {unit}</text>",
                bottom + 22.0
            );
        }
    }
}

/// A logarithmic axis.
struct Scale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Scale {
    /// A scale from the least to the greatest of `values`, drawn between two places.
    fn over(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Self {
        let (mut from, mut to) = (f64::MAX, f64::MIN_POSITIVE);
        for value in values {
            (from, to) = (from.min(value), to.max(value));
        }
        Self { from: from.log10() - 0.08, to: to.log10() + 0.08, start, end }
    }

    fn at(&self, value: f64) -> f64 {
        self.start + (value.log10() - self.from) / (self.to - self.from) * (self.end - self.start)
    }

    /// The powers of ten within the scale.
    fn decades(&self) -> impl Iterator<Item = f64> {
        let (from, to) = (self.from, self.to);
        (-7..=3).map(|power| 10_f64.powi(power)).filter(move |v| (from..=to).contains(&v.log10()))
    }
}

fn line(svg: &mut String, points: &[(f64, f64)], colour: &str) {
    let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        path.join(" ")
    );
    for (x, y) in points {
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
    }
}

#[allow(clippy::cast_precision_loss, reason = "a size that is drawn")]
fn count(size: usize) -> f64 {
    size.max(1) as f64
}

fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
