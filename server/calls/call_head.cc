#include "server/calls/call_head.h"

#include "server/calls/harmony.h"
#include "server/calls/json_scanner.h"

namespace cria::server {
namespace {

class HeadReader {
 public:
  HeadReader(const CallForm& form, const ToolUse& use, std::string_view text)
      : form_(form), use_(use), text_(text), rest_(text) {}

  CallHead Read(CallPlace place) {
    if (text_.size() > kMaxCallHeadBytes) return head_;
    bool is_in_section = false;
    if (place == CallPlace::kBehindCall) {
      is_in_section = !form_.section_open.empty();
      if (!TakeClosing(is_in_section)) return End(Next::kPerhaps);
    }
    if (TrimSpace(rest_).empty()) return End(Next::kPerhaps);
    if (!is_in_section && !TakeOpening(form_.section_open)) return head_;
    if (!TakeOpening(form_.call_open)) return head_;
    return ReadName();
  }

 private:
  using Next = CallHead::Next;

  CallHead End(Next next) {
    head_.next = next;
    return head_;
  }

  size_t position() const { return text_.size() - rest_.size(); }

  // Takes what closes the call before, as far as it is there. Returns false if the text may go on
  // with more of it.
  bool TakeClosing(bool& is_in_section) {
    for (const std::string_view closing :
         {form_.call_close, form_.separator, form_.section_close}) {
      if (TrimSpace(closing).empty()) continue;
      const Match match = TakeLiteral(closing, rest_);
      if (match == Match::kPerhaps) return false;
      if (match == Match::kNo) continue;
      if (closing != form_.separator) head_.closed_bytes = position();
      if (closing == form_.section_close) is_in_section = false;
    }
    return true;
  }

  bool TakeOpening(std::string_view opening) {
    const Match match = TakeLiteral(opening, rest_);
    head_.next = match == Match::kPerhaps ? Next::kPerhaps : Next::kNoCall;
    return match == Match::kYes;
  }

  // Reads the name, and what stands behind it.
  CallHead ReadName() {
    head_.begin = position();
    rest_ = SkipJsonSpace(rest_);
    if (rest_.empty()) return End(form_.is_certain ? Next::kName : Next::kPerhaps);
    bool may_be_name = false;
    std::string_view name;
    std::string_view after_name;
    for (const Tool& tool : use_.tools) {
      if (tool.name.starts_with(rest_)) may_be_name = true;
      if (!rest_.starts_with(tool.name) || tool.name.size() < name.size()) continue;
      std::string_view after = rest_.substr(tool.name.size());
      const Match match = TakeNameEnd(after);
      if (match == Match::kPerhaps) may_be_name = true;
      if (match != Match::kYes) continue;
      name = tool.name;
      after_name = after;
    }
    if (name.empty() || may_be_name) return End(may_be_name ? Next::kPerhaps : Next::kNoCall);
    rest_ = after_name;
    head_.begin = position();
    head_.name = name;
    return End(Next::kArguments);
  }

  // The arguments begin behind it, some of them with a brace.
  Match TakeNameEnd(std::string_view& after) const {
    const Match match = TakeLiteral(form_.name_end, after);
    if (match != Match::kYes) return match;
    if (form_.has_braces()) {
      after = SkipJsonSpace(after);
      if (after.empty()) return Match::kPerhaps;
      return after.front() == '{' ? Match::kYes : Match::kNo;
    }
    if (!TrimSpace(form_.name_end).empty()) return Match::kYes;
    if (after.empty()) return Match::kPerhaps;
    return IsToolNameCharacter(after.front()) ? Match::kNo : Match::kYes;
  }

  const CallForm& form_;
  const ToolUse& use_;
  const std::string_view text_;
  std::string_view rest_;
  CallHead head_;
};

}  // namespace

bool MayBeginHead(const CallForm& form, char byte) {
  if (form.has_channels) return byte == '<';
  return form.first_opening().starts_with(byte);
}

CallHead ReadCallHead(const CallForm& form, const ToolUse& use, CallPlace place,
                      std::string_view text) {
  if (form.has_channels) return ReadHarmonyHead(use, text);
  return HeadReader(form, use, text).Read(place);
}

}  // namespace cria::server
