#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/models/model_store.h"
#include "server/requests/json_body.h"

namespace cria::server {

// What the body of a request says of its model. It is read before the model is loaded, without
// which the rest of the request cannot be read.
struct ModelRequest {
  std::optional<std::string> model;
  std::optional<ModelStore::Clock::duration> keep_alive;
  bool has_messages = false;
  bool has_prompt = false;
};

// Reads these fields of a JSON object, and keeps nothing of others. Throws RequestError if the
// body is not JSON or one of them is malformed.
ModelRequest ReadModelRequest(std::string_view body);

// How long a model stays, as ollama's requests say it: seconds, or a text such as "5m", "1h30m" or
// "-1"; a negative value is ModelStore::kForever. Nothing for other values.
std::optional<ModelStore::Clock::duration> ReadKeepAlive(const Json& value);

// The value of a field of "name=value&other=…", decoded; nothing if it is missing.
std::optional<std::string> QueryValue(std::string_view query, std::string_view name);

}  // namespace cria::server
