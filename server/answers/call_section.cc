#include "server/answers/call_section.h"

#include <string>

namespace cria::server {

CallSection::CallSection(AnswerCalls& calls)
    : reader_({.on_name = [&calls](std::string_view name) { calls.Begin(name); },
               .on_arguments = [&calls](std::string_view piece) { calls.PassArguments(piece); }}) {}

void ArgumentsSection::BeginCall(const Tool& tool, const CallForm* form) {
  calls_.Begin(tool.name);
  reader_ = MakeArgumentReader(form, tool);
}

void ArgumentsSection::TakeText(std::string_view text) {
  using State = ArgumentReader::State;
  std::string json;
  State state = State::kMore;
  size_t bytes = 0;
  while (bytes < text.size() && state == State::kMore) state = reader_->Take(text[bytes++], json);
  if (!json.empty()) calls_.PassArguments(json);
  // The constraint lets objects be nested more deeply.
  if (state == State::kInvalid) EndAnswer();
  if (state == State::kComplete) GoTo(SectionKind::kFree, taken_bytes() - text.size() + bytes);
}

}  // namespace cria::server
