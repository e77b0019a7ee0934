#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective.h"
#include "llm/engine.h"
#include "ranks/collective_link.h"

namespace cria::ranks {

// The options with which the other ranks load the model if rank 0 loads it with `options`.
// Sessions, with their drafts and constraints, are rank 0's alone, and so is a draft model, which
// runs there as a whole; the other ranks have room for as many rows of logits, and can refuse as
// many tokens.
EngineOptions FollowerOptions(EngineOptions options);

// Loads a model on all ranks when rank 0 does.
class RankedLoader {
 public:
  // `collective` must outlive the loader and the engines.
  explicit RankedLoader(Collective& collective) : collective_(collective) {}

  // Called by all ranks before anything else. Fails if they are not of the same version, or have
  // addresses of different sizes: kModelsOwnContext, for example, is another number then.
  Status Meet(std::string_view version, size_t address_bytes = sizeof(void*));

  // On rank 0: loads the model there and on the other ranks, which get `link` from here. Without
  // weights, all ranks get as much of the model. One model is loaded at a time: the engine of an
  // earlier call must be gone, and is then ended on the other ranks.
  Result<std::unique_ptr<Engine>> Load(const std::string& path, EngineOptions options,
                                       LinkOptions link);
  // On rank 0: lets the other ranks end.
  Status End();

  // On other ranks: loads what rank 0 loads and computes with it, until its End. `on_notice` is
  // told what a user may want to know. If loading fails somewhere, rank 0 says so.
  Status Follow(const std::function<void(std::string_view)>& on_notice);

 private:
  struct Order;

  Status SendOrder(const std::string& path, const EngineOptions& options);
  // Nothing: rank 0 has ended.
  Result<std::optional<EngineOptions>> ReceiveOrder(std::string& path);
  // On every rank.
  Result<std::unique_ptr<Engine>> LoadTogether(const std::string& path, EngineOptions options);
  // Fails unless all ranks compute the same bits, where anything else would give wrong results.
  Status AgreeOnProcessor(const ModelFile& model);

  Collective& collective_;
  LinkOptions link_options_;
  bool wants_drafts_ = false;
  std::unique_ptr<CollectiveLink> link_;  // Null: nothing was loaded.
  bool is_loaded_ = false;
};

}  // namespace cria::ranks
