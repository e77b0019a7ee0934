// Any bytes as a chat template: rendering must end in text or an error, soon, the same every time,
// and must not take what a message says for its own. corpus/jinja/ has templates to begin with.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
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
  const RenderOptions options = {.add_generation_prompt = true, .time = std::tm{.tm_mday = 1}};
  const auto segments = chat_template.Render(messages, options);
  // A rendering changes nothing in the parsed template.
  chat_template.Reads("x");
  const auto again = chat_template.Render(messages, options);
  if (again.has_value() != segments.has_value()) std::abort();
  if (!segments) return 0;
  for (size_t i = 0; i < segments->size(); ++i) {
    const ChatSegment& segment = (*segments)[i];
    if (segment.is_template && segment.text.contains('\x01')) std::abort();
    if (segment.text != again->at(i).text) std::abort();
  }
  return 0;
}
