#pragma once

#include "jinja/natives.h"

namespace cria::jinja {

// The filter tojson as transformers define it: Python's json.dumps, but ensure_ascii is off by
// default.
Value ToJson(Call& call);
inline constexpr std::string_view kToJsonParameters = "ensure_ascii,indent,separators,sort_keys";

}  // namespace cria::jinja
