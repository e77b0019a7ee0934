#pragma once

#include "cli/plot/chart.h"
#include "cli/plot/svg_text.h"

namespace cria::cli {

// What a chart of bars needs, in pixels.
double BarChartHeight(const Chart& chart);

// Draws the bars of a chart whose upper edge is at `top`, one below another, each with its name
// before it and its number behind it.
void DrawBarChart(const Chart& chart, double top, SvgText& out);

}  // namespace cria::cli
