//! Chart of the use of devices, as text.

use examples::simulation::{Summary, Use};
use textplots::{Chart, LabelBuilder, LabelFormat, Plot, Shape};

use super::print::time;

/// Height of a chart in dots, four of which are a line of text.
const HEIGHT: u32 = 40;

/// Draws the use over the day, in percent. A column of dots is a part of the day.
pub(crate) fn chart(used: &Use, summary: &Summary) -> String {
    let percents = used.percents(summary);
    let end = u16::try_from(percents.len()).unwrap_or(u16::MAX);
    let points = (0_u16..).zip(percents).map(|(part, percent)| (f32::from(part), f32::from(percent)));
    let (shape, duration) = (Shape::Lines(&points.collect::<Vec<_>>()), time(summary.duration));
    let mut chart = Chart::new_with_y_range(end.into(), HEIGHT, 0.0, end.into(), 0.0, 100.0);
    let hours = move |at: f32| if at > 0.0 { duration.clone() } else { "0".to_owned() };
    let plotted = chart
        .lineplot(&shape)
        .x_label_format(LabelFormat::Custom(Box::new(hours)))
        .y_label_format(LabelFormat::Custom(Box::new(|percent| format!("{percent:.0} %"))));
    plotted.axis();
    plotted.figures();
    plotted.to_string()
}
