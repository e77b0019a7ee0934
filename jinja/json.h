#pragma once

#include "jinja/natives.h"

namespace cria::jinja {

// The filter tojson as transformers define it: Python's json.dumps, but ensure_ascii is off by
// default.
Value ToJson(Call& call);

}  // namespace cria::jinja
