#include "llm/text_output.h"

namespace cria {

TextOutput::TextOutput(Detokenizer& detokenizer, StopStrings* stop_strings,
                       const TextCallback& on_text)
    : detokenizer_(detokenizer), stop_strings_(stop_strings), on_text_(on_text) {
  if (stop_strings_ != nullptr) stop_strings_->Restart();
}

void TextOutput::Write(std::string_view text) {
  if (stop_strings_ == nullptr) return Emit(text);
  for (const std::string_view part : stop_strings_->Append(text)) Emit(part);
}

std::string_view TextOutput::End() {
  const std::string_view rest = detokenizer_.Flush();
  Write(rest);
  // What was held back is a part of a stop string's own memory, which does not change.
  if (stop_strings_ != nullptr) Emit(stop_strings_->Flush());
  return rest;
}

void TextOutput::Emit(std::string_view text) {
  if (!text.empty()) on_text_(text);
}

}  // namespace cria
