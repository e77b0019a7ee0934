#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/calls/argument_reader.h"
#include "server/calls/call_form.h"
#include "server/calls/call_head.h"
#include "server/requests/tools.h"

namespace cria::server {

// Reads calls of one form, one after the other: a head, and then arguments.
class FormReader {
 public:
  // `form` may be null: then nothing is a call. Both must outlive the object.
  FormReader(const ToolUse& use, const CallForm* form) : use_(use), form_(form) {}

  const CallForm* form() const { return form_; }
  bool MayBegin(char byte) const { return form_ != nullptr && MayBeginHead(*form_, byte); }
  CallHead ReadHead(CallPlace place, std::string_view text) const {
    return form_ == nullptr ? CallHead() : ReadCallHead(*form_, use_, place, text);
  }

  // Begins to read the arguments of the tool with this name, which is one of them.
  void Begin(std::string_view name);
  ArgumentReader::State Take(char byte) { return reader_->Take(byte, arguments_); }
  // Their JSON so far.
  const std::string& arguments() const { return arguments_; }

 private:
  const ToolUse& use_;
  const CallForm* form_;
  std::unique_ptr<ArgumentReader> reader_;
  std::string arguments_;
};

}  // namespace cria::server
