#include "server/calls/call_fields.h"

#include <algorithm>
#include <optional>

#include "server/requests/json_body.h"

namespace cria::server {
namespace {

constexpr std::string_view kFunctionType = "function";

}  // namespace

void CallFields::Begin(size_t at, bool is_tagged) {
  is_tagged_ = is_tagged;
  begin_ = at;
  is_in_value_ = false;
  name_.clear();
  arguments_.clear();
}

void CallFields::BeginArguments(std::string_view name, size_t at) {
  name_ = name;
  begin_ = at;
  is_in_value_ = false;
}

CallFields::Step CallFields::TakeKey(const std::string& key) {
  field_ = Field::kOther;
  is_in_value_ = false;
  if (key == "name" && name_.empty()) {
    field_ = Field::kName;
  } else if (key == "type" && !is_tagged_) {
    field_ = Field::kType;
  } else if ((key == "arguments" || key == "parameters") && arguments_.empty()) {
    field_ = Field::kArguments;
  } else if (!is_tagged_ && key != "id" && (name_.empty() || key == "description")) {
    // Some other object, such as the definition of a tool.
    return Step::kNoCall;
  }
  return Step::kMore;
}

CallFields::Step CallFields::TakeValueBegin(std::string_view held, size_t at) {
  is_in_value_ = true;
  value_begin_ = at;
  if (field_ == Field::kOther) return Step::kMore;
  if (field_ == Field::kArguments && held[at] == '{') {
    return name_.empty() ? Step::kMore : Step::kArguments;
  }
  return held[at] == '"' ? Step::kMore : Step::kNoCall;
}

CallFields::Step CallFields::TakeByte(std::string_view held, size_t at) const {
  if (!is_in_value_) return Step::kMore;
  const std::string_view text = held.substr(value_begin_ + 1, at - value_begin_);
  if (field_ == Field::kName && !BeginsToolName(text)) return Step::kNoCall;
  if (field_ == Field::kType && !kFunctionType.starts_with(text)) return Step::kNoCall;
  return Step::kMore;
}

CallFields::Step CallFields::TakeValueEnd(std::string_view held, size_t at) {
  is_in_value_ = false;
  const std::string_view value = held.substr(value_begin_, at + 1 - value_begin_);
  if (field_ == Field::kArguments) arguments_ = value;
  if (field_ != Field::kName && field_ != Field::kType) return Step::kMore;
  const std::string_view text = value.substr(1, value.size() - 2);
  if (field_ == Field::kName ? !IsToolName(text) : text != kFunctionType) return Step::kNoCall;
  if (field_ == Field::kName) name_ = text;
  return Step::kMore;
}

ToolCall CallFields::Call() const {
  if (name_.empty()) return {};
  if (arguments_.empty()) return is_tagged_ ? ToolCall{name_, "{}"} : ToolCall{};
  std::optional<Json> read = TryReadJson(arguments_);
  if (!read) return {};
  if (read->is_object()) return {name_, arguments_};
  // Some models write the arguments as a string of JSON.
  read = TryReadJson(read->get<std::string>());
  if (!read || !read->is_object()) return {};
  return {name_, Written(*read)};
}

bool CallFields::BeginsToolName(std::string_view text) const {
  return std::ranges::any_of(use_.tools,
                             [&](const Tool& tool) { return tool.name.starts_with(text); });
}

bool CallFields::IsToolName(std::string_view text) const {
  return std::ranges::contains(use_.tools, text, &Tool::name);
}

}  // namespace cria::server
