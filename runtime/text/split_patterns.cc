#include "text/split_patterns.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/format.h"
#include "core/quotable.h"
#include "core/utf8.h"

namespace cria {
namespace {

constexpr size_t kMaxPatterns = 64;
constexpr size_t kMaxPatternBytes = 64 * 1024;

// Limit of one match, so that a pattern in a hostile model file causes an error. For n white space
// characters in a row, the known patterns backtrack n steps, so this also limits such runs.
constexpr uint32_t kMaxMatchSteps = 20'000'000;
constexpr uint32_t kMaxHeapKib = 64 * 1024;
constexpr size_t kFirstJitStackBytes = 32 * 1024;
constexpr size_t kMaxJitStackBytes = 4 * 1024 * 1024;

std::string MessageOf(int pcre2_error) {
  PCRE2_UCHAR message[256];
  if (pcre2_get_error_message(pcre2_error, message, sizeof(message)) < 0) {
    return Format("error {}", pcre2_error);
  }
  return reinterpret_cast<const char*>(message);
}

PCRE2_SPTR Bytes(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

// The number of bytes at the beginning of `text` with which no valid character begins.
size_t InvalidUtf8Prefix(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    const Utf8Character character = FirstUtf8Character(text.substr(position));
    if (character.state == Utf8State::kValid) break;
    position += character.size_bytes;
  }
  return position;
}

}  // namespace

// The objects that a match needs in addition to the pattern and the text.
class SplitPatterns::MatchState {
 public:
  MatchState()
      : data_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        jit_stack_(pcre2_jit_stack_create(kFirstJitStackBytes, kMaxJitStackBytes, nullptr)) {
    if (context_ == nullptr) return;
    pcre2_set_match_limit(context_, kMaxMatchSteps);
    pcre2_set_heap_limit(context_, kMaxHeapKib);
    // Without a stack of its own, machine code uses 32 KiB of the thread's stack.
    if (jit_stack_ != nullptr) pcre2_jit_stack_assign(context_, nullptr, jit_stack_);
  }
  MatchState(const MatchState&) = delete;
  MatchState& operator=(const MatchState&) = delete;
  ~MatchState() {
    pcre2_jit_stack_free(jit_stack_);
    pcre2_match_context_free(context_);
    pcre2_match_data_free(data_);
  }

  bool ok() const { return data_ != nullptr && context_ != nullptr; }

  // PCRE2's result for valid UTF-8. If the stack of machine code is too small for a match, the
  // pattern is interpreted, with memory from the heap.
  int Match(const pcre2_code* code, std::string_view text, size_t from) {
    const int answer =
        pcre2_match(code, Bytes(text), text.size(), from, PCRE2_NO_UTF_CHECK, data_, context_);
    if (answer != PCRE2_ERROR_JIT_STACKLIMIT) return answer;
    return pcre2_match(code, Bytes(text), text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       data_, context_);
  }
  size_t match_begin() const { return pcre2_get_ovector_pointer(data_)[0]; }
  size_t match_end() const { return pcre2_get_ovector_pointer(data_)[1]; }

 private:
  pcre2_match_data* data_;
  pcre2_match_context* context_;
  pcre2_jit_stack* jit_stack_;
};

void SplitPatterns::FreeCode::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

Result<SplitPatterns> SplitPatterns::Compile(std::span<const std::string_view> patterns) {
  if (patterns.size() > kMaxPatterns) {
    return Fail(ErrorCode::kInvalidFile,
                Format("The tokenizer has {} split patterns; at most {} are allowed",
                       patterns.size(), kMaxPatterns));
  }
  SplitPatterns compiled;
  for (const std::string_view pattern : patterns) {
    if (pattern.size() > kMaxPatternBytes) {
      return Fail(ErrorCode::kInvalidFile,
                  Format("A split pattern of the tokenizer has {} bytes; at most {} are "
                         "allowed",
                         pattern.size(), kMaxPatternBytes));
    }
    int error = 0;
    size_t error_offset = 0;
    Code code(pcre2_compile(Bytes(pattern), pattern.size(),
                            PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &error_offset,
                            nullptr));
    if (code == nullptr) {
      return Fail(ErrorCode::kInvalidFile,
                  Format("The tokenizer's split pattern \"{}\" is wrong at byte {}: {}",
                         Quotable(pattern), error_offset, MessageOf(error)));
    }
    // If machine code is not allowed, the pattern is interpreted: slower, with the same results.
    (void)pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    compiled.codes_.push_back(std::move(code));
  }
  return compiled;
}

Status SplitPatterns::SplitFrom(size_t pattern, std::string_view text, MatchState& state,
                                const WordCallback& on_word) const {
  if (pattern == codes_.size()) return on_word(text);
  // A match's words are split further before the next match is searched for.
  const auto split_further = [&](size_t begin, size_t end) {
    return SplitFrom(pattern + 1, text.substr(begin, end - begin), state, on_word);
  };
  size_t word_begin = 0;
  size_t search_from = 0;
  while (search_from < text.size()) {
    const int answer = state.Match(codes_[pattern].get(), text, search_from);
    if (answer == PCRE2_ERROR_NOMATCH) break;
    if (answer < 0) {
      return Fail(ErrorCode::kOutOfRange,
                  Format("The tokenizer's split pattern failed on this text: {}. Give it in "
                         "smaller parts",
                         MessageOf(answer)));
    }
    const size_t begin = state.match_begin();
    const size_t end = state.match_end();
    // \K and lookarounds can report a match whose end is before its begin or before the last
    // match's.
    if (begin >= end || begin < word_begin) {
      search_from = std::max(search_from, end);
      if (search_from >= text.size()) break;
      search_from += FirstUtf8Character(text.substr(search_from)).size_bytes;
      continue;
    }
    if (begin > word_begin) CRIA_RETURN_IF_ERROR(split_further(word_begin, begin));
    CRIA_RETURN_IF_ERROR(split_further(begin, end));
    word_begin = search_from = end;
  }
  return word_begin < text.size() ? split_further(word_begin, text.size()) : Status();
}

Status SplitPatterns::Split(std::string_view text, const WordCallback& on_word) const {
  MatchState state;
  if (!state.ok()) {
    return Fail(ErrorCode::kOutOfMemory,
                "There is not enough memory for matching the split patterns");
  }
  while (!text.empty()) {
    const size_t valid_bytes = ValidUtf8Prefix(text);
    if (valid_bytes > 0) {
      CRIA_RETURN_IF_ERROR(SplitFrom(0, text.substr(0, valid_bytes), state, on_word));
    }
    text.remove_prefix(valid_bytes);

    const size_t invalid_bytes = InvalidUtf8Prefix(text);
    if (invalid_bytes > 0) CRIA_RETURN_IF_ERROR(on_word(text.substr(0, invalid_bytes)));
    text.remove_prefix(invalid_bytes);
  }
  return {};
}

}  // namespace cria
