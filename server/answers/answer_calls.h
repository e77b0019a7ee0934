#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

#include "server/answers/answer_form.h"
#include "server/answers/answer_listener.h"

namespace cria::server {

// The calls of tools that an answer has so far.
class AnswerCalls {
 public:
  // `is_full` says whether the answer has as many tokens as it may have. The others must outlive
  // the object.
  AnswerCalls(const AnswerForm& form, AnswerListener& listener, std::function<bool()> is_full)
      : form_(form), listener_(listener), is_full_(std::move(is_full)) {}

  size_t count() const { return count_; }
  // What the answer must still have.
  AnswerNeed need() const { return count_ > 0 ? AnswerNeed::kNothing : form_.need(); }
  // Whether another call may follow.
  bool may_go_on() const;
  // Whether nothing but white space has followed the last call.
  bool is_behind_call() const { return is_behind_call_; }
  void GoOnWithText() { is_behind_call_ = false; }

  void Begin(std::string_view name);
  // Arguments of the last call.
  void PassArguments(std::string_view text);

 private:
  const AnswerForm& form_;
  AnswerListener& listener_;
  const std::function<bool()> is_full_;
  size_t count_ = 0;
  bool is_behind_call_ = false;
};

}  // namespace cria::server
