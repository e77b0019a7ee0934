// Any bytes as a pattern: reading must end in an expression or a sentence, soon and in the given
// memory. What is read must match the same texts in both encodings. corpus/pattern/ has patterns to
// begin with; what follows a line end is a text to match.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/utf8.h"
#include "grammar/expressions.h"
#include "grammar/pattern.h"

namespace {

using cria::grammar::CharacterEncoding;
using cria::grammar::Expressions;

enum class Outcome { kRefused, kOther, kMatches };

Outcome Match(std::string_view pattern, std::string_view text, CharacterEncoding encoding,
              bool* is_exhausted) {
  std::vector<uint64_t> memory(size_t{1} << 17);
  Expressions expressions(std::as_writable_bytes(std::span(memory)));
  const auto start = cria::grammar::ReadPattern(expressions, pattern, encoding, false);
  if (!start) {
    if (start.error().code() == cria::ErrorCode::kInternal) std::abort();
    *is_exhausted |= start.error().code() == cria::ErrorCode::kOutOfMemory;
    return Outcome::kRefused;
  }
  if (!expressions.status() || expressions.HasRule(*start)) std::abort();
  if (const auto status = expressions.Finish(*start); !status) {
    // A pattern that matches no text is no error of the reader.
    *is_exhausted |= status.error().code() != cria::ErrorCode::kUsage;
    return Outcome::kOther;
  }
  cria::grammar::Node node = *start;
  for (const char byte : text) node = expressions.Derive(node, static_cast<uint8_t>(byte));
  *is_exhausted |= !expressions.status().has_value();
  return expressions.MatchesEmpty(node) ? Outcome::kMatches : Outcome::kOther;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view pattern = input.substr(0, input.find('\n'));
  std::string_view text = input.substr(std::min(pattern.size() + 1, size));
  text = text.substr(0, 50);
  text = text.substr(0, cria::ValidUtf8Prefix(text));
  std::string json;
  for (const char c : text) {
    if (static_cast<uint8_t>(c) < 0x20) return 0;
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  bool is_exhausted = false;
  const Outcome utf8 = Match(pattern, text, CharacterEncoding::kUtf8, &is_exhausted);
  const Outcome in_json = Match(pattern, json, CharacterEncoding::kJsonString, &is_exhausted);
  if (!is_exhausted && utf8 != in_json) std::abort();
  return 0;
}
