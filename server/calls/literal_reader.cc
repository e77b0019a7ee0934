#include "server/calls/literal_reader.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "server/calls/call_form.h"
#include "server/calls/json_scanner.h"
#include "server/requests/json_bounds.h"

namespace cria::server {
namespace {

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '+' || c == '.' || c == '$';
}

class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : rest_(text) {}

  std::optional<Json> ReadAll() {
    std::optional<Json> value = ReadValue(0);
    SkipSpace();
    return rest_.empty() ? std::move(value) : std::nullopt;
  }

  std::optional<Json> ReadAllKeywords() {
    Json object = Json::object();
    SkipSpace();
    while (!rest_.empty()) {
      const std::optional<std::string> name = TakeNameBefore('=');
      if (!name) return std::nullopt;
      std::optional<Json> value = ReadValue(1);
      if (!value || object.size() >= kMaxJsonKeys) return std::nullopt;
      object[*name] = std::move(*value);
      if (!Take(',') && !rest_.empty()) return std::nullopt;
      SkipSpace();
    }
    return object;
  }

 private:
  void SkipSpace() { rest_ = SkipJsonSpace(rest_); }

  // Takes the byte, and white space around it.
  bool Take(char byte) {
    SkipSpace();
    if (rest_.empty() || rest_.front() != byte) return false;
    rest_.remove_prefix(1);
    SkipSpace();
    return true;
  }

  // Takes a name without quotes, which may have any characters, and the byte that ends it.
  std::optional<std::string> TakeNameBefore(char byte) {
    const size_t end = rest_.find(byte);
    if (end == rest_.npos) return std::nullopt;
    const std::string_view name = TrimSpace(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return name.empty() ? std::nullopt : std::optional<std::string>(name);
  }

  bool BeginsWithQuote() const {
    return rest_.starts_with('"') || rest_.starts_with('\'') || rest_.starts_with(kGemmaQuote);
  }

  std::string_view TakeWord() {
    const auto end = std::ranges::find_if_not(rest_, IsWordCharacter);
    const std::string_view word(rest_.begin(), end);
    rest_.remove_prefix(word.size());
    return word;
  }

  std::optional<Json> ReadValue(size_t depth) {
    SkipSpace();
    if (rest_.empty() || depth > kMaxJsonDepth) return std::nullopt;
    if (Take('{')) return ReadObject(depth);
    if (Take('[')) return ReadList(depth);
    if (BeginsWithQuote()) return ReadText();
    return ReadWord();
  }

  std::optional<Json> ReadObject(size_t depth) {
    Json object = Json::object();
    while (!Take('}')) {
      const std::optional<std::string> name = ReadName();
      if (!name) return std::nullopt;
      std::optional<Json> value = ReadValue(depth + 1);
      if (!value || object.size() >= kMaxJsonKeys) return std::nullopt;
      object[*name] = std::move(*value);
      if (!Take(',') && !rest_.starts_with('}')) return std::nullopt;
    }
    return object;
  }

  // Reads the name of a field, and the colon behind it.
  std::optional<std::string> ReadName() {
    if (!BeginsWithQuote()) return TakeNameBefore(':');
    std::optional<std::string> name = ReadText();
    return Take(':') ? std::move(name) : std::nullopt;
  }

  std::optional<Json> ReadList(size_t depth) {
    Json list = Json::array();
    while (!Take(']')) {
      std::optional<Json> value = ReadValue(depth + 1);
      if (!value) return std::nullopt;
      list.push_back(std::move(*value));
      if (!Take(',') && !rest_.starts_with(']')) return std::nullopt;
    }
    return list;
  }

  std::optional<std::string> ReadText() {
    if (rest_.starts_with(kGemmaQuote)) {
      rest_.remove_prefix(kGemmaQuote.size());
      const size_t end = rest_.find(kGemmaQuote);
      if (end == rest_.npos) return std::nullopt;
      std::string text(rest_.substr(0, end));
      rest_.remove_prefix(end + kGemmaQuote.size());
      return text;
    }
    const char quote = rest_.front();
    // JSON reads the escapes: quotes and line ends are made those of JSON.
    std::string json = "\"";
    size_t at = 1;
    for (; at < rest_.size() && rest_[at] != quote; ++at) AppendCharacter(json, at);
    if (at >= rest_.size()) return std::nullopt;
    rest_.remove_prefix(at + 1);
    const std::optional<Json> text = TryReadJson(json + '"');
    if (!text) return std::nullopt;
    return text->get<std::string>();
  }

  void AppendCharacter(std::string& json, size_t& at) const {
    static constexpr std::string_view kEscapes = "\"\\/bfnrtu";
    const char c = rest_[at];
    if (c == '\\' && at + 1 < rest_.size()) {
      const char next = rest_[++at];
      if (next == '\'') {
        json += next;
      } else if (kEscapes.contains(next)) {
        json += c;
        json += next;
      } else {
        // No escape: Python keeps the backslash.
        json += "\\\\";
        --at;
      }
    } else {
      AppendEscaped(std::string_view(&c, 1), json);
    }
  }

  std::optional<Json> ReadWord() {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kPython = {
        {{"True", "true"}, {"False", "false"}, {"None", "null"}}};
    std::string_view word = TakeWord();
    const auto python =
        std::ranges::find(kPython, word, &std::pair<std::string_view, std::string_view>::first);
    if (python != kPython.end()) word = python->second;
    return word.empty() ? std::nullopt : TryReadJson(word);
  }

  std::string_view rest_;
};

}  // namespace

std::optional<Json> ReadLiteral(std::string_view text) { return LiteralReader(text).ReadAll(); }

std::optional<Json> ReadKeywords(std::string_view text) {
  return LiteralReader(text).ReadAllKeywords();
}

}  // namespace cria::server
