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

// A parsed chat template: Jinja 3.1's language as Hugging Face's transformers run it (trim_blocks
// and lstrip_blocks, break and continue, raise_exception, strftime_now), without inheritance,
// includes, and functions that change values. The filters and methods that are missing besides are
// refused by name when a template is parsed.
//
// Errors are one sentence with the template's line: kInvalidFile if the template cannot be parsed,
// kUsage if it fails with some values or calls raise_exception, kOutOfRange if it exceeds a limit.
class Template {
 public:
  // Parses `source`, which must outlive the template.
  explicit Template(std::string_view source, const Limits& limits = {});

  // Whether the template could be parsed.
  Status status() const;

  // Renders the template, or fails with status(). `globals`, whose values are in the context, are
  // its variables; the context must have rendered nothing else. Adjacent segments of the result
  // differ in trust. Several threads may render at the same time, each in a context of its own.
  Result<std::vector<Segment>> Render(Context& context, std::span<const Variable> globals) const;

  // Whether the template reads a variable of this name that its host may set, and not only one
  // that the template itself sets before.
  bool Reads(std::string_view variable) const;

 private:
  Context context_;  // Has the parsed template, and the error if it could not be parsed.
  std::string_view source_;
  const Node* body_;
};

}  // namespace cria::jinja
