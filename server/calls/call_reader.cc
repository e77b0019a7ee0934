#include "server/calls/call_reader.h"

#include "server/calls/json_scanner.h"

namespace cria::server {

void CallReader::Begin(CallPart::Content content) {
  content_ = content;
  depth_ = 0;
  is_in_string_ = is_escaped_ = keeps_string_ = false;
  string_.clear();
  value_ = Value::kNone;
}

void CallReader::Append(std::string_view text) {
  switch (content_) {
    case CallPart::Content::kName:
      string_ += text;
      break;
    case CallPart::Content::kArguments:
      if (!text.empty()) listener_.on_arguments(text);
      break;
    case CallPart::Content::kCalls:
      AppendCalls(text);
      break;
  }
}

void CallReader::End() {
  if (content_ == CallPart::Content::kName) listener_.on_name(string_);
}

// Passes the bytes of arguments, which are an object, on in one piece.
void CallReader::AppendCalls(std::string_view text) {
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool was_arguments = value_ == Value::kArguments;
    TakeByte(text[i]);
    const bool is_arguments = value_ == Value::kArguments;
    if (!was_arguments && is_arguments) begin = i;
    if (was_arguments && !is_arguments) listener_.on_arguments(text.substr(begin, i + 1 - begin));
  }
  if (value_ == Value::kArguments) listener_.on_arguments(text.substr(begin));
}

void CallReader::BeginValue() {
  value_ = string_ == "name"                                   ? Value::kName
           : string_ == "arguments" || string_ == "parameters" ? Value::kArguments
                                                               : Value::kOther;
}

void CallReader::TakeStringByte(char byte) {
  const bool ends = byte == '"' && !is_escaped_;
  is_escaped_ = byte == '\\' && !is_escaped_;
  // Names need no escapes, so that they are as they are written.
  if (!ends && keeps_string_) string_ += byte;
  if (!ends) return;
  is_in_string_ = false;
  if (keeps_string_ && value_ == Value::kName) listener_.on_name(string_);
}

void CallReader::TakeByte(char byte) {
  if (is_in_string_) return TakeStringByte(byte);
  if (value_ == Value::kBefore && !IsJsonSpace(byte)) BeginValue();
  switch (byte) {
    case '"':
      is_in_string_ = true;
      is_escaped_ = false;
      keeps_string_ = depth_ == 1 && (value_ == Value::kNone || value_ == Value::kName);
      if (keeps_string_) string_.clear();
      break;
    case ':':
      if (depth_ == 1 && value_ == Value::kNone) value_ = Value::kBefore;
      break;
    case ',':
      if (depth_ == 1) value_ = Value::kNone;
      break;
    case '{':
    case '[':
      // The brackets around a list of calls do not count.
      if (depth_ > 0 || byte == '{') ++depth_;
      break;
    case '}':
    case ']':
      if (depth_ > 0) --depth_;
      if (depth_ == 1) value_ = Value::kOther;
      if (depth_ == 0) value_ = Value::kNone;
      break;
    default:
      break;
  }
}

}  // namespace cria::server
