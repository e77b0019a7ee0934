#include "cli/report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/format.h"
#include "core/platform.h"

namespace cria::cli {
namespace {

double Seconds(SessionStats::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double PerSecond(double amount, SessionStats::Duration duration) {
  return duration.count() > 0 ? amount / Seconds(duration) : 0.0;
}

}  // namespace

std::string CountText(size_t count, const char* noun) {
  return Format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string PeakMemory() { return FormatBytes(platform::ReadMemoryUsage().peak_resident_bytes); }

std::string MemoryUsageLine(const MemoryPlan& plan) {
  const platform::MemoryUsage usage = platform::ReadMemoryUsage();
  return Format(
      "memory: private {} (planned {}), file-mapped {} (planned {}), peak {} (planned {}), {} "
      "major faults",
      FormatBytes(usage.private_bytes), FormatBytes(plan.private_bytes()),
      FormatBytes(usage.file_mapped_bytes), FormatBytes(plan.mapped_bytes()),
      FormatBytes(usage.peak_resident_bytes), FormatBytes(plan.peak_bytes()), usage.major_faults);
}

std::string ProcessorLine(const platform::ProcessorState& state) {
  std::string facts;
  const auto add = [&facts](const std::string& fact) {
    facts += (facts.empty() ? "processor: " : ", ") + fact;
  };
  if (state.temperature_celsius) add(Format("{:.1f} °C", *state.temperature_celsius));
  if (state.frequency_hz) add(Format("{} MHz", *state.frequency_hz / 1'000'000));
  const platform::Throttling throttling = state.throttling.value_or(platform::Throttling());
  if (throttling.is_slowed) {
    add("slowed down now");
  } else if (throttling.was_slowed) {
    add("was slowed down since the board was started");
  }
  if (throttling.is_under_voltage) {
    add("too little voltage now");
  } else if (throttling.was_under_voltage) {
    add("had too little voltage since the board was started");
  }
  return facts;
}

double MillisecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

std::string StatsLine(const Engine& engine, const Session& session, const RunFigures& figures) {
  const SessionStats& stats = session.stats();
  const double read_bytes = static_cast<double>(stats.decoding_forwards) *
                            static_cast<double>(engine.decoder().weight_bytes_per_token());
  const std::string drafts =
      stats.drafted_tokens == 0
          ? ""
          : Format("drafts {} of {} accepted, {:.2f} times as fast | ", stats.accepted_tokens,
                   stats.drafted_tokens, stats.draft_gain());
  const std::string forced =
      stats.forced_tokens == 0 ? "" : Format("{} without a choice | ", stats.forced_tokens);
  const ThermalPacer* const pacer = engine.pacer();
  const double paused = pacer == nullptr ? 0.0 : pacer->figures().paused_seconds;
  const std::string pauses =
      paused == 0.0 ? "" : Format("paused {:.1f} s for heat since the start | ", paused);
  return Format(
      "prompt {} tokens ({} reused), {:.1f} tok/s | decode {} tokens, {:.1f} tok/s, {:.2f} GB/s | "
      "{}{}{}load {:.1f} ms, first token {:.1f} ms | {}, peak memory {} | seed {}",
      stats.prompt_tokens, stats.reused_tokens,
      PerSecond(static_cast<double>(stats.prompt_tokens), stats.prompt_time), stats.decoded_tokens,
      PerSecond(static_cast<double>(stats.decoded_tokens), stats.decode_time),
      PerSecond(read_bytes / 1e9, stats.decode_time), drafts, forced, pauses, figures.load_ms,
      figures.first_token_ms, CountText(engine.pool().num_threads(), "thread"), PeakMemory(),
      figures.seed);
}

void AddStats(nlohmann::ordered_json& object, const Engine& engine, const Session& session,
              const RunFigures& figures) {
  const SessionStats& stats = session.stats();
  object["prompt_tokens"] = stats.prompt_tokens + stats.reused_tokens;
  object["reused_tokens"] = stats.reused_tokens;
  object["generated_tokens"] = stats.generated_tokens;
  object["prompt_tokens_per_second"] =
      PerSecond(static_cast<double>(stats.prompt_tokens), stats.prompt_time);
  object["generated_tokens_per_second"] =
      PerSecond(static_cast<double>(stats.decoded_tokens), stats.decode_time);
  object["drafted_tokens"] = stats.drafted_tokens;
  object["accepted_tokens"] = stats.accepted_tokens;
  object["draft_gain"] = stats.draft_gain();
  object["forced_tokens"] = stats.forced_tokens;
  if (engine.pacer() != nullptr) {
    object["paused_seconds"] = engine.pacer()->figures().paused_seconds;
  }
  object["load_ms"] = figures.load_ms;
  object["first_token_ms"] = figures.first_token_ms;
  object["seed"] = figures.seed;
  object["context_tokens"] = session.context_tokens();
  object["threads"] = engine.pool().num_threads();
  object["peak_resident_bytes"] = platform::ReadMemoryUsage().peak_resident_bytes;
}

const char* StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kStopToken:
      return "stop_token";
    case StopReason::kMaxTokens:
      return "max_tokens";
    case StopReason::kContextFull:
      return "context_full";
    case StopReason::kCancelled:
      return "cancelled";
    case StopReason::kStopString:
      return "stop_string";
  }
  return "";
}

std::string UnfinishedNotice(StopReason reason, const Constraint* constraint) {
  const bool is_limited = reason == StopReason::kMaxTokens || reason == StopReason::kContextFull;
  if (!is_limited || constraint == nullptr || constraint->IsComplete()) return "";
  return "the answer ends before it is whole: one that matches needs more tokens";
}

void PrintJson(const nlohmann::ordered_json& object) {
  const std::string text =
      object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

}  // namespace cria::cli
