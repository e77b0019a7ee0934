#pragma once

#include <chrono>
#include <string>

#include "core/format_bytes.h"
#include "llm/engine.h"

namespace cria::cli {

// One line with the figures of a run: tokens/s of prompt and decode, GB/s of weights that decoding
// reads, time to the first token, peak memory. The caller measures `load_ms` and `first_token_ms`.
std::string StatsLine(const Engine& engine, const Session& session, double load_ms,
                      double first_token_ms);

// One line with the memory that the process uses now and the planned memory.
std::string MemoryUsageLine(const MemoryPlan& plan);

// The peak of resident memory, formatted by FormatBytes.
std::string PeakMemory();

// Milliseconds from `begin` to now.
double MillisecondsSince(std::chrono::steady_clock::time_point begin);

}  // namespace cria::cli
