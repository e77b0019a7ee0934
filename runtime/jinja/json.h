#pragma once

#include "jinja/natives.h"

namespace cria::jinja {

// The filter tojson, as transformers define it: Python's json.dumps, with ensure_ascii off unless
// asked.
Value ToJson(Call& call);
inline constexpr std::string_view kToJsonParameters = "ensure_ascii,indent,separators,sort_keys";

}  // namespace cria::jinja
