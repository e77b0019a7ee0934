#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/api/served_model.h"
#include "support/unwrap.h"

namespace cria::server {

// The model of a server that has an engine of the test's.
class EngineOfTest final : public ServedSource {
 public:
  EngineOfTest(Engine& engine, std::string name, std::unique_ptr<PromptFiles> prompts)
      : engine_(engine),
        name_(std::move(name)),
        prompts_(std::move(prompts)),
        description_(ModelDescription::Of(
            engine.file(),
            {.context_tokens = engine.memory_plan().options.decoder.context_tokens})) {}

  const ModelDescription& description() const override { return description_; }
  bool Fits(const platform::MemoryUsage&) override { return true; }
  Status CheckFits(const platform::MemoryUsage&) override { return {}; }
  Result<std::unique_ptr<LoadedModel>> Load(const platform::MemoryUsage&,
                                            const std::atomic<bool>&) override {
    // The test keeps the engine.
    ServedModel::Parts parts = {
        .engine = std::shared_ptr<Engine>(std::shared_ptr<Engine>(), &engine_),
        .prompts = std::move(prompts_),
        .writing_time = std::chrono::hours(1),
        .demand = {.private_bytes = engine_.memory_plan().private_bytes(),
                   .file_mapped_bytes = engine_.memory_plan().mapped_bytes()}};
    return std::make_unique<ServedModel>(name_, std::move(parts), metrics);
  }

 private:
  Engine& engine_;
  std::string name_;
  std::unique_ptr<PromptFiles> prompts_;
  ModelDescription description_;
};

// The store of a server with this model alone, which is loaded. The engine must outlive it.
inline std::unique_ptr<ModelStore> OneModel(Engine& engine, const std::string& name,
                                            std::unique_ptr<PromptFiles> prompts = nullptr) {
  std::vector<ModelStore::NamedSource> sources;
  sources.push_back({name, std::make_unique<EngineOfTest>(engine, name, std::move(prompts))});
  auto store = std::make_unique<ModelStore>(
      std::move(sources), ModelStore::Options{.keep_alive = ModelStore::kForever});
  Unwrap(store->Acquire({.index = 0}));
  return store;
}

}  // namespace cria::server
