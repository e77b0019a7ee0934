#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "cria/cria.h"
#include "cria/error.h"
#include "llm/engine.h"

namespace cria::c_api {

// Shared by a model's handle and those of its chats.
struct LoadedModel {
  std::unique_ptr<Engine> engine;
  std::string name;
  // How often cria_model_cancel was called: a call ends when this differs from its beginning.
  std::atomic<uint32_t> cancels = 0;
  std::atomic<bool> is_in_use = false;
};

// The right to use a model, which one call at a time has.
class ModelUse {
 public:
  static Result<ModelUse> Begin(LoadedModel& model);

  ModelUse(ModelUse&&) noexcept = default;
  ModelUse& operator=(ModelUse&&) noexcept = default;

 private:
  struct Ending {
    void operator()(LoadedModel* model) const { model->is_in_use = false; }
  };

  explicit ModelUse(LoadedModel& model) : model_(&model) {}

  std::unique_ptr<LoadedModel, Ending> model_;
};

}  // namespace cria::c_api

// NOLINTNEXTLINE(readability-identifier-naming): the C API's name.
struct cria_model {
  std::shared_ptr<cria::c_api::LoadedModel> loaded;
};
