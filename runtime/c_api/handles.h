#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cria/cria.h"
#include "cria/error.h"
#include "llm/engine.h"

namespace cria::c_api {

// Shared by a model's handle and those of its chats.
struct LoadedModel {
  // A constraint for one call. Fails if all are in use. An exception may pass through.
  Result<std::unique_ptr<Constraint>> TakeConstraint();
  void ReturnConstraint(std::unique_ptr<Constraint> constraint);

  std::unique_ptr<Engine> engine;
  std::string name;
  // How often cria_model_cancel was called: a call ends when this differs from its beginning.
  std::atomic<uint32_t> cancels = 0;

 private:
  std::mutex constraint_mutex_;
  size_t num_constraints_ = 0;
  std::vector<std::unique_ptr<Constraint>> free_constraints_;
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
  ModelUse* outer_ = nullptr;  // The use around this one, by the same thread.
};

}  // namespace cria::c_api

// NOLINTNEXTLINE(readability-identifier-naming): the C API's name.
struct cria_model {
  std::shared_ptr<cria::c_api::LoadedModel> loaded;
};
