#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "converter/tokenizer/named_chat_templates.h"
#include "decode/scripted_model.h"
#include "llm/conversation.h"

namespace cria {

// A vocabulary of all bytes (token 3 + b is the byte b) and the special tokens of ChatML and
// Llama 2.
class ByteVocabulary {
 public:
  static constexpr int32_t kBeginTurn = 1;
  static constexpr int32_t kEndTurn = 2;
  static constexpr int32_t kLlama2EndTurn = 260;

  ByteVocabulary() {
    Add("<|endoftext|>", PieceType::kControl);
    Add("<|im_start|>", PieceType::kControl);
    Add("<|im_end|>", PieceType::kControl);
    for (int byte = 0; byte < 256; ++byte) {
      sorted_ids_.push_back(static_cast<uint32_t>(types_.size()));
      Add(std::string(1, static_cast<char>(byte)), PieceType::kNormal);
    }
    Add("<s>", PieceType::kControl);
    Add("</s>", PieceType::kControl);
    merge_offsets_.assign(types_.size() + 1, 0);
  }

  Vocabulary view() const {
    Vocabulary vocabulary;
    vocabulary.family = TokenizerFamily::kByteLevelBpe;
    vocabulary.piece_bytes = {reinterpret_cast<const uint8_t*>(bytes_.data()), bytes_.size()};
    vocabulary.piece_offsets = offsets_;
    vocabulary.piece_types = types_;
    vocabulary.sorted_ids = sorted_ids_;
    vocabulary.merge_offsets = merge_offsets_;
    return vocabulary;
  }
  size_t size() const { return types_.size(); }

 private:
  void Add(const std::string& piece, PieceType type) {
    bytes_ += piece;
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
    types_.push_back(type);
  }

  std::string bytes_;
  std::vector<uint32_t> offsets_ = {0};
  std::vector<PieceType> types_;
  std::vector<uint32_t> sorted_ids_;
  std::vector<uint32_t> merge_offsets_;
};

inline int32_t ByteToken(char byte) { return 3 + static_cast<uint8_t>(byte); }

class ConversationTest : public testing::Test {
 protected:
  ConversationTest()
      : model_(vocabulary_.size(), 400, 16,
               [this](std::span<const int32_t> context) { return Next(context); }),
        scheduler_(model_),
        session_(scheduler_) {
    EXPECT_TRUE(ValidateVocabulary(vocabulary_.view()));
    auto tokenizer = Tokenizer::Create(vocabulary_.view());
    EXPECT_TRUE(tokenizer) << tokenizer.error().message();
    tokenizer_.emplace(std::move(*tokenizer));
    auto sampler = Sampler::Create({.temperature = 0.0f}, vocabulary_.size());
    EXPECT_TRUE(sampler);
    sampler_.emplace(std::move(*sampler));
  }

  // Generates `answer_` after the text that opens an answer in the current template, and then ends
  // the turn.
  int32_t Next(std::span<const int32_t> context) const {
    std::vector<int32_t> opening;
    if (template_name_ == "chatml") opening = {ByteVocabulary::kBeginTurn};
    const char* text = template_name_ == "chatml"   ? "assistant\n"
                       : template_name_ == "llama2" ? "[/INST]"
                                                    : "?";
    for (; *text != '\0'; ++text) opening.push_back(ByteToken(*text));
    const auto found = std::ranges::find_end(context, opening);
    const auto said = static_cast<size_t>(context.end() - found.end());
    return said < answer_.size() ? ByteToken(answer_[said]) : stop_token_ids()[0];
  }

  std::span<const int32_t> stop_token_ids() const {
    static constexpr int32_t kStops[] = {ByteVocabulary::kEndTurn, ByteVocabulary::kLlama2EndTurn};
    return {template_name_ == "llama2" ? kStops + 1 : kStops, 1};
  }

  // One of the converter's templates, with Llama 2's special tokens.
  const ChatTemplate& chat_template() const {
    const auto all = NamedChatTemplates();
    const auto named = std::ranges::find(all, template_name_, &NamedChatTemplate::name);
    return templates_
        .try_emplace(template_name_, named->source,
                     ChatTemplateOptions{.bos_token = "<s>", .eos_token = "</s>"})
        .first->second;
  }

  Conversation Start(std::string system_prompt = "", WhenFull when_full = WhenFull::kStop) {
    return Conversation(session_, *tokenizer_, chat_template(), std::move(system_prompt),
                        when_full);
  }

  Conversation Start(std::vector<ChatMessage> messages, WhenFull when_full = WhenFull::kStop) {
    return Conversation(session_, *tokenizer_, chat_template(), std::move(messages), when_full);
  }

  GenerationOptions Options() const { return {.stop_token_ids = stop_token_ids()}; }

  Result<StopReason> Ask(Conversation& conversation, std::string_view question,
                         size_t max_tokens = 0) {
    pieces_.clear();
    GenerationOptions options = Options();
    options.max_tokens = max_tokens;
    return conversation.Reply(question, options, *sampler_,
                              [this](std::string_view text) { pieces_.emplace_back(text); });
  }

  TextCallback Listener() {
    pieces_.clear();
    return [this](std::string_view text) { pieces_.emplace_back(text); };
  }

  std::string heard() const {
    std::string text;
    for (const std::string& piece : pieces_) text += piece;
    return text;
  }

  const ByteVocabulary vocabulary_;
  std::string template_name_ = "chatml";
  std::string answer_ = "Hello.";
  ScriptedModel model_;
  Scheduler scheduler_;
  Session session_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<Sampler> sampler_;
  std::vector<std::string> pieces_;

 private:
  mutable std::map<std::string, ChatTemplate> templates_;
};

}  // namespace cria
