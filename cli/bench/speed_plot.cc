#include "cli/bench/speed_plot.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/plot/axis_scale.h"
#include "cli/terminal/printable.h"
#include "core/format.h"

namespace cria::cli {
namespace {

using Json = nlohmann::ordered_json;

double NumberIn(const Json& row, const char* field) { return row[field].get<double>(); }

bool IsPrompt(const Json& row) { return NumberIn(row, "n_prompt") > 0; }

// What a test has a number of. A chart is over one of these, and lines differ in the others.
struct Variable {
  const char* name;  // "Speed over ...".
  // With its unit.
  const char* axis_title_of_prompts;
  const char* axis_title_of_generating;
  AxisScale scale;
  double (*value)(const Json& row);
  // Describes a test by its value: "4 threads". For one value, so that the text is singular.
  std::string (*text)(const Json& row, const std::string& value);
};

const char* RowsField(const Json& row) { return IsPrompt(row) ? "n_prompt" : "n_parallel"; }

std::string WithNoun(const std::string& value, const char* noun) {
  return Format("{} {}{}", value, noun, value == "1" ? "" : "s");
}

const Variable kVariables[] = {
    {"depth", "tokens in the context before", "tokens in the context before", AxisScale::kLinear,
     [](const Json& row) { return NumberIn(row, "n_depth"); },
     [](const Json&, const std::string& value) { return "depth " + value; }},
    {"rows", "tokens of the prompt", "sequences that generate together", AxisScale::kLog2,
     [](const Json& row) { return NumberIn(row, RowsField(row)); },
     [](const Json& row, const std::string& value) {
       return IsPrompt(row) ? "prompt of " + value : WithNoun(value, "sequence");
     }},
    {"threads", "threads", "threads", AxisScale::kLinear,
     [](const Json& row) {
       const bool is_batch = NumberIn(row, "n_prompt") > 1;
       return NumberIn(row, is_batch ? "n_threads_batch" : "n_threads");
     },
     [](const Json&, const std::string& value) { return WithNoun(value, "thread"); }}};

// A line's name: how its test differs from others in all but `over`.
std::string LineName(std::span<const Json> rows, const Json& row, const Variable& over) {
  std::string name;
  for (const Variable& variable : kVariables) {
    const double value = variable.value(row);
    const bool is_common = std::ranges::all_of(rows, [&](const Json& other) {
      return IsPrompt(other) != IsPrompt(row) || variable.value(other) == value;
    });
    if (&variable == &over || is_common) continue;
    name += (name.empty() ? "" : ", ") + variable.text(row, AxisText(AxisUnit::kNumber, value));
  }
  if (!name.empty()) return name;
  return IsPrompt(row) ? "prompt" : "generating";
}

Chart SpeedOver(std::span<const Json> rows, const Variable& over, bool prompts) {
  Chart chart = {
      .title = Format("{}: speed over {}", prompts ? "Prompts" : "Generating", over.name),
      .x = {.title = prompts ? over.axis_title_of_prompts : over.axis_title_of_generating,
            .scale = over.scale,
            .is_whole = true},
      .y = {.title = "tokens/s", .begins_at_zero = true}};
  for (const Json& row : rows) {
    if (IsPrompt(row) != prompts) continue;
    const std::string name = LineName(rows, row, over);
    auto line = std::ranges::find(chart.lines, name, &PlotSeries::name);
    if (line == chart.lines.end()) {
      chart.lines.push_back({.name = name, .points = {}});
      line = chart.lines.end() - 1;
    }
    line->points.push_back({over.value(row), NumberIn(row, "avg_ts")});
  }
  for (PlotSeries& line : chart.lines) std::ranges::stable_sort(line.points, {}, &PlotPoint::x);
  std::erase_if(chart.lines, [](const PlotSeries& line) {
    return line.points.front().x == line.points.back().x;
  });
  return chart;
}

}  // namespace

Status CheckPlots(const SpeedOptions& options) {
  for (const std::vector<size_t>* const values :
       {&options.depths, &options.prompt_tokens, &options.sequences, &options.threads}) {
    if (values->size() > 1) return {};
  }
  return Fail(ErrorCode::kUsage,
              "--plot draws speed over depth, rows or threads: give several of them, such as "
              "-d 0,1024,2048 or -p 32,128,512 or -np 1,2,4 or -t 1,2,4");
}

Figure PlotSpeed(std::span<const Json> rows) {
  Figure figure = {.title = "Speed", .subtitle = "", .charts = {}};
  if (rows.empty()) return figure;
  figure.title = Format("Speed of {}", Printable(rows[0]["model_type"].get<std::string>()));
  figure.subtitle = Format("{}, keys and values in {}; means of the repetitions",
                           Printable(rows[0]["cpu_info"].get<std::string>()),
                           rows[0]["type_k"].get<std::string>());
  for (const Variable& variable : kVariables) {
    for (const bool prompts : {true, false}) {
      Chart chart = SpeedOver(rows, variable, prompts);
      if (!chart.lines.empty()) figure.charts.push_back(std::move(chart));
    }
  }
  return figure;
}

}  // namespace cria::cli
