#pragma once

#include <optional>
#include <string>

#include "llm/engine.h"
#include "server/api/call_style.h"
#include "server/api/infill_tokens.h"
#include "server/api/metrics.h"
#include "server/prompts/prompt_files.h"
#include "server/work/session_pool.h"

namespace cria::server {

// What the server has of one model while it is loaded.
struct ServedModel {
  // The engine and the prompts must outlive it.
  ServedModel(Engine& loaded, std::string model_name, const PromptFiles* kept_prompts);
  ServedModel(const ServedModel&) = delete;
  ServedModel& operator=(const ServedModel&) = delete;

  Engine& engine;
  const std::string name;  // What requests and answers call it.
  const CallStyle call_style;
  const std::optional<InfillTokens> infill_tokens;  // Nothing if the vocabulary has none.
  const PromptFiles* const prompts;                 // Null: prompts are not kept.
  SessionPool sessions;
  Metrics metrics;
};

}  // namespace cria::server
