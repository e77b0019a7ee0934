#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "llm/sampler.h"
#include "text/chat_template.h"

namespace cria::cli {

// What a line of a file of prompts asks for.
struct BatchLine {
  nlohmann::ordered_json id;          // Copied into the answer; null: there is none.
  std::optional<std::string> prompt;  // To be continued as it is; absent if there are messages.
  std::vector<ChatMessage> messages;  // To be answered.
  size_t max_tokens = 0;              // 0: no limit.
  SamplerOptions sampler;
  std::vector<std::string> stop;
  std::string schema;  // A JSON Schema that the answer must match; empty: none.
  bool any_json = false;
};

// Reads a line: an object with prompt or messages, and with options that have the names of requests
// to the server: max_tokens (0: no limit), temperature, top_p, top_k, min_p, typical_p,
// repeat_penalty, presence_penalty, frequency_penalty, xtc_probability, xtc_threshold,
// dry_multiplier, dry_base, dry_allowed_length, seed, stop, json_schema, response_format, and an
// id. Numbers must be 0 or more, but for the seed, presence_penalty and frequency_penalty;
// dry_base must be 1 or more. `defaults` has what the line does not say. Fails with kInvalidFile if
// something is wrong or not known.
Result<BatchLine> ReadBatchLine(std::string_view text, const BatchLine& defaults,
                                const ChatTemplate& chat_template);

}  // namespace cria::cli
