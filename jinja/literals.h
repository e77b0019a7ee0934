#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "jinja/context.h"
#include "jinja/value.h"

namespace cria::jinja {

// The number that Python's float() returns for the text; nothing if it is not a number. Unlike in
// Python, the text must not contain underscores or spaces.
std::optional<double> ReadDouble(std::string_view written);

// The whole number that Python's int() returns for the text with this base, where base 0 takes the
// base from the text's prefix; nothing if it is not a number. Fails if the number does not fit.
std::optional<int64_t> ReadWholeNumber(Context& context, std::string_view written, int64_t base);

// Reads at most `max_digits` digits of `base`, which is at most 16, and removes them from `rest`.
// `code` is 0 before. Returns whether there are any.
bool TakeCode(std::string_view* rest, size_t max_digits, uint32_t base, uint32_t* code);

// The value of a number in a template; fails if it is not one.
Value ReadNumber(Context& context, std::string_view written, bool is_float);

// The string between the quotes, with Python's escapes resolved; fails if they are wrong.
Value ReadString(Context& context, std::string_view written);

}  // namespace cria::jinja
