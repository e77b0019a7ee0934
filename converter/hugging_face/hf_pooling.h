#pragma once

#include <filesystem>
#include <optional>

#include "cria/error.h"
#include "model/pooling.h"

namespace cria {

// How a checkpoint of sentence-transformers pools: from `modules.json` and the `config.json` of its
// module Pooling; nothing if the folder has no `modules.json`. A module Normalize is allowed,
// because the runtime normalizes always. Fails with kUnsupported, naming it, for another module or
// another kind of pooling.
Result<std::optional<Pooling>> ReadHfPooling(const std::filesystem::path& folder);

}  // namespace cria
