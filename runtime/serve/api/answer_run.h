#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "llm/constraint.h"
#include "llm/generator.h"
#include "llm/sampler.h"
#include "llm/session.h"
#include "llm/stop_strings.h"
#include "llm/turn.h"
#include "serve/api/answer_listener.h"
#include "serve/api/answer_request.h"
#include "serve/api/call_finder.h"
#include "serve/api/call_reader.h"
#include "serve/api/json_scanner.h"
#include "serve/api/token_log_probabilities.h"
#include "serve/api/tool_format.h"
#include "text/detokenizer.h"
#include "text/reasoning.h"
#include "text/tokenizer.h"

namespace cria::serve {

// What an answer begins with.
struct AnswerSetup {
  const Tokenizer& tokenizer;
  std::span<const int32_t> stop_token_ids;
  Session& session;
  Constraint* constraint = nullptr;  // Null: the engine has none.
  const std::atomic<bool>* cancel = nullptr;
  std::span<const int32_t> prompt;
  bool at_text_start = false;  // The text of the prompt is empty.
  const AnswerOptions& options;
  uint64_t seed = 0;

  // Of a conversation; null: text is continued.
  const ToolUse* tools = nullptr;
  const ToolFormat* format = nullptr;
  ReasoningTags tags = {};
  bool begins_in_reasoning = false;
  bool may_reason = false;  // The answer may begin with reasoning.
};

// Generates one answer: text, which may begin with reasoning, calls of tools, or text that matches
// a schema.
//
// The runtime's constraints hold from the first token of a generation, so the answer is generated
// in sections. The first one is free, unless the answer's form is certain from its beginning. As
// soon as it shows that the arguments of a call begin, or that the reasoning is over and the text
// must match a schema or be a call, it ends; its last tokens are taken back as far as they belong
// to the next section, which is constrained. What follows a call is free again, but for an answer
// that must be calls: that one ends with text that is none. For this, Generate is called instead of
// GenerateText.
class AnswerRun {
 public:
  AnswerRun(const AnswerSetup& setup, AnswerListener& listener);
  AnswerRun(const AnswerRun&) = delete;
  AnswerRun& operator=(const AnswerRun&) = delete;

  // Throws RequestError. After the first event, only if the runtime fails.
  AnswerEnd Run();

 private:
  enum class Section : uint8_t { kFree, kShaped, kCall, kArguments };
  using Marker = std::pair<int32_t, std::string_view>;
  // What the answer must still have, behind its reasoning.
  enum class Need : uint8_t { kNothing, kShape, kCall };

  // Find out what can be enforced. Throw if that is less than the request wants.
  void ChooseTools();
  void LoosenTools();
  void CheckShape();
  void FindMarkers();
  Status Constrain(const AnswerShape& shape);
  static AnswerShape ArgumentsShape(const Tool& tool);
  const Tool& ToolOf(std::string_view name) const;
  // Whether the text may stand where the constraint is, which then is behind it.
  bool Accepts(std::string_view text);
  // Whether the arguments match the tool's schema.
  bool Fits(const ToolCall& call);
  // Cancelled if it returns something.
  std::optional<StopReason> ReadPrompt();
  StopReason RunSections();
  // Each runs a section and says why the answer ended there; nothing: next_ follows.
  std::optional<StopReason> RunFree();
  std::optional<StopReason> RunShaped();
  std::optional<StopReason> RunCall();
  std::optional<StopReason> RunArguments();

  StopReason Generate(Section section, bool is_constrained);
  std::string BeginText();
  bool HasAllTokens();
  bool OnToken(const GeneratedToken& token);
  void TakeText(std::string_view text);
  void TakeUnstopped(std::string_view text);
  void BeginFilter();
  bool is_in_reasoning() const {
    return section_ == Section::kFree && filter_ && filter_->is_in_reasoning();
  }
  void MakeFinder();
  void TakeAnswer();
  void TakeFoundText(std::string_view text);
  bool TakeFoundCall(const ToolCall& call);
  void TakeArguments(std::string_view text, size_t at);
  void PassText(std::string_view text);
  void EndFree();
  void BeginCall(std::string_view name);
  // Whether another call may follow.
  bool may_call_again() const;
  // The text of control tokens that are read, or that a client must see; of others "".
  std::string_view ControlText(int32_t id) const;
  // TokenLogProbability::first_character of a token, if the tokens before it end in a character.
  size_t FirstCharacter(int32_t id, bool is_in_character) const;
  void TellLogProbability(const GeneratedToken& token, size_t first_character);
  void Next(Section section, size_t at, std::string_view forced = {});

  // Makes the context what it was where the next section begins, followed by `forced`. Returns why
  // the answer ends instead, if it does.
  std::optional<StopReason> MoveToNext(std::string_view forced = {});
  // Where the text behind the reasoning begins, in bytes of the section's text.
  size_t answer_begin() const { return taken_bytes_ - answer_bytes_; }

  const AnswerSetup& setup_;
  AnswerListener& listener_;
  Session& session_;
  Turn* turn_ = nullptr;  // While the answer runs.
  const Tokenizer& tokenizer_;
  std::optional<Sampler> sampler_;
  std::optional<StopStrings> stop_strings_;
  std::optional<ToolUse> tools_;  // With schemas that can be enforced.
  std::vector<Marker> markers_;   // Control tokens around reasoning.
  TokenLogProbabilities log_probabilities_;
  size_t num_characters_ = 0;  // Of what was generated; counted for log-probabilities alone.
  size_t num_tokens_ = 0;      // Of the answer, with forced ones.
  Need need_ = Need::kNothing;

  // Of the section.
  Section section_ = Section::kFree;
  std::optional<Detokenizer> detokenizer_;
  size_t begin_tokens_ = 0;         // Of the context.
  std::string text_;                // Of the section's tokens.
  std::vector<size_t> token_ends_;  // In text_, behind each token.
  size_t taken_bytes_ = 0;          // Of text_; the rest may begin a stop string.
  std::exception_ptr exception_;

  // The section that follows, where it begins in the bytes of text_, and what is put before it.
  std::optional<Section> next_;
  size_t next_at_ = 0;
  std::string next_forced_;
  bool keeps_text_ = false;  // It begins in tokens that the context has.

  // Of free sections.
  std::optional<ReasoningFilter> filter_;
  std::unique_ptr<CallFinder> finder_;
  std::string fresh_answer_;  // Passed on by the filter and not looked at yet.
  size_t answer_bytes_ = 0;   // Of the text behind the reasoning.
  bool skips_space_ = false;  // At the beginning of text that follows a call.
  bool is_over_ = false;      // Nothing that follows belongs to the answer.
  // Of text that may become a call.
  std::vector<TokenLogProbability> untold_tokens_;

  // Of calls.
  CallReader reader_;
  JsonScanner arguments_;
  size_t num_calls_ = 0;
};

}  // namespace cria::serve
