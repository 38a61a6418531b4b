//! Picture of all scenarios, as SVG: the use of devices of each, then the pods that wait in all of them.

use examples::simulation::{Summary, Use};
use plotters::backend::DrawingBackend;
use plotters::coord::Shift;
use plotters::prelude::{
    BindKeyPoints, ChartBuilder, Color, DrawingArea, IntoDrawingArea, LineSeries, Palette, Palette99, PathElement,
    SVGBackend, SeriesLabelPosition, WHITE,
};

use super::print::{Scenario, time};

/// Size of the picture of a scenario, in pixels.
const SIZE: (u32, u32) = (960, 240);

/// Number of equal times between the labels of the day.
const LABELS: u64 = 12;

/// Reason that there is no picture.
#[derive(Clone, Debug, thiserror::Error)]
#[error("--svg: {0}")]
pub(crate) struct PictureError(String);

/// Line with its name.
struct Line<'l> {
    name: &'l str,
    /// Begin of each part of the day in milliseconds, and the value.
    points: Vec<(u64, u64)>,
}

/// Draws the picture.
///
/// # Errors
/// The drawing library refuses the picture.
pub(crate) fn picture(scenarios: &[Scenario]) -> Result<String, PictureError> {
    let rows = u32::try_from(scenarios.len()).unwrap_or(u32::MAX).saturating_add(1);
    let mut svg = String::new();
    draw(scenarios, &SVGBackend::with_string(&mut svg, (SIZE.0, SIZE.1.saturating_mul(rows))).into_drawing_area())
        .map_err(|error| PictureError(error.to_string()))?;
    Ok(svg)
}

type Drawn<B> = Result<(), plotters::drawing::DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

fn draw<B: DrawingBackend>(scenarios: &[Scenario], area: &DrawingArea<B, Shift>) -> Drawn<B> {
    area.fill(&WHITE)?;
    let panels = area.split_evenly((scenarios.len().saturating_add(1), 1));
    for (panel, Scenario { name, summary, .. }) in panels.iter().zip(scenarios) {
        let lines = summary.devices.iter().map(|used| Line { name: &used.name, points: percents(used, summary) });
        draw_panel(panel, &format!("{name}: devices in use, %"), &lines.collect::<Vec<_>>(), 100, summary.duration)?;
    }
    let lines: Vec<Line<'_>> = scenarios.iter().map(waiting).collect();
    let most = scenarios.iter().map(|scenario| scenario.summary.waiting.most).max().unwrap_or_default();
    let duration = scenarios.iter().map(|scenario| scenario.summary.duration).max().unwrap_or_default();
    if let Some(panel) = panels.last() {
        draw_panel(panel, "waiting pods", &lines, most.max(1), duration)?;
    }
    area.present()
}

fn draw_panel<B: DrawingBackend>(
    panel: &DrawingArea<B, Shift>,
    title: &str,
    lines: &[Line<'_>],
    most: u64,
    duration: u64,
) -> Drawn<B> {
    let labels = (0..=LABELS).map(|label| duration / LABELS * label).collect();
    let mut chart = ChartBuilder::on(panel)
        .caption(title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(24)
        .y_label_area_size(48)
        .build_cartesian_2d((0..duration).with_key_points(labels), 0..most)?;
    chart.configure_mesh().light_line_style(WHITE).x_label_formatter(&|at| time(*at)).draw()?;
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

fn waiting(Scenario { name, summary, .. }: &Scenario) -> Line<'_> {
    let begins = (0..).map(|index: u64| index.saturating_mul(summary.part));
    let mean = |(index, sum): (usize, &u64)| sum.checked_div(summary.part_len(index)).unwrap_or_default();
    Line { name, points: begins.zip(summary.waiting.parts.iter().enumerate().map(mean)).collect() }
}
