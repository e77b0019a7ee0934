#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>

#include "llm/engine.h"
#include "server/api/infill_tokens.h"
#include "server/api/metrics.h"
#include "server/calls/call_style.h"
#include "server/models/model_store.h"
#include "server/prompts/prompt_files.h"
#include "server/work/session_pool.h"

namespace cria::server {

// What the server has of one model while it is loaded.
struct ServedModel final : LoadedModel {
  struct Parts {
    std::shared_ptr<Engine> engine;
    std::unique_ptr<PromptFiles> prompts;  // Null: prompts are not kept.
    // How long prompts may be written when the model is given up.
    std::chrono::seconds writing_time{0};
    platform::MemoryUsage demand;
  };

  // `sums` must outlive it.
  ServedModel(std::string model_name, Parts loaded, Metrics& sums);
  ServedModel(const ServedModel&) = delete;
  ServedModel& operator=(const ServedModel&) = delete;
  // Writes the prompts that the KV cache has.
  ~ServedModel() override;

  platform::MemoryUsage demand() const override { return parts.demand; }

  const Parts parts;
  Engine& engine;
  const std::string name;  // What requests and answers call it.
  const CallStyle call_style;
  const std::optional<InfillTokens> infill_tokens;  // Nothing if the vocabulary has none.
  StoredPrompts* const stored;                      // Null: prompts are not kept.
  SessionPool sessions;
  Metrics& metrics;
};

// What lists of models tell of one that need not be loaded.
struct ModelDescription {
  std::string path;
  uint64_t size_bytes = 0;
  Digest digest = {};
  std::string architecture;
  std::string thinking_variable;  // As ThinkingVariable says; "": there is none.
  size_t vocab_size = 0;
  size_t longest_context = 0;
  size_t context_tokens = 0;  // How long one sequence can become with the options of the server.

  static ModelDescription Of(const ModelFile& file, const EngineOptions& options);
};

// A model of the server, whose figures last while it comes and goes.
class ServedSource : public ModelSource {
 public:
  // Empty but for the path if the file could not be read.
  virtual const ModelDescription& description() const = 0;

  Metrics metrics;
};

}  // namespace cria::server
