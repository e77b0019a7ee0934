#pragma once

#include <atomic>
#include <memory>

#include "core/platform.h"
#include "cria/error.h"

namespace cria::server {

// A model while it is loaded. Destroying it gives its memory back.
class LoadedModel {
 public:
  virtual ~LoadedModel() = default;

  // What the process uses for it, by its plan.
  virtual platform::MemoryUsage demand() const = 0;
};

// A model that can be loaded, any number of times. One thread at a time calls these functions.
class ModelSource {
 public:
  virtual ~ModelSource() = default;

  // Whether the plan of the model fits the limits beside `program`, which is what the process uses
  // without it. True if there is no plan: then Load says why.
  virtual bool Fits(const platform::MemoryUsage& program) = 0;
  // Fails with kOutOfMemory, and what the plan consists of, if Fits returns false.
  virtual Status CheckFits(const platform::MemoryUsage& program) = 0;
  // Fails with kOutOfMemory if the model does not fit. If `ends` becomes true, it should return
  // soon, with any error.
  virtual Result<std::unique_ptr<LoadedModel>> Load(const platform::MemoryUsage& program,
                                                    const std::atomic<bool>& ends) = 0;
};

}  // namespace cria::server
