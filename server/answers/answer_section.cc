#include "server/answers/answer_section.h"

namespace cria::server {

void AnswerSection::Begin(size_t skipped_bytes) {
  taken_bytes_ = skipped_bytes;
  next_.reset();
}

void AnswerSection::Take(std::string_view text) {
  if (has_ended()) return;
  taken_bytes_ += text.size();
  TakeText(text);
}

}  // namespace cria::server
