#pragma once

#include <expected>
#include <string_view>

#include "converter/hub/checkpoint_name.h"
#include "converter/hub/http.h"
#include "converter/hub/hub_client.h"
#include "cria/error.h"

namespace cria::hub {

struct ModelInfo;

// The sentence for an answer without success, or for none. `info` is null if the hub has not yet
// answered what it says about the model. `file` is the file that was asked for; empty for the
// model.
std::unexpected<Error> FailureOf(const HttpAnswer& answer, const HubClient& client,
                                 const CheckpointName& name, std::string_view file,
                                 const ModelInfo* info = nullptr);

}  // namespace cria::hub
