#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "jinja/context.h"
#include "jinja/interpreter.h"

namespace cria::jinja {

// A part of a template's output.
struct Segment {
  std::string text;
  // Whether this comes from the template or its host, not from the text of others.
  bool is_trusted = false;
};

// Maximum length of a template.
inline constexpr size_t kMaxTemplateBytes = size_t{1} << 18;

// Renders a chat template: Jinja 3.1's language as Hugging Face's transformers run it (trim_blocks
// and lstrip_blocks, break and continue, raise_exception, strftime_now), without inheritance,
// includes, and functions that change values. Adjacent segments of the result differ in trust.
// `globals`, whose values are in the context, are the template's variables.
//
// Errors are one sentence with the template's line: kInvalidFile if the template cannot be parsed,
// kUsage if it fails with these values or calls raise_exception, kOutOfRange if it exceeds a limit.
Result<std::vector<Segment>> Render(Context& context, std::string_view source,
                                    std::span<const Variable> globals);

// Fails if the template cannot be parsed.
Status Check(std::string_view source);

}  // namespace cria::jinja
