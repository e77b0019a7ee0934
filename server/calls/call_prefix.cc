#include "server/calls/call_prefix.h"

#include <algorithm>
#include <array>

#include "server/calls/json_scanner.h"

namespace cria::server {
namespace {

struct KnownTags {
  std::string_view opening;
  std::string_view closing;
  bool may_have_name = false;  // name[ARGS]{…} may follow.
};

// These are the tags of Hermes and Qwen; Granite 3 and Phi 4; Llama; Mistral; Phi 4 without its
// control tokens.
constexpr std::array<KnownTags, 5> kKnownTags = {{{"<tool_call>", "</tool_call>"},
                                                  {"<|tool_call|>", "<|/tool_call|>"},
                                                  {"<|python_tag|>", ""},
                                                  {"[TOOL_CALLS]", "", /*may_have_name=*/true},
                                                  {"functools", ""}}};

constexpr size_t kMinFenceBytes = 3;
constexpr size_t kMaxLanguageBytes = 16;

bool IsLanguageCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '+';
}

class PrefixReader {
 public:
  PrefixReader(std::string_view text, const CallTags* last, const CallPrefixOptions& options)
      : text_(text), rest_(text), options_(options), closes_(last != nullptr) {
    if (last != nullptr) prefix_.tags = *last;
  }

  CallPrefix Read() {
    if (text_.size() > kMaxCallPrefixBytes) return prefix_;
    while (TakePart()) {
    }
    prefix_.begin = text_.size() - rest_.size();
    return prefix_;
  }

 private:
  using Next = CallPrefix::Next;

  // Sets what is next.
  bool End(Next next) {
    prefix_.next = next;
    return false;
  }

  // Returns whether there may be more.
  bool TakePart() {
    rest_ = SkipJsonSpace(rest_);
    if (rest_.empty()) return End(Next::kPerhaps);
    const std::string_view closing = closes_ ? prefix_.tags.closing : std::string_view();
    if (!closing.empty() && rest_.starts_with(closing)) {
      rest_.remove_prefix(closing.size());
      prefix_.tags.closing = {};
      prefix_.tags.is_tagged = false;
      return Closed();
    }
    if (closing.starts_with(rest_)) return End(Next::kPerhaps);
    if (rest_.front() == '`') return TakeFence();
    if (closes_ && (rest_.front() == ',' || rest_.front() == ';')) {
      rest_.remove_prefix(1);
      return true;
    }
    return TakeOpening();
  }

  bool Closed() {
    prefix_.closed_bytes = text_.size() - rest_.size();
    return true;
  }

  bool TakeFence() {
    const size_t run = rest_.find_first_not_of('`');
    if (run == rest_.npos) return End(Next::kPerhaps);
    CallTags& tags = prefix_.tags;
    if (tags.fence_bytes != 0) {
      if (!closes_ || tags.fence_bytes != run) return End(Next::kNoCall);
      rest_.remove_prefix(run);
      tags.fence_bytes = 0;
      return Closed();
    }
    const bool closes_other = options_.is_in_fence && run >= kMinFenceBytes;
    if (!options_.takes_bare || closes_other) return End(Next::kNoCall);
    const std::string_view language = rest_.substr(run);
    const auto end = std::ranges::find_if_not(language, IsLanguageCharacter);
    const auto language_bytes = static_cast<size_t>(end - language.begin());
    if (language_bytes > kMaxLanguageBytes) return End(Next::kNoCall);
    if (end == language.end()) return End(Next::kPerhaps);
    rest_.remove_prefix(run + language_bytes);
    tags.fence_bytes = run;
    closes_ = false;
    return true;
  }

  bool TakeOpening() {
    if (!has_opening_) {
      bool may_be_opening = false;
      for (const KnownTags& known : kKnownTags) {
        if (rest_.starts_with(known.opening)) return Open(known);
        may_be_opening = may_be_opening || known.opening.starts_with(rest_);
      }
      if (may_be_opening) return End(Next::kPerhaps);
    }
    const bool may_be_json = options_.takes_bare || prefix_.tags.is_tagged;
    if (rest_.front() == '{' || rest_.front() == '[') {
      return End(may_be_json ? Next::kJson : Next::kNoCall);
    }
    return End(may_have_name_ ? Next::kName : Next::kNoCall);
  }

  bool Open(const KnownTags& known) {
    rest_.remove_prefix(known.opening.size());
    prefix_.tags.closing = known.closing;
    prefix_.tags.is_tagged = has_opening_ = true;
    may_have_name_ = known.may_have_name;
    closes_ = false;
    return true;
  }

  const std::string_view text_;
  std::string_view rest_;
  const CallPrefixOptions options_;
  bool closes_;  // What closes the call before may still come.
  bool has_opening_ = false;
  bool may_have_name_ = false;
  CallPrefix prefix_;
};

}  // namespace

bool MayBeginCall(char byte, bool takes_bare) {
  if (takes_bare && (byte == '{' || byte == '[' || byte == '`')) return true;
  return std::ranges::any_of(kKnownTags,
                             [&](const KnownTags& tags) { return tags.opening.front() == byte; });
}

CallPrefix ReadCallPrefix(std::string_view text, const CallTags* last,
                          const CallPrefixOptions& options) {
  return PrefixReader(text, last, options).Read();
}

bool BeginsWithFence(std::string_view text) {
  const std::string_view rest = SkipJsonSpace(text);
  return std::min(rest.find_first_not_of('`'), rest.size()) >= kMinFenceBytes;
}

}  // namespace cria::server
