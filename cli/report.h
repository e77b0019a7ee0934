#pragma once

#include <chrono>
#include <string>

#include "llm/engine.h"

namespace cria::cli {

// One line of what a run did: tokens/s of prompt and decode, GB/s of weights read by decoding, time
// to the first token, peak memory. `load_ms` and `first_token_ms` are as the caller measured them.
std::string StatsLine(Engine& engine, double load_ms, double first_token_ms);

// The most memory that was resident, as FormatBytes has it.
std::string PeakMemory();

// Milliseconds from `begin` to now.
double MillisecondsSince(std::chrono::steady_clock::time_point begin);

// "812.4 MB", with powers of ten.
std::string FormatBytes(double bytes);

}  // namespace cria::cli
