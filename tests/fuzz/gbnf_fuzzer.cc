// Any bytes as a grammar: reading must end in an expression or a sentence, soon and in the given
// memory, and the same every time. corpus/gbnf/ has grammars to begin with.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/expressions.h"
#include "grammar/gbnf.h"

namespace {

bool IsRead(std::string_view text, size_t memory_bytes) {
  std::vector<uint64_t> memory(memory_bytes / sizeof(uint64_t));
  cria::grammar::Expressions expressions(std::as_writable_bytes(std::span(memory)));
  const auto root = cria::grammar::ReadGbnf(expressions, text);
  if (!root) {
    if (root.error().code() == cria::ErrorCode::kInternal) std::abort();
    return false;
  }
  // A reader checks the rules, so that there is no further problem, but for memory and for what
  // matches no text.
  if (!expressions.status()) std::abort();
  (void)expressions.Finish(*root);
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool is_read = IsRead(text, size_t{1} << 20);
  if (is_read != IsRead(text, size_t{1} << 20)) std::abort();
  if (IsRead(text, size_t{1} << 11) && !is_read) std::abort();
  return 0;
}
