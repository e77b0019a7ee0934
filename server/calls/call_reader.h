#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "server/calls/tool_format.h"

namespace cria::server {

// Reads calls from text that a constraint keeps well-formed, while it comes: first a call's name,
// then its arguments piece by piece. Other text makes wrong events, but does no harm.
class CallReader {
 public:
  struct Listener {
    std::function<void(std::string_view name)> on_name;
    std::function<void(std::string_view piece)> on_arguments;
  };

  explicit CallReader(Listener listener) : listener_(std::move(listener)) {}

  // Begins a part of a call. The name of kArguments came with kName before.
  void Begin(CallPart::Content content);
  void Append(std::string_view text);
  // Ends the part.
  void End();

 private:
  // What is being read of a call's own fields.
  enum class Value : uint8_t { kNone, kBefore, kName, kArguments, kOther };

  void AppendCalls(std::string_view text);
  void TakeByte(char byte);
  void TakeStringByte(char byte);
  void BeginValue();

  Listener listener_;
  CallPart::Content content_ = CallPart::Content::kCalls;
  size_t depth_ = 0;  // Open objects inside of a call, the call's own included.
  bool is_in_string_ = false;
  bool is_escaped_ = false;
  bool keeps_string_ = false;  // The string is the name of a call, or of one of its fields.
  std::string string_;         // The last such name.
  Value value_ = Value::kNone;
};

}  // namespace cria::server
