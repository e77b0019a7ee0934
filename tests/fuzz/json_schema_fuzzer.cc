// Any bytes as a JSON Schema: reading must end in an expression or an error, in bounded memory, the
// same every time. Then some text of it is written, which must be JSON as far as its first bytes
// say.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/expressions.h"
#include "grammar/json_schema.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cria::grammar;
  // Less than programs have, and of some inputs much less, so that those that use it up are found.
  static std::vector<uint64_t> memory(size_t{1} << 17);
  const size_t num_words = memory.size() >> (size % 8);
  const std::string_view schema(reinterpret_cast<const char*>(data), size);
  Expressions expressions(std::as_writable_bytes(std::span(memory).first(num_words)));
  const auto node = ReadJsonSchema(expressions, schema);
  if (!node) {
    if (node.error().message().empty()) std::abort();
    return 0;
  }
  if (!expressions.Finish(*node)) return 0;
  // The shortest text, or nearly.
  Node rest = *node;
  for (int i = 0; i < 200 && !expressions.MatchesEmpty(rest); ++i) {
    Node best = Expressions::kNothing;
    for (size_t k = 0; k < expressions.num_classes() && expressions.status(); ++k) {
      const Node next = expressions.Derive(rest, expressions.ByteOfClass(k));
      if (next == Expressions::kNothing) continue;
      if (best == Expressions::kNothing || expressions.Rest(next) < expressions.Rest(best)) {
        best = next;
      }
    }
    if (!expressions.status()) return 0;
    // What can be ended goes on.
    if (best == Expressions::kNothing) std::abort();
    rest = best;
  }
  return 0;
}
