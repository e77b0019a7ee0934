#pragma once

#include <chrono>
#include <string>

#include "core/format_bytes.h"
#include "llm/engine.h"

namespace cria::cli {

// One line of what a run did: tokens/s of prompt and decode, GB/s of weights read by decoding, time
// to the first token, peak memory. `load_ms` and `first_token_ms` are as the caller measured them.
std::string StatsLine(Engine& engine, double load_ms, double first_token_ms);

// One line of what the process uses now, beside what was planned.
std::string MemoryUsageLine(const MemoryPlan& plan);

// The most memory that was resident, as FormatBytes has it.
std::string PeakMemory();

// Milliseconds from `begin` to now.
double MillisecondsSince(std::chrono::steady_clock::time_point begin);

}  // namespace cria::cli
