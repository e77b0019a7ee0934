#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "decode/scripted_model.h"
#include "llm/constraint.h"
#include "llm/generator.h"
#include "llm/session.h"
#include "llm/tiny_engine.h"
#include "server/answers/answer_run.h"
#include "server/calls/harmony.h"
#include "text/detokenizer.h"

namespace cria::server {

// What a listener was told, in words.
class RecordingListener final : public AnswerListener {
 public:
  void OnText(AnswerPart part, std::string_view text) override {
    EXPECT_FALSE(text.empty());
    (part == AnswerPart::kAnswer ? answer : reasoning) += text;
  }
  void OnCall(size_t index, const std::string& id, const std::string& name) override {
    EXPECT_EQ(index, calls.size());
    EXPECT_EQ(id.size(), 9u);
    calls.push_back({name, ""});
  }
  void OnArguments(size_t index, std::string_view piece) override {
    ASSERT_EQ(index + 1, calls.size());
    calls[index].arguments += piece;
  }
  void OnToken(TokenLogProbability token) override { tokens.push_back(std::move(token)); }
  bool goes_on() const override { return --left > 0; }

  std::string answer;
  std::string reasoning;
  std::vector<ToolCall> calls;
  std::vector<TokenLogProbability> tokens;
  mutable int left = 100'000;  // Asked so often, it wants no more.
};

inline const Vocabulary& TinyVocabulary() {
  static const TinyModelFile file(support::SpecGqa());
  static const ModelFile opened = file.Open();
  return opened.vocabulary();
}

// The pieces of a tiny model, of which some control tokens become other tokens, four at most.
struct TestPieces {
  explicit TestPieces(const std::vector<std::string>& tokens) : vocabulary(TinyVocabulary()) {
    const std::vector<std::string> replaced = {"<|start_header_id|>", "<|end_header_id|>",
                                               "<|im_start|>", "<|im_end|>"};
    types.assign(vocabulary.piece_types.begin(), vocabulary.piece_types.end());
    for (size_t id = 0; id < types.size(); ++id) {
      std::string piece(vocabulary.piece(id));
      for (size_t i = 0; i < tokens.size(); ++i) {
        if (piece != replaced.at(i)) continue;
        piece = tokens[i];
        types[id] = PieceType::kUserDefined;
        break;
      }
      bytes.insert(bytes.end(), piece.begin(), piece.end());
      offsets.push_back(static_cast<uint32_t>(bytes.size()));
    }
    vocabulary.piece_bytes = bytes;
    vocabulary.piece_offsets = offsets;
    vocabulary.piece_types = types;
  }

  std::vector<uint8_t> bytes;
  std::vector<uint32_t> offsets = {0};
  std::vector<PieceType> types;
  Vocabulary vocabulary;
};

// A model that writes a text of the test's, as far as the constraint lets it.
class ScriptedAnswer {
 public:
  static constexpr size_t kContextTokens = 2048;

  // The vocabulary has `tokens`, of which there are at most four, beside those of a tiny model.
  // Control tokens may stand in the text.
  explicit ScriptedAnswer(std::string text, const std::vector<std::string>& tokens = {})
      : text_(std::move(text)),
        pieces_(tokens),
        model_(vocabulary().size(), kContextTokens, 64,
               [this](std::span<const int32_t> context) { return Next(context); }),
        scheduler_(model_),
        session_(scheduler_) {
    options_.sampler.temperature = 0.0f;
  }

  AnswerOptions& options() { return options_; }
  // The model writes messages of Harmony.
  void set_channels() { has_channels_ = true; }
  RecordingListener& listener() { return listener_; }

  // Answers behind a short prompt. Afterwards, the listener has the answer.
  AnswerEnd Run(const ToolUse* tools = nullptr, const ToolFormat* format = nullptr,
                bool begins_in_reasoning = false, bool may_reason = false,
                bool has_constraint = true) {
    std::unique_ptr<ConstraintTokens> shared;
    std::unique_ptr<Constraint> constraint;
    if (has_constraint) {
      shared = Unwrap(ConstraintTokens::Create(vocabulary(), vocabulary().size(), 1));
      constraint = Unwrap(Constraint::Create(*shared));
    }
    const std::vector<int32_t> stops = {kStop()};
    const AnswerSetup setup = {.tokenizer = tokenizer_,
                               .stop_token_ids = stops,
                               .session = session_,
                               .constraint = constraint.get(),
                               .prompt = prompt_,
                               .options = options_,
                               .tools = tools,
                               .format = format,
                               .tags = has_channels_ ? kHarmonyReasoning : kReasoningTags[0],
                               .begins_in_reasoning = begins_in_reasoning,
                               .has_channels = has_channels_,
                               .may_reason = may_reason || begins_in_reasoning};
    return AnswerRun(setup, listener_).Run();
  }

  // The text of the context behind the prompt.
  std::string ContextText() const { return TextOf(session_.tokens()); }

 private:
  const Vocabulary& vocabulary() const { return pieces_.vocabulary; }
  int32_t kStop() const { return vocabulary().eos_token_id; }

  std::string TextOf(std::span<const int32_t> context) const {
    std::string text;
    for (const int32_t id : context.subspan(prompt_.size())) text += tokenizer_.Piece(id);
    return text;
  }

  // The token with which the text goes on; the stop token at its end, or where the context is
  // something else.
  int32_t Next(std::span<const int32_t> context) const {
    if (context.size() < prompt_.size()) return kStop();
    const std::string so_far = TextOf(context);
    if (!text_.starts_with(so_far) || text_.size() == so_far.size()) return kStop();
    return Unwrap(tokenizer_.Encode(text_.substr(so_far.size()),
                                    {.add_bos = false, .parse_special = true}))
        .front();
  }

  const std::string text_;
  const TestPieces pieces_;
  const Tokenizer tokenizer_ = Unwrap(Tokenizer::Create(vocabulary()));
  const std::vector<int32_t> prompt_ = {72, 105};
  ScriptedModel model_;
  Scheduler scheduler_;
  Session session_;
  AnswerOptions options_;
  bool has_channels_ = false;
  RecordingListener listener_;
};

}  // namespace cria::server
