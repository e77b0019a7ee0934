#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "cli/bench/speed_options.h"
#include "cli/plot/chart.h"
#include "cria/error.h"

namespace cria::cli {

// Fails with kUsage if the tests have one depth, one number of threads and one number of rows, so
// that there is nothing to draw.
Status CheckPlots(const SpeedOptions& options);

// A picture of the speeds of BenchRow's rows, over depth, over rows that are computed together (the
// tokens of a prompt, or the sequences that generate) and over threads: as far as a test was run
// with several of these. Prompts and generating have charts of their own.
Figure PlotSpeed(std::span<const nlohmann::ordered_json> rows);

}  // namespace cria::cli
