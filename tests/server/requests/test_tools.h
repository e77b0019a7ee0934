#pragma once

#include <string_view>

#include "server/requests/fields.h"
#include "server/requests/json_body.h"
#include "server/requests/tools.h"

namespace cria::server {

// Tools with the names `add`, whose arguments are two integers, and `time`, which has none.
inline ToolUse TestTools(std::string_view choice = "auto") {
  const Json request = {
      {"tools", Json::parse(R"([{"type": "function", "function": {"name": "add", "parameters": {
         "type": "object", "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/n"}},
         "required": ["a", "b"], "additionalProperties": false,
         "$defs": {"n": {"type": "integer"}}}}},
        {"type": "function", "function": {"name": "time"}}])")},
      {"tool_choice", choice}};
  return ReadTools(Fields(request));
}

}  // namespace cria::server
