#pragma once

#include <cstdint>
#include <string_view>

#include "cria/error.h"
#include "jinja/context.h"
#include "jinja/value.h"

namespace cria::jinja {

enum class JsonNumbers : uint8_t {
  kPython,  // Numbers with a point or an exponent are floats.
  kExact,   // Only whole numbers of 64 bits are values of kInt. All others are of kNumeral, which
            // then may have a point and an exponent.
};

// The value of a JSON text (RFC 8259), in the context's memory; `json` must outlive the context.
// Strings count as text from others. Of two values with one name in an object, the last one counts,
// as in Python. Half of a surrogate pair becomes U+FFFD.
// Fails with kUsage and the byte if the text is not JSON, with kOutOfRange at a limit. It is not a
// library's, because devices would need more bytes for that, and because a library takes memory
// beside the context's, which is limited.
Result<Value> ReadJson(Context& context, std::string_view json,
                       JsonNumbers numbers = JsonNumbers::kPython);

}  // namespace cria::jinja
