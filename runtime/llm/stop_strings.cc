#include "llm/stop_strings.h"

#include <algorithm>
#include <utility>

#include "core/format.h"
#include "core/utf8.h"

namespace cria {

Result<StopStrings> StopStrings::Create(std::vector<std::string> strings) {
  StopStrings made;
  for (std::string& text : strings) {
    const char* const problem = text.empty()                           ? "is empty"
                                : ValidUtf8Prefix(text) != text.size() ? "is not valid UTF-8"
                                                                       : nullptr;
    if (problem != nullptr) {
      return Fail(ErrorCode::kUsage,
                  Format("stop string {} {}", made.patterns_.size() + 1, problem));
    }
    made.longest_bytes_ = std::max(made.longest_bytes_, text.size());
    std::vector<uint32_t> borders(text.size());
    uint32_t border = 0;
    for (size_t i = 1; i < text.size(); ++i) {
      while (border > 0 && text[i] != text[border]) border = borders[border - 1];
      if (text[i] == text[border]) ++border;
      borders[i] = border;
    }
    made.patterns_.push_back({std::move(text), std::move(borders)});
  }
  return made;
}

void StopStrings::Restart() {
  for (Pattern& pattern : patterns_) pattern.matched = 0;
  is_found_ = false;
}

bool StopStrings::Pattern::Add(char byte) {
  while (matched > 0 && text[matched] != byte) matched = borders[matched - 1];
  if (text[matched] == byte) ++matched;
  return matched == text.size();
}

std::string_view StopStrings::Held() const {
  std::string_view held;
  for (const Pattern& pattern : patterns_) {
    const auto begun = std::string_view(pattern.text).substr(0, pattern.matched);
    if (begun.size() > held.size()) held = begun;
  }
  return held;
}

std::array<std::string_view, 2> StopStrings::Append(std::string_view piece) {
  if (is_found_) return {};
  const std::string_view held = Held();
  size_t read_bytes = 0;
  size_t found_bytes = 0;  // The length of the stop string that was found.
  while (read_bytes < piece.size() && found_bytes == 0) {
    const char byte = piece[read_bytes++];
    for (Pattern& pattern : patterns_) {
      if (!pattern.Add(byte) || pattern.text.size() <= found_bytes) continue;
      found_bytes = pattern.text.size();
      found_ = static_cast<size_t>(&pattern - patterns_.data());
    }
  }
  is_found_ = found_bytes != 0;
  // So many bytes of `held` and `piece` together are certain.
  const size_t certain_bytes = held.size() + read_bytes - (is_found_ ? found_bytes : Held().size());
  const size_t held_bytes = std::min(certain_bytes, held.size());
  return {held.substr(0, held_bytes), piece.substr(0, certain_bytes - held_bytes)};
}

std::string_view StopStrings::Flush() {
  if (is_found_) return {};
  const std::string_view held = Held();
  Restart();
  return held;
}

}  // namespace cria
