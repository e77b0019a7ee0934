#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/format_bytes.h"
#include "core/platform.h"
#include "llm/engine.h"
#include "llm/generator.h"

namespace cria::cli {

// What the caller of StatsLine has measured or chosen.
struct RunFigures {
  double load_ms = 0.0;
  double first_token_ms = 0.0;
  uint64_t seed = 0;
};

// One line with the figures of a run: tokens/s of prompt and decode, GB/s of weights that decoding
// reads, time to the first token, peak memory, the seed. Tokens/s count pauses for heat as time.
std::string StatsLine(const Engine& engine, const Session& session, const RunFigures& figures);

// Adds what StatsLine says as members of a JSON object.
void AddStats(nlohmann::ordered_json& object, const Engine& engine, const Session& session,
              const RunFigures& figures);

// "stop_token", "max_tokens", "context_full", "cancelled" or "stop_string".
const char* StopReasonName(StopReason reason);

// What to say of an answer that a limit ended before it matched `constraint`, which may be null; ""
// if there is nothing to say.
std::string UnfinishedNotice(StopReason reason, const Constraint* constraint);

// Prints an object on a line of its own; bytes that are not UTF-8 are replaced.
void PrintJson(const nlohmann::ordered_json& object);

// One line with the memory that the process uses now and the planned memory.
std::string MemoryUsageLine(const MemoryPlan& plan);

// "processor: 48.3 °C, 2400 MHz, slowed down now", as far as the system says it; "" if it says
// nothing.
std::string ProcessorLine(const platform::ProcessorState& state);

// "1 thread", "2 threads".
std::string CountText(size_t count, const char* noun);

// The peak of resident memory, formatted by FormatBytes.
std::string PeakMemory();

// Milliseconds from `begin` to now.
double MillisecondsSince(std::chrono::steady_clock::time_point begin);

}  // namespace cria::cli
