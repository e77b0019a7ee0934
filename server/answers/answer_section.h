#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/answers/answer_listener.h"

namespace cria::server {

enum class SectionKind : uint8_t { kFree, kShaped, kCall, kArguments };

// Where a section begins: at a place in the text of the section before.
struct SectionBegin {
  SectionKind kind = SectionKind::kFree;
  size_t at = 0;            // In bytes.
  std::string forced;       // Text that is put before the section.
  bool is_opened = false;   // kCall: the model has written what opens a call.
  bool is_written = false;  // The section begins in tokens that the context has, and keeps these.
};

// A part of an answer in which the constraint does not change: reads its text while it comes.
class AnswerSection {
 public:
  virtual ~AnswerSection() = default;

  // Begins to read a section, whose text so far has `skipped_bytes` of the section before.
  virtual void Begin(size_t skipped_bytes);
  // Takes the next part of the text. What comes after the end is ignored.
  void Take(std::string_view text);
  // A token of the section, before its text, if log-probabilities are asked for.
  virtual void TakeToken(TokenLogProbability /*token*/) {}
  // Each token is counted before its text.
  virtual void CountToken() {}

  virtual SectionKind kind() const = 0;
  // Whether the constraint holds for the text.
  bool is_constrained() const { return kind() != SectionKind::kFree; }
  // Whether stop strings end the text.
  bool may_have_stop_string() const {
    return kind() == SectionKind::kFree || kind() == SectionKind::kShaped;
  }

  // Whether the text ends here: another section follows, or nothing.
  bool has_ended() const { return next_ || is_last_; }
  bool is_last() const { return is_last_; }
  // What follows; nothing if that is not known, or nothing follows.
  const std::optional<SectionBegin>& next() const { return next_; }

 protected:
  virtual void TakeText(std::string_view text) = 0;
  // How much of the section's text has been taken, that of the current TakeText included.
  size_t taken_bytes() const { return taken_bytes_; }
  void GoTo(SectionKind kind, size_t at) { next_ = {.kind = kind, .at = at}; }
  void EndAnswer() { is_last_ = true; }

 private:
  size_t taken_bytes_ = 0;
  std::optional<SectionBegin> next_;
  bool is_last_ = false;
};

}  // namespace cria::server
