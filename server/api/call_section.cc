#include "server/api/call_section.h"

namespace cria::server {

CallSection::CallSection(AnswerCalls& calls)
    : reader_({.on_name = [&calls](std::string_view name) { calls.Begin(name); },
               .on_arguments = [&calls](std::string_view piece) { calls.PassArguments(piece); }}) {}

void ArgumentsSection::BeginCall(std::string_view name) {
  calls_.Begin(name);
  scanner_.Begin(/*watched_depth=*/0);
}

void ArgumentsSection::TakeText(std::string_view text) {
  size_t bytes = 0;
  while (bytes < text.size() && !is_last() && !scanner_.is_complete()) {
    // The constraint lets objects be nested more deeply.
    if (scanner_.Take(text[bytes++]) == JsonScanner::Step::kInvalid) EndAnswer();
  }
  if (bytes > 0) calls_.PassArguments(text.substr(0, bytes));
  if (scanner_.is_complete()) GoTo(SectionKind::kFree, taken_bytes() - text.size() + bytes);
}

}  // namespace cria::server
