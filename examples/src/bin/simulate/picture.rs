//! Picture of all scenarios, as SVG: the use of devices of each, then the pods that wait in all of them.

use std::ops::Range;

use examples::simulation::{Summary, Use};
use plotters::backend::DrawingBackend;
use plotters::coord::Shift;
use plotters::prelude::{
    BindKeyPoints, ChartBuilder, Color, DrawingArea, IntoDrawingArea, LineSeries, Palette, Palette99, PathElement,
    SVGBackend, SeriesLabelPosition, WHITE,
};

use super::print::{Scenario, has_moves, has_priorities, time};
use super::seeds::{KindSeries, series};

/// Size of the picture of a scenario, in pixels.
const SIZE: (u32, u32) = (960, 240);

/// Largest number of priorities that have a panel.
const MOST_PRIORITIES: usize = 8;

/// Number of equal times between the labels of the day.
const LABELS: u64 = 12;

/// Reason that there is no picture.
#[derive(Clone, Debug, thiserror::Error)]
#[error("--svg: {0}")]
pub(crate) struct PictureError(String);

/// Line with its name.
struct Line<'l> {
    name: &'l str,
    /// Begin of each part of the day in milliseconds, or number of the day; and the value.
    points: Vec<(u64, u64)>,
}

/// Axis from zero on: its end, the distance of its labels, and how they are written.
struct Axis {
    end: u64,
    step: u64,
    label: fn(u64) -> String,
}

impl Axis {
    fn of_day(duration: u64) -> Self {
        Self { end: duration, step: duration / LABELS, label: time }
    }

    fn labels(&self) -> Vec<u64> {
        (0..=self.end.checked_div(self.step).unwrap_or_default()).map(|label| label.saturating_mul(self.step)).collect()
    }
}

/// Draws the picture of a day.
///
/// # Errors
/// The drawing library refuses the picture.
pub(crate) fn picture(scenarios: &[Scenario]) -> Result<String, PictureError> {
    let mut svg = String::new();
    let panels = scenarios.len() + 1 + priorities(scenarios).len() + usize::from(has_moves(scenarios));
    draw(scenarios, &SVGBackend::with_string(&mut svg, size(panels)).into_drawing_area())
        .map_err(|error| PictureError(error.to_string()))?;
    Ok(svg)
}

/// Draws the picture of several days: the pods of each kind that are placed in each scenario, by day.
///
/// # Errors
/// The drawing library refuses the picture.
pub(crate) fn picture_of_seeds(days: &[Vec<Scenario>]) -> Result<String, PictureError> {
    let (mut svg, kinds) = (String::new(), series(days));
    let end = days.len().saturating_sub(1).max(1) as u64;
    draw_kinds(&kinds, end, &SVGBackend::with_string(&mut svg, size(kinds.len())).into_drawing_area())
        .map_err(|error| PictureError(error.to_string()))?;
    Ok(svg)
}

/// Returns the size of a picture with some panels below each other.
fn size(panels: usize) -> (u32, u32) {
    (SIZE.0, SIZE.1.saturating_mul(u32::try_from(panels.max(1)).unwrap_or(u32::MAX)))
}

type Drawn<B> = Result<(), plotters::drawing::DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

fn draw<B: DrawingBackend>(scenarios: &[Scenario], area: &DrawingArea<B, Shift>) -> Drawn<B> {
    area.fill(&WHITE)?;
    let waiting_of: Vec<Option<i32>> =
        std::iter::once(None).chain(priorities(scenarios).into_iter().map(Some)).collect();
    let of_nodes = usize::from(has_moves(scenarios));
    let panels = area.split_evenly((scenarios.len() + of_nodes + waiting_of.len(), 1));
    for (panel, Scenario { name, summary, .. }) in panels.iter().zip(scenarios) {
        let lines = summary.devices.iter().map(|used| Line { name: &used.name, points: percents(used, summary) });
        let axis = Axis::of_day(summary.duration);
        draw_panel(panel, &format!("{name}: devices in use, %"), &lines.collect::<Vec<_>>(), 0..100, &axis)?;
    }
    let duration = scenarios.iter().map(|scenario| scenario.summary.duration).max().unwrap_or_default();
    for panel in panels.iter().skip(scenarios.len()).take(of_nodes) {
        let lines: Vec<Line<'_>> = scenarios
            .iter()
            .map(|Scenario { name, summary, .. }| Line { name, points: means(&summary.nodes_in_use, summary) })
            .collect();
        let most = scenarios.iter().map(|scenario| scenario.summary.nodes_in_use.total).max().unwrap_or_default();
        draw_panel(panel, "nodes in use", &lines, 0..most.max(1), &Axis::of_day(duration))?;
    }
    for (panel, priority) in panels.iter().skip(scenarios.len() + of_nodes).zip(waiting_of) {
        let lines: Vec<Line<'_>> = scenarios.iter().map(|scenario| waiting(scenario, priority)).collect();
        let most = lines.iter().flat_map(|line| &line.points).map(|(_, pods)| *pods).max().unwrap_or_default();
        let of = priority.map(|priority| format!(" of priority {priority}")).unwrap_or_default();
        draw_panel(panel, &format!("waiting pods{of}"), &lines, 0..most.max(1), &Axis::of_day(duration))?;
    }
    area.present()
}

fn draw_kinds<B: DrawingBackend>(kinds: &[KindSeries<'_>], end: u64, area: &DrawingArea<B, Shift>) -> Drawn<B> {
    area.fill(&WHITE)?;
    let axis = Axis { end, step: 1, label: |day| day.to_string() };
    let panels = area.split_evenly((kinds.len().max(1), 1));
    for (panel, KindSeries { kind, scenarios }) in panels.iter().zip(kinds) {
        let lines = scenarios
            .iter()
            .map(|series| Line { name: series.scenario, points: (0..).zip(series.placed.iter().copied()).collect() });
        let lines: Vec<Line<'_>> = lines.collect();
        let values = || lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
        // From a little below the least number on, so that differences are seen.
        let (least, most) = (values().min().unwrap_or_default(), values().max().unwrap_or_default());
        let range = least.saturating_mul(9) / 10..most.saturating_add(most / 5).max(1);
        draw_panel(panel, &format!("{kind}: pods placed, by day"), &lines, range, &axis)?;
    }
    area.present()
}

fn draw_panel<B: DrawingBackend>(
    panel: &DrawingArea<B, Shift>,
    title: &str,
    lines: &[Line<'_>],
    values: Range<u64>,
    axis: &Axis,
) -> Drawn<B> {
    let mut chart = ChartBuilder::on(panel)
        .caption(title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(24)
        .y_label_area_size(48)
        .build_cartesian_2d((0..axis.end).with_key_points(axis.labels()), values)?;
    chart.configure_mesh().light_line_style(WHITE).x_label_formatter(&|at| (axis.label)(*at)).draw()?;
    for (index, line) in lines.iter().enumerate() {
        let style = Palette99::pick(index).stroke_width(2);
        let drawn = chart.draw_series(LineSeries::new(line.points.iter().copied(), style))?;
        drawn.label(line.name).legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    chart
        .configure_series_labels()
        // A day begins with nothing in use, so that there is room above the lines.
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.5))
        .draw()
}

fn percents(used: &Use, summary: &Summary) -> Vec<(u64, u64)> {
    let begins = (0..).map(|index: u64| index.saturating_mul(summary.part));
    begins.zip(used.percents(summary).into_iter().map(u64::from)).collect()
}

/// Returns the line of the pods that wait: of one priority, or all.
fn waiting(Scenario { name, summary, .. }: &Scenario, priority: Option<i32>) -> Line<'_> {
    let of_priority = |priority| summary.priorities.iter().find(|of| of.priority == priority).map(|of| &of.waiting);
    let waiting = priority.map_or(Some(&summary.waiting), of_priority);
    Line { name, points: waiting.map(|waiting| means(waiting, summary)).unwrap_or_default() }
}

/// Returns the mean number in each part of the day, rounded down.
fn means(used: &Use, summary: &Summary) -> Vec<(u64, u64)> {
    let begins = (0..).map(|index: u64| index.saturating_mul(summary.part));
    let mean = |(index, sum): (usize, &u64)| sum.checked_div(summary.part_len(index)).unwrap_or_default();
    begins.zip(used.parts.iter().enumerate().map(mean)).collect()
}

/// Returns the priorities whose waiting pods have a panel, the highest first; none if there is one.
fn priorities(scenarios: &[Scenario]) -> Vec<i32> {
    if !has_priorities(scenarios) {
        return Vec::new();
    }
    let first = scenarios.first().map(|first| first.summary.priorities.as_slice()).unwrap_or_default();
    first.iter().take(MOST_PRIORITIES).map(|of| of.priority).collect()
}
