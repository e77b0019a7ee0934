#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "jinja/context.h"
#include "jinja/interpreter.h"

namespace cria::jinja {

// A part of what a template has written.
struct Segment {
  std::string text;
  // Whether the template or its host wrote this, rather than somebody whose text they were given.
  bool is_trusted = false;
};

// The longest template that is looked at.
inline constexpr size_t kMaxTemplateBytes = size_t{1} << 18;

// Renders a template of the kind that chats are written with: Jinja 3.1's language as Hugging
// Face's transformers run it (trim_blocks and lstrip_blocks, break and continue, raise_exception,
// strftime_now), without inheritance, includes, and what changes values. Neighbours in the result
// differ in trust. `globals`, whose values lie in the context, are variables that the template
// sees.
//
// Errors are one sentence with the template's line: kInvalidFile of a template that cannot be
// parsed, kUsage of one that cannot go on with these values or does not want to, kOutOfRange of one
// that takes too much.
Result<std::vector<Segment>> Render(Context& context, std::string_view source,
                                    std::span<const Variable> globals);

// Whether a template can be parsed.
Status Check(std::string_view source);

}  // namespace cria::jinja
