#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/requests/tools.h"

namespace cria::server {

// The fields of an object that may be a call of a tool, while it comes: name, type and arguments.
// `held` is the text so far, in which the object is, and `at` the place of its last byte.
class CallFields {
 public:
  enum class Step : uint8_t {
    kMore,
    kNoCall,     // The object is something else.
    kArguments,  // The arguments begin, and the name is known.
  };

  // `use` must outlive it.
  explicit CallFields(const ToolUse& use) : use_(use) {}

  // An object begins; `is_tagged`: behind an opening.
  void Begin(size_t at, bool is_tagged);
  // The arguments of a tool begin whose name stands before them.
  void BeginArguments(std::string_view name, size_t at);
  // The next bytes are of no value.
  void LeaveValue() { is_in_value_ = false; }
  Step TakeKey(const std::string& key);
  Step TakeValueBegin(std::string_view held, size_t at);
  Step TakeByte(std::string_view held, size_t at) const;
  Step TakeValueEnd(std::string_view held, size_t at);
  void SetArguments(std::string_view text) { arguments_ = text; }

  // The call that the fields make; without a name if they make none.
  ToolCall Call() const;
  const std::string& name() const { return name_; }
  // Where the object begins, or the arguments.
  size_t begin() const { return begin_; }

  bool BeginsToolName(std::string_view text) const;
  bool IsToolName(std::string_view text) const;

 private:
  enum class Field : uint8_t { kOther, kName, kType, kArguments };

  const ToolUse& use_;
  bool is_tagged_ = false;
  size_t begin_ = 0;
  Field field_ = Field::kOther;
  bool is_in_value_ = false;
  size_t value_begin_ = 0;
  std::string name_;
  std::string arguments_;  // As they are written: JSON, perhaps in a string.
};

}  // namespace cria::server
