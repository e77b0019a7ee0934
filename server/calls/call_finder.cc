#include "server/calls/call_finder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/format.h"

namespace cria::server {
namespace {

constexpr std::string_view kArgsMark = "[ARGS]";
constexpr std::string_view kCallIdMark = "[CALL_ID]";

// `form` is that of the call before.
CallPlace PlaceOfHead(bool follows_call, const CallForm* form) {
  return follows_call && form != nullptr ? CallPlace::kBehindCall : CallPlace::kText;
}

}  // namespace

CallFinder::CallFinder(const ToolUse& use, const Options& options, Listener listener)
    : options_(options),
      listener_(std::move(listener)),
      fields_(use),
      form_reader_(use, options.form) {}

void CallFinder::Append(std::string_view text) {
  for (const char byte : text) {
    if (found_.is_found) break;
    ++position_;
    TakeByte(byte);
  }
  if (found_.is_near) FindArguments(found_.begin, "");
  PassOn();
}

void CallFinder::Flush() {
  if (state_ == State::kPrefix) {
    // A line end shows that what closes the last call is complete.
    held_ += '\n';
    const size_t closed_bytes = std::max(
        ReadPrefix().closed_bytes,
        form_reader_.ReadHead(PlaceOfHead(follows_call_, found_.form), held_).closed_bytes);
    held_.pop_back();
    held_.erase(0, closed_bytes);
  }
  const bool is_call = state_ == State::kJson && is_called_;
  if (!is_call) passed_ += held_;
  held_.clear();
  state_ = State::kText;
  PassOn();
}

void CallFinder::GoToArgumentsEnd() {
  found_.is_found = found_.is_before_name = false;
  position_ = 0;
  held_.clear();
  is_called_ = true;
  if (found_.form != nullptr || scanner_.watched_depth() == 0) return GoBehindCall();
  scanner_.GoToValueEnd();
  state_ = State::kJson;
}

void CallFinder::GoToCallEnd() {
  found_.is_found = found_.is_before_name = false;
  position_ = 0;
  held_.clear();
  tags_ = {};
  found_.form = options_.form;
  GoBehindCall();
}

void CallFinder::GoBehindCall() {
  state_ = State::kPrefix;
  follows_call_ = true;
}

void CallFinder::PassOn() {
  if (!passed_.empty()) listener_.on_text(std::exchange(passed_, {}));
}

void CallFinder::PassHeld() {
  if (BeginsWithFence(held_)) is_in_fence_ = !is_in_fence_;
  passed_ += std::exchange(held_, {});
}

void CallFinder::GiveUp() {
  const char last = held_.back();
  held_.pop_back();
  PassHeld();
  state_ = State::kText;
  TakeByte(last);
}

void CallFinder::PassJson() {
  PassHeld();
  state_ = scanner_.is_complete() ? State::kText : State::kOther;
}

void CallFinder::TakeByte(char byte) {
  if (state_ == State::kOther) {
    const bool is_json = scanner_.Take(byte) != JsonScanner::Step::kInvalid;
    if (!is_json || scanner_.is_complete()) state_ = State::kText;
    if (is_json) {
      passed_ += byte;
      return;
    }
  }
  if (state_ == State::kText) {
    const bool may_begin_form = form_reader_.MayBegin(byte);
    if (!may_begin_form && !MayBeginCall(byte, options_.takes_bare)) {
      passed_ += byte;
      return;
    }
    state_ = State::kPrefix;
    follows_call_ = false;
  }
  held_ += byte;
  if (state_ == State::kPrefix) return TakePrefixByte();
  if (state_ == State::kName) return TakeNameByte();
  if (state_ == State::kForm) return TakeFormByte(byte);
  TakeJsonByte(held_.size() - 1);
}

// The text is short, so that it is read from its beginning every time.
CallPrefix CallFinder::ReadPrefix() const {
  return ReadCallPrefix(held_, follows_call_ ? &tags_ : nullptr,
                        {.takes_bare = options_.takes_bare, .is_in_fence = is_in_fence_});
}

void CallFinder::TakePrefixByte() {
  const CallHead head = form_reader_.ReadHead(PlaceOfHead(follows_call_, found_.form), held_);
  if (head.next == CallHead::Next::kArguments) return BeginForm(head);
  if (head.next == CallHead::Next::kName && options_.stops_at_arguments) {
    found_.form = options_.form;
    found_.is_before_name = true;
    return FindArguments(position_ - (held_.size() - head.begin), "");
  }
  const bool may_be_form = head.next != CallHead::Next::kNoCall;
  // Behind such a call, another one may begin with a brace.
  if (may_be_form && follows_call_ && found_.form != nullptr) return;
  const CallPrefix prefix = ReadPrefix();
  if (prefix.next == CallPrefix::Next::kPerhaps) return;
  if (prefix.next == CallPrefix::Next::kNoCall) {
    if (may_be_form) return;
    held_.erase(0, std::max(prefix.closed_bytes, head.closed_bytes));
    return GiveUp();
  }
  held_.erase(0, prefix.closed_bytes);
  tags_ = prefix.tags;
  found_.form = nullptr;
  const size_t begin = prefix.begin - prefix.closed_bytes;
  if (prefix.next == CallPrefix::Next::kJson) return BeginJson(begin);
  state_ = State::kName;
  name_begin_ = begin;
  TakeNameByte();
}

// The text is short here, too.
void CallFinder::TakeNameByte() {
  if (held_.size() > kMaxCallPrefixBytes) return GiveUp();
  std::string_view rest = std::string_view(held_).substr(name_begin_);
  const std::string_view name = rest.substr(0, rest.find('['));
  rest.remove_prefix(name.size());
  if (rest.empty()) {
    if (!fields_.BeginsToolName(name)) GiveUp();
    return;
  }
  if (!fields_.IsToolName(name)) return GiveUp();
  // A call's id may stand between the name and the arguments.
  if (rest.starts_with(kCallIdMark)) {
    rest.remove_prefix(std::min(rest.find('[', kCallIdMark.size()), rest.size()));
  }
  if (kArgsMark.starts_with(rest) || kCallIdMark.starts_with(rest)) return;
  if (!rest.starts_with(kArgsMark)) return GiveUp();
  rest.remove_prefix(kArgsMark.size());
  rest = SkipJsonSpace(rest);
  if (rest.empty()) return;
  if (rest != "{") return GiveUp();
  fields_.BeginArguments(name, held_.size() - 1);
  scanner_.Begin(/*watched_depth=*/0);
  state_ = State::kJson;
  is_called_ = false;
  scanner_.Take('{');
  BeginArguments();
}

void CallFinder::BeginForm(const CallHead& head) {
  state_ = State::kForm;
  found_.form = options_.form;
  is_called_ = false;
  tags_ = {};
  form_reader_.Begin(head.name);
  held_.erase(0, head.closed_bytes);
  const size_t begin = head.begin - head.closed_bytes;
  fields_.BeginArguments(head.name, begin);
  found_.is_near = options_.stops_at_arguments;
  found_.begin = position_ - (held_.size() - begin);
  // Arguments may be known only by the byte with which they begin.
  for (const char byte : held_.substr(begin)) {
    if (state_ == State::kForm) TakeFormByte(byte);
  }
}

void CallFinder::TakeFormByte(char byte) {
  switch (form_reader_.Take(byte)) {
    case ArgumentReader::State::kMore:
      break;
    case ArgumentReader::State::kInvalid:
      return found_.is_near ? FindArguments(found_.begin, "") : GiveUp();
    case ArgumentReader::State::kComplete:
      found_.is_near = false;
      PassOn();
      if (!listener_.on_call({fields_.name(), form_reader_.arguments()})) {
        return FindArguments(position_ - (held_.size() - fields_.begin()), "");
      }
      held_.clear();
      GoBehindCall();
  }
}

void CallFinder::BeginJson(size_t begin) {
  state_ = State::kJson;
  is_called_ = false;
  fields_.LeaveValue();
  scanner_.Begin(held_[begin] == '[' ? 2 : 1);
  // There is one byte, or two of which the first one begins a list.
  for (size_t at = begin; at < held_.size() && state_ == State::kJson; ++at) TakeJsonByte(at);
}

void CallFinder::TakeJsonByte(size_t at) {
  using enum JsonScanner::Step;
  const JsonScanner::Step step = scanner_.Take(held_[at]);
  if (step == kInvalid) return found_.is_near ? FindArguments(found_.begin, "") : GiveUp();
  if (step == kObject) {
    is_called_ = false;
    return fields_.Begin(at, tags_.is_tagged);
  }
  if (step == kElement) return PassJson();
  if (step == kObjectEnd) return EndObject();
  if (scanner_.is_complete()) {
    if (scanner_.watched_depth() == 0) {
      found_.is_near = false;
      fields_.SetArguments(std::string_view(held_).substr(fields_.begin()));
      return EndObject();
    }
    // The end of a list, whose last object was a call if it has any.
    if (!is_called_) return PassJson();
    held_.clear();
    return GoBehindCall();
  }
  if (is_called_) return;
  if (step == kValueEnd) found_.is_near = false;
  switch (TakeField(step, at)) {
    case CallFields::Step::kMore:
      break;
    case CallFields::Step::kNoCall:
      PassJson();
      break;
    case CallFields::Step::kArguments:
      BeginArguments();
      break;
  }
}

CallFields::Step CallFinder::TakeField(JsonScanner::Step step, size_t at) {
  switch (step) {
    case JsonScanner::Step::kKey:
      return fields_.TakeKey(scanner_.key());
    case JsonScanner::Step::kValue:
      return fields_.TakeValueBegin(held_, at);
    case JsonScanner::Step::kValueEnd:
      return fields_.TakeValueEnd(held_, at);
    default:
      return fields_.TakeByte(held_, at);
  }
}

void CallFinder::EndObject() {
  if (!is_called_) {
    const ToolCall call = fields_.Call();
    if (call.name.empty()) return PassJson();
    const std::string forced = Format(R"({{"name": "{}", "arguments": )", fields_.name());
    PassOn();
    is_called_ = true;
    if (!listener_.on_call(call)) {
      return FindArguments(position_ - (held_.size() - fields_.begin()), forced);
    }
  }
  held_.clear();
  if (scanner_.is_complete()) GoBehindCall();
}

void CallFinder::BeginArguments() {
  found_.is_near = options_.stops_at_arguments;
  found_.begin = position_ - 1;
}

void CallFinder::FindArguments(size_t begin, std::string forced) {
  PassOn();
  found_.is_near = false;
  held_.clear();
  found_.is_found = true;
  found_.begin = begin;
  found_.forced = std::move(forced);
}

}  // namespace cria::server
