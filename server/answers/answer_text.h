#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "llm/generator.h"
#include "llm/sampler.h"
#include "llm/stop_strings.h"
#include "llm/text_output.h"
#include "llm/turn.h"
#include "server/answers/answer_section.h"
#include "server/answers/answer_setup.h"
#include "server/answers/section_text.h"
#include "server/answers/token_log_probabilities.h"
#include "text/detokenizer.h"

namespace cria::server {

// Generates the text of an answer, section by section, and hands it to these. Functions throw
// RequestError; those that return a reason return why the answer ends there, if it does.
class AnswerText {
 public:
  // Both must outlive the object.
  AnswerText(const AnswerSetup& setup, AnswerListener& listener);
  AnswerText(const AnswerText&) = delete;
  AnswerText& operator=(const AnswerText&) = delete;

  // The turn, which must outlive all other calls, reads the prompt.
  std::optional<StopReason> Begin(Turn& turn);
  // Makes the context what it was at a place of the section's text, followed by `forced`.
  std::optional<StopReason> MoveTo(size_t at, const std::string& forced);
  // Generates a section behind the context, or one whose text begins at a place of the last one.
  StopReason Generate(AnswerSection& section);
  StopReason GenerateFrom(size_t at, AnswerSection& section);

  // Whether the context has all tokens of the last section, and these end in whole characters.
  bool HasAllTokens();
  bool is_full() const {
    return setup_.options.max_tokens != 0 && num_tokens_ >= setup_.options.max_tokens;
  }
  size_t num_tokens() const { return num_tokens_; }  // The answer's tokens, with forced ones.
  // The stop string that the answer ended before; "" if there is none.
  std::string_view stop_string() const { return stop_strings_ ? stop_strings_->found() : ""; }
  // The last section's text.
  const std::string& text() const { return text_.text(); }
  const AnswerSection* section() const { return section_; }

 private:
  // `written` is the section's text that the context has already.
  StopReason Run(AnswerSection& section, std::string_view written);
  std::optional<StopReason> Read(std::span<const int32_t> tokens);
  GenerationOptions OptionsOf(const AnswerSection& section);
  void TakeToken(const GeneratedToken& token, TextOutput& output);
  void FindMarkers();
  // The text of control tokens that are read, or that a client must see; of others "".
  std::string_view ControlText(int32_t id) const;
  // TokenLogProbability::first_character of a token, if the tokens before it end in a character.
  size_t FirstCharacter(int32_t id, bool is_in_character) const;
  TokenLogProbability LogProbabilityOf(const GeneratedToken& token, size_t first_character);
  // Calls what may throw. Exceptions must not pass through the runtime, which is compiled without
  // them: they are kept.
  template <typename Function>
  void Guard(const Function& function);

  const AnswerSetup& setup_;
  AnswerListener& listener_;
  // With tools, a control token may mark a call, perhaps in a form that is not known here, and
  // others begin the messages of Harmony.
  const bool shows_control_;
  std::vector<std::pair<int32_t, std::string_view>> markers_;  // Control tokens around reasoning.
  Sampler sampler_;
  std::optional<StopStrings> stop_strings_;
  TokenLogProbabilities log_probabilities_;
  // Characters that were generated; counted for log-probabilities alone.
  size_t num_characters_ = 0;
  size_t num_tokens_ = 0;
  Turn* turn_ = nullptr;

  // The section that is generated, and what belongs to it.
  AnswerSection* section_ = nullptr;
  SectionText text_;
  std::optional<Detokenizer> detokenizer_;
  std::exception_ptr exception_;
};

}  // namespace cria::server
