#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cria/error.h"

struct pcre2_real_code_8;  // PCRE2's compiled pattern; only the .cc includes its header.

namespace cria {

// The regular expressions that split text into words before byte-pair encoding. Each is applied to
// the words that the one before produced: its matches become words, and so do the gaps between
// them, so that the concatenated words are always the whole text.
class SplitPatterns {
 public:
  // Compiles PCRE2 patterns, to machine code if the system allows it. An error names the pattern.
  static Result<SplitPatterns> Compile(std::span<const std::string_view> patterns);

  // Calls `on_word` for each word of `text`, a view of it, in order. If `on_word` fails, Split
  // fails with its error. Bytes that are not UTF-8 match no pattern: each run of them is a word,
  // and the texts before and after are split separately. The words take no memory. May be called
  // from several threads at once.
  using WordCallback = std::function<Status(std::string_view word)>;
  Status Split(std::string_view text, const WordCallback& on_word) const;

 private:
  class MatchState;

  // Splits a valid UTF-8 text by the patterns from index `pattern` on.
  Status SplitFrom(size_t pattern, std::string_view text, MatchState& state,
                   const WordCallback& on_word) const;

  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };
  using Code = std::unique_ptr<pcre2_real_code_8, FreeCode>;

  std::vector<Code> codes_;
};

}  // namespace cria
