#include "cli/plan/memory_plot.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "llm/memory_plan.h"

namespace cria::cli {
namespace {

constexpr size_t kMinContext = 256;
// Contexts from one power of two to the next.
constexpr double kContextsPerOctave = 4.0;
constexpr double kSmallShare = 0.02;
constexpr std::string_view kOtherParts = "other parts";

std::vector<size_t> Contexts(size_t chosen, size_t longest) {
  std::vector<size_t> contexts = {std::min(chosen, longest), longest};
  const double octaves = std::log2(static_cast<double>(longest) / kMinContext);
  const auto last_step = static_cast<int>(std::floor(octaves * kContextsPerOctave));
  for (int step = 0; step <= last_step; ++step) {
    contexts.push_back(
        static_cast<size_t>(std::llround(kMinContext * std::exp2(step / kContextsPerOctave))));
  }
  std::ranges::sort(contexts);
  const auto repeated = std::ranges::unique(contexts);
  contexts.erase(repeated.begin(), repeated.end());
  return contexts;
}

// The resident parts of a plan, those that the kernel cannot drop first.
std::vector<MemoryLine> ResidentParts(const MemoryPlan& plan) {
  std::vector<MemoryLine> parts;
  for (const MemoryKind kind : {MemoryKind::kPrivate, MemoryKind::kMapped}) {
    for (const MemoryLine& line : plan.lines) {
      if (line.kind == kind) parts.push_back(line);
    }
  }
  return parts;
}

class PartsOverContext {
 public:
  void Add(const MemoryPlan& plan) {
    const auto context = static_cast<double>(plan.options.decoder.context_tokens);
    for (const MemoryLine& line : ResidentParts(plan)) {
      PlotSeries& part = PartNamed(
          Format("{}{}", line.name(), line.kind == MemoryKind::kMapped ? ", mapped" : ""));
      part.points.resize(num_contexts_ + 1);
      part.points[num_contexts_].y += static_cast<double>(line.bytes);
    }
    ++num_contexts_;
    for (PlotSeries& part : parts_) part.points.resize(num_contexts_);
    contexts_.push_back(context);
    peak_.points.push_back({context, static_cast<double>(plan.peak_bytes())});
    largest_ = std::max(largest_, static_cast<double>(plan.steady_bytes()));
    has_peak_ = has_peak_ || plan.peak_bytes() > plan.steady_bytes();
  }

  // The most bytes of any context.
  double largest() const {
    double most = largest_;
    for (const PlotPoint& point : peak_.points) most = std::max(most, point.y);
    return most;
  }

  void MoveInto(Chart& chart) {
    PlotSeries other = {.name = std::string(kOtherParts), .points = {}};
    for (const double context : contexts_) other.points.push_back({context, 0.0});
    for (PlotSeries& part : parts_) {
      const double most = std::ranges::max(part.points, {}, &PlotPoint::y).y;
      if (most >= kSmallShare * largest_) {
        for (size_t i = 0; i < contexts_.size(); ++i) part.points[i].x = contexts_[i];
        chart.areas.push_back(std::move(part));
      } else {
        for (size_t i = 0; i < contexts_.size(); ++i) other.points[i].y += part.points[i].y;
      }
    }
    chart.areas.insert(chart.areas.begin(), std::move(other));
    if (has_peak_) chart.lines.push_back(std::move(peak_));
  }

 private:
  PlotSeries& PartNamed(std::string_view name) {
    const auto found = std::ranges::find(parts_, name, &PlotSeries::name);
    if (found != parts_.end()) return *found;
    return parts_.emplace_back(PlotSeries{.name = std::string(name), .points = {}});
  }

  std::vector<PlotSeries> parts_;
  std::vector<double> contexts_;
  PlotSeries peak_ = {.name = "peak, while loading", .points = {}};
  size_t num_contexts_ = 0;
  double largest_ = 0.0;
  bool has_peak_ = false;
};

// Boards that have as much are one line. Of those that have more than the model ever takes, only
// the smallest is shown.
std::vector<Chart::Level> BoardLevels(double largest) {
  std::vector<Chart::Level> levels;
  for (const raspberry_pi::Board& board : raspberry_pi::Boards()) {
    const auto usable = static_cast<double>(board.usable_bytes);
    const auto same = std::ranges::find(levels, usable, &Chart::Level::y);
    if (same == levels.end()) {
      levels.push_back({.name = std::string(board.name), .y = usable});
    } else {
      same->name += Format(", {}", board.name);
    }
  }
  std::ranges::sort(levels, {}, &Chart::Level::y);
  const auto larger =
      std::ranges::find_if(levels, [&](const Chart::Level& level) { return level.y >= largest; });
  if (larger != levels.end()) levels.erase(larger + 1, levels.end());
  return levels;
}

}  // namespace

Result<Figure> PlotMemory(const ModelOutline& model, EngineOptions options,
                          const PlottedProgram& where,
                          const std::shared_ptr<const ModelOutline>& draft_model) {
  const size_t chosen = ResolveOptions(model, options, draft_model).decoder.context_tokens;
  PartsOverContext parts;
  KvType kv_type = KvType::kInt8;
  for (const size_t context : Contexts(chosen, model.config.longest_context())) {
    options.context_tokens = context;
    const MemoryPlanOptions resolved = ResolveOptions(model, options, draft_model);
    // A context that is too short for the other options is left out.
    if (context != chosen && !ValidateDecoderOptions(model.config, resolved.decoder)) continue;
    CRIA_ASSIGN_OR_RETURN(const MemoryPlan plan, PlanMemory(model, resolved, where.program));
    kv_type = resolved.decoder.kv_type;
    parts.Add(plan);
  }
  Chart chart = {
      .title = "Resident memory, part by part",
      .x = {.title = "context (tokens)", .scale = AxisScale::kLog2},
      .y = {.title = "memory", .unit = AxisUnit::kBytes, .begins_at_zero = true},
      .mark = Chart::Mark{.name = Format("-c {}", chosen), .x = static_cast<double>(chosen)}};
  if (where.board != nullptr) {
    chart.levels.push_back({.name = std::string(where.board->name),
                            .y = static_cast<double>(where.board->usable_bytes)});
  } else {
    chart.levels = BoardLevels(parts.largest());
  }
  parts.MoveInto(chart);
  Figure figure = {.title = "Memory over the context",
                   .subtitle = Format("keys and values in {}; lines across: what boards have for a "
                                      "program; 1 MB is 1,000,000 bytes",
                                      KvTypeName(kv_type))};
  figure.charts.push_back(std::move(chart));
  return figure;
}

}  // namespace cria::cli
