#pragma once

#include <string>

#include "cli/plot/chart.h"
#include "cria/error.h"

namespace cria::cli {

// A picture as SVG, in light or dark colours, as the reader's system wants them. It has no scripts
// and names no other files.
//
// The numbers of the picture can be read back: a series is a <g class="series"> with its name in
// data-name, and each of its points an element with the numbers in data-x and data-y, and a <title>
// that a browser shows. A level is a <g class="level"> with data-name and data-y. Bars are a
// <g class="bars"> with the chart's title in data-name, and each a <rect> with data-name and
// data-x.
std::string FigureSvg(const Figure& figure);

// Writes this into a file, which appears under its name when it is complete.
Status WriteFigure(const Figure& figure, const std::string& path);

}  // namespace cria::cli
