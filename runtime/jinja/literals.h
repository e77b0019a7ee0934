#pragma once

#include <optional>
#include <string_view>

#include "jinja/context.h"
#include "jinja/value.h"

namespace cria::jinja {

// The number that Python's float() makes of it, or nothing; underscores and spaces, which that
// takes, are nothing here.
std::optional<double> ReadDouble(std::string_view written);

// The value of a number as it is written in a template, or a failure.
Value ReadNumber(Context& context, std::string_view written, bool is_float);

// The string between the quotes, with Python's escapes, or a failure.
Value ReadString(Context& context, std::string_view written);

}  // namespace cria::jinja
