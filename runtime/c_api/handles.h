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
};

// A call that runs a model. One from a callback of another call for the same model is refused: it
// might wait for room that the other one has.
class ModelUse {
 public:
  ModelUse() = default;
  ModelUse(const ModelUse&) = delete;
  ModelUse& operator=(const ModelUse&) = delete;
  ~ModelUse();

  // Must be called once, on the thread that destroys the object.
  Status Begin(const LoadedModel& model);

 private:
  const LoadedModel* model_ = nullptr;
  ModelUse* outer_ = nullptr;  // Of the same thread.
};

}  // namespace cria::c_api

// NOLINTNEXTLINE(readability-identifier-naming): the C API's name.
struct cria_model {
  std::shared_ptr<cria::c_api::LoadedModel> loaded;
};
