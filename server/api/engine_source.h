#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "llm/engine.h"
#include "server/api/served_model.h"

namespace cria::server {

// A model file that is loaded into an engine.
class EngineSource final : public ServedSource {
 public:
  using Loader = std::function<Result<std::unique_ptr<Engine>>(const std::string& path,
                                                               EngineOptions options)>;
  struct Options {
    std::string name;
    std::string path;
    EngineOptions engine;
    Loader load;  // Engine::Load, or what tells of it.
    // The only model of the server: what the process uses is measured before it is loaded, and
    // otherwise it is what the store says.
    bool is_only = true;
    std::string prompt_folder;  // "": prompts are not kept.
    uint64_t max_prompt_bytes = 0;
    std::chrono::seconds prompt_writing_time{0};
    // The two functions are called from any thread, and may be null.
    std::function<void(std::string_view sentence)> on_notice;
    std::function<void(const ServedModel& model)> on_loaded;
  };

  explicit EngineSource(Options options);

  // Reads the metadata of the file, from which the plan and the description are made. With several
  // models, it is called once before requests; if it fails, the plan is made when the model is
  // asked for. The only model is described after it is loaded.
  Status Inspect();

  const ModelDescription& description() const override { return description_; }
  bool Fits(const platform::MemoryUsage& program) override;
  Status CheckFits(const platform::MemoryUsage& program) override;
  Result<std::unique_ptr<LoadedModel>> Load(const platform::MemoryUsage& program,
                                            const std::atomic<bool>& ends) override;

 private:
  Result<MemoryPlan> PlanBeside(const platform::MemoryUsage& program) const;

  const Options options_;
  const MemoryBounds bounds_;
  ModelDescription description_;
  std::optional<ModelOutline> outline_;
};

}  // namespace cria::server
