#include "serve/api/call_finder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/format.h"
#include "serve/api/tool_format.h"

namespace cria::serve {
namespace {

constexpr std::string_view kArgsMark = "[ARGS]";
constexpr std::string_view kCallIdMark = "[CALL_ID]";
constexpr std::string_view kFunctionType = "function";

}  // namespace

CallFinder::CallFinder(const ToolUse& use, const Options& options, Listener listener)
    : use_(use), options_(options), listener_(std::move(listener)) {}

void CallFinder::Append(std::string_view text) {
  for (const char byte : text) {
    if (is_found_) break;
    ++position_;
    TakeByte(byte);
  }
  if (is_at_arguments_) FindArguments(begin_, "");
  PassOn();
}

void CallFinder::Flush() {
  if (state_ == State::kPrefix) {
    // A line end shows that what closes the last call is complete.
    held_ += '\n';
    const size_t closed_bytes = ReadPrefix().closed_bytes;
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
  is_found_ = false;
  position_ = 0;
  held_.clear();
  is_called_ = true;
  if (scanner_.watched_depth() == 0) return GoBehindCall();
  scanner_.GoToValueEnd();
  state_ = State::kJson;
}

void CallFinder::GoToCallEnd() {
  is_found_ = false;
  position_ = 0;
  held_.clear();
  tags_ = {};
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

bool CallFinder::BeginsToolName(std::string_view text) const {
  return std::ranges::any_of(use_.tools,
                             [&](const Tool& tool) { return tool.name.starts_with(text); });
}

bool CallFinder::IsToolName(std::string_view text) const {
  return std::ranges::contains(use_.tools, text, &Tool::name);
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
    if (!MayBeginCall(byte, options_.takes_bare)) {
      passed_ += byte;
      return;
    }
    state_ = State::kPrefix;
    follows_call_ = false;
  }
  held_ += byte;
  if (state_ == State::kPrefix) return TakePrefixByte();
  if (state_ == State::kName) return TakeNameByte();
  TakeJsonByte(held_.size() - 1);
}

// The text is short, so that it is read from its beginning every time.
CallPrefix CallFinder::ReadPrefix() const {
  return ReadCallPrefix(held_, follows_call_ ? &tags_ : nullptr,
                        {.takes_bare = options_.takes_bare, .is_in_fence = is_in_fence_});
}

void CallFinder::TakePrefixByte() {
  const CallPrefix prefix = ReadPrefix();
  if (prefix.next == CallPrefix::Next::kPerhaps) return;
  held_.erase(0, prefix.closed_bytes);
  if (prefix.next == CallPrefix::Next::kNoCall) return GiveUp();
  tags_ = prefix.tags;
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
    if (!BeginsToolName(name)) GiveUp();
    return;
  }
  if (!IsToolName(name)) return GiveUp();
  // A call's id may stand between the name and the arguments.
  if (rest.starts_with(kCallIdMark)) {
    rest.remove_prefix(std::min(rest.find('[', kCallIdMark.size()), rest.size()));
  }
  if (kArgsMark.starts_with(rest) || kCallIdMark.starts_with(rest)) return;
  if (!rest.starts_with(kArgsMark)) return GiveUp();
  rest.remove_prefix(kArgsMark.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
  if (rest.empty()) return;
  if (rest != "{") return GiveUp();
  name_ = name;
  scanner_.Begin(/*watched_depth=*/0);
  state_ = State::kJson;
  is_called_ = is_in_value_ = false;
  object_begin_ = held_.size() - 1;
  scanner_.Take('{');
  BeginArguments();
}

void CallFinder::BeginJson(size_t begin) {
  state_ = State::kJson;
  is_called_ = is_in_value_ = false;
  scanner_.Begin(held_[begin] == '[' ? 2 : 1);
  // There is one byte, or two of which the first one begins a list.
  for (size_t at = begin; at < held_.size() && state_ == State::kJson; ++at) TakeJsonByte(at);
}

void CallFinder::TakeJsonByte(size_t at) {
  using enum JsonScanner::Step;
  const JsonScanner::Step step = scanner_.Take(held_[at]);
  if (step == kInvalid) return is_at_arguments_ ? FindArguments(begin_, "") : GiveUp();
  if (step == kObject) return BeginObject(at);
  if (step == kElement) return PassJson();
  if (step == kObjectEnd) return EndObject();
  if (scanner_.is_complete()) {
    if (scanner_.watched_depth() == 0) {
      is_at_arguments_ = false;
      arguments_ = held_.substr(object_begin_);
      return EndObject();
    }
    // The end of a list, whose last object was a call if it has any.
    if (!is_called_) return PassJson();
    held_.clear();
    return GoBehindCall();
  }
  if (is_called_) return;
  if (step == kKey) return TakeKey();
  if (step == kValue) return TakeValueBegin(at);
  if (step == kValueEnd) return TakeValueEnd(at);
  if (is_in_value_) TakeValueByte(at);
}

void CallFinder::BeginObject(size_t at) {
  object_begin_ = at;
  is_called_ = is_in_value_ = false;
  name_.clear();
  arguments_.clear();
}

void CallFinder::TakeKey() {
  const std::string& key = scanner_.key();
  field_ = Field::kOther;
  is_in_value_ = false;
  if (key == "name" && name_.empty()) {
    field_ = Field::kName;
  } else if (key == "type" && !tags_.is_tagged) {
    field_ = Field::kType;
  } else if ((key == "arguments" || key == "parameters") && arguments_.empty()) {
    field_ = Field::kArguments;
  } else if (!tags_.is_tagged && key != "id" && (name_.empty() || key == "description")) {
    // Some other object, such as the definition of a tool.
    PassJson();
  }
}

void CallFinder::TakeValueBegin(size_t at) {
  is_in_value_ = true;
  value_begin_ = at;
  if (field_ == Field::kOther) return;
  if (field_ == Field::kArguments && held_[at] == '{') {
    if (!name_.empty()) BeginArguments();
    return;
  }
  if (held_[at] != '"') PassJson();
}

void CallFinder::TakeValueByte(size_t at) {
  const std::string_view text = std::string_view(held_).substr(value_begin_ + 1, at - value_begin_);
  if (field_ == Field::kName && !BeginsToolName(text)) return PassJson();
  if (field_ == Field::kType && !kFunctionType.starts_with(text)) PassJson();
}

void CallFinder::TakeValueEnd(size_t at) {
  is_in_value_ = false;
  const std::string_view value =
      std::string_view(held_).substr(value_begin_, at + 1 - value_begin_);
  if (field_ == Field::kArguments) {
    is_at_arguments_ = false;
    arguments_ = value;
  }
  if (field_ != Field::kName && field_ != Field::kType) return;
  const std::string_view text = value.substr(1, value.size() - 2);
  if (field_ == Field::kName ? !IsToolName(text) : text != kFunctionType) return PassJson();
  if (field_ == Field::kName) name_ = text;
}

ToolCall CallFinder::CallOfFields() const {
  if (name_.empty()) return {};
  if (arguments_.empty()) return tags_.is_tagged ? ToolCall{name_, "{}"} : ToolCall{};
  std::optional<Json> read = TryReadJson(arguments_);
  if (!read) return {};
  if (read->is_object()) return {name_, arguments_};
  // Some models write the arguments as a string of JSON.
  read = TryReadJson(read->get<std::string>());
  if (!read || !read->is_object()) return {};
  return {name_, Written(*read)};
}

void CallFinder::EndObject() {
  if (!is_called_) {
    const ToolCall call = CallOfFields();
    if (call.name.empty()) return PassJson();
    PassOn();
    is_called_ = true;
    if (!listener_.on_call(call)) {
      return FindArguments(position_ - (held_.size() - object_begin_),
                           Format(R"({{"name": "{}", "arguments": )", name_));
    }
  }
  held_.clear();
  if (scanner_.is_complete()) GoBehindCall();
}

void CallFinder::BeginArguments() {
  is_at_arguments_ = options_.stops_at_arguments;
  begin_ = position_ - 1;
}

void CallFinder::FindArguments(size_t begin, std::string forced) {
  PassOn();
  is_at_arguments_ = false;
  held_.clear();
  is_found_ = true;
  begin_ = begin;
  forced_ = std::move(forced);
}

}  // namespace cria::serve
