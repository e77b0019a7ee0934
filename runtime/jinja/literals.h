#pragma once

#include <string_view>

#include "jinja/context.h"
#include "jinja/value.h"

namespace cria::jinja {

// The value of a number as it is written in a template, or a failure.
Value ReadNumber(Context& context, std::string_view written, bool is_float);

// The string between the quotes, with Python's escapes, or a failure.
Value ReadString(Context& context, std::string_view written);

}  // namespace cria::jinja
