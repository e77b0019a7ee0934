#pragma once

#include <memory>
#include <string_view>

#include "cli/serve/serve_options.h"
#include "cria/error.h"
#include "server/models/model_store.h"

namespace cria::cli {

// What a user is told of a model whose form of tool calls is not known.
inline constexpr std::string_view kUnknownCalls =
    "the chat template shows no form of tool calls that is known here: only calls that are JSON "
    "objects with a name and arguments are found; others stay text of the answer";

// The models that the options name. One alone is loaded; of several, those that cannot be served
// are told to the user. Fails if no model can be served.
Result<std::unique_ptr<server::ModelStore>> OpenServedModels(const ServeOptions& options);

}  // namespace cria::cli
