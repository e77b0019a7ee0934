#include "cli/chat/message_reader.h"

#include <cstdio>
#include <string_view>
#include <utility>

namespace cria::cli {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr const char* kPrompt = "> ";
constexpr const char* kContinuationPrompt = ". ";

}  // namespace

bool MessageReader::Add(std::string line, Draft& draft) {
  if (!draft.is_begun && line.starts_with(kQuotes)) {
    draft.is_quoted = true;
    line.erase(0, kQuotes.size());
  }
  draft.is_begun = true;
  if (draft.is_quoted) {
    if (line.ends_with(kQuotes)) {
      line.resize(line.size() - kQuotes.size());
      // The line feed before the quotes is not part of the message.
      if (line.empty() && draft.text.ends_with('\n')) draft.text.pop_back();
      draft.text += line;
      return true;
    }
    // A line feed after the quotes is not part of the message either.
    if (!line.empty() || !draft.text.empty()) draft.text += line + '\n';
    return false;
  }
  const bool goes_on = line.ends_with('\\');
  if (goes_on) line.back() = '\n';
  draft.text += line;
  return !goes_on;
}

std::optional<std::string> MessageReader::Next() {
  Draft draft;
  for (;;) {
    LineEditor::Line line = editor_.Read(draft.is_begun ? kContinuationPrompt : kPrompt);
    switch (line.end) {
      case LineEditor::End::kEndOfInput:
        return std::nullopt;
      case LineEditor::End::kInterruptOnEmpty:
        if (!draft.is_begun) return std::nullopt;
        [[fallthrough]];
      case LineEditor::End::kInterrupt:
        draft = {};
        break;
      case LineEditor::End::kEnter: {
        const bool is_complete = Add(std::move(line.text), draft);
        if (draft.text.size() > bound_.max_bytes) draft.is_too_long = true;
        if (draft.is_too_long) draft.text.clear();
        if (!is_complete) break;
        if (!draft.is_too_long) {
          if (!draft.text.empty()) editor_.AddToHistory(draft.text);
          return std::move(draft.text);
        }
        std::fprintf(stderr, "(the message has more than the %zu bytes that %s)\n",
                     bound_.max_bytes, bound_.reason.c_str());
        draft = {};
        break;
      }
    }
  }
}

}  // namespace cria::cli
