#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "llm/stop_strings.h"
#include "text/detokenizer.h"

namespace cria {

// Called with the next part of the text, which never ends inside a UTF-8 character.
using TextCallback = std::function<void(std::string_view)>;

// Turns generated tokens into text, and passes on what comes before a stop string.
class TextOutput {
 public:
  // All must outlive the object. `detokenizer` must be in the state that follows the text so far;
  // `stop_strings`, which begin a new text, may be null.
  TextOutput(Detokenizer& detokenizer, StopStrings* stop_strings, const TextCallback& on_text);

  // The token's part of the text, which ends with a whole character and may be empty. It is valid
  // until the next call, and is not passed on before it is written.
  std::string_view TextOf(int32_t token) { return detokenizer_.Append(token); }
  void Write(std::string_view text);
  // Writes what is left when there are no more tokens, and passes on what may have become a stop
  // string. Returns what the detokenizer had left, which is valid until its next call.
  std::string_view End();

  bool has_stop_string() const { return stop_strings_ != nullptr && stop_strings_->is_found(); }

 private:
  void Emit(std::string_view text);

  Detokenizer& detokenizer_;
  StopStrings* const stop_strings_;
  const TextCallback& on_text_;
};

}  // namespace cria
