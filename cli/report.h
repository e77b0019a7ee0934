#pragma once

#include <string>

#include "llm/engine.h"

namespace cria::cli {

// One line of what a run did: tokens/s of prompt and decode, GB/s of weights read by decoding, time
// to the first token, peak memory. `load_ms` and `first_token_ms` are as the caller measured them.
std::string StatsLine(Engine& engine, double load_ms, double first_token_ms);

// "812.4 MB", with powers of ten.
std::string FormatBytes(double bytes);

}  // namespace cria::cli
