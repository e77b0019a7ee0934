#include "server/answers/answer_calls.h"

#include <string>

#include "server/requests/unique_id.h"

namespace cria::server {
namespace {

// More calls than this in one answer are a model that does not end.
constexpr size_t kMaxCalls = 64;

}  // namespace

bool AnswerCalls::may_go_on() const {
  return form_.tools()->is_parallel && count_ < kMaxCalls && !is_full_();
}

void AnswerCalls::Begin(std::string_view name) {
  is_behind_call_ = true;
  listener_.OnCall(count_++, NewCallId(), std::string(name));
}

void AnswerCalls::PassArguments(std::string_view text) {
  if (count_ > 0) listener_.OnArguments(count_ - 1, text);
}

}  // namespace cria::server
