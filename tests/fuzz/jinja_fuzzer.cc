// Any bytes as a chat template: rendering must end in text or an error, soon, and must not take
// what a message says for its own. corpus/jinja/ has templates to begin with.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cria;
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const ChatTemplate chat_template(source, {.bos_token = "<s>", .eos_token = "</s>"});
  // A byte that no template needs.
  const std::array<ChatMessage, 3> messages = {
      {{"user", " What \x01 is\n"}, {"assistant", "\x01"}, {"user", "Why?\x01"}}};
  if (source.contains('\x01') || source.contains('\\')) return 0;
  const auto segments = chat_template.Render(messages, {.add_generation_prompt = true});
  if (!segments) return 0;
  for (const ChatSegment& segment : *segments) {
    if (segment.is_template && segment.text.contains('\x01')) std::abort();
  }
  return 0;
}
