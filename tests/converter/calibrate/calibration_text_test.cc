#include "converter/calibrate/calibration_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converter/calibrate/shipped_text.h"
#include "converter/tokenizer/tokenizer_import.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"
#include "support/unwrap.h"

namespace cria {
namespace {

using testing::AllOf;
using testing::Gt;
using testing::HasSubstr;
using testing::Lt;

class CalibrationTextTest : public testing::Test {
 protected:
  CalibrationTextTest() {
    config_.hidden_size = config_.intermediate_size = 64;
    config_.max_position_embeddings = 128;
    support::WriteRandomCheckpoint(support::SpecMha(), folder_ / "checkpoint");
    imported_ = Unwrap(ImportTokenizer(Unwrap(ReadTokenizer(folder_ / "checkpoint")), 300));
    tokenizer_.emplace(Unwrap(Tokenizer::Create(imported_.vocabulary.view())));
  }

  Result<CalibrationTokens> Encode(std::string_view text, size_t max_tokens = 1u << 20) const {
    return EncodeCalibrationText(text, config_, *tokenizer_, chat_template_, max_tokens);
  }
  std::string ErrorOf(std::string_view text) const {
    const auto result = Encode(text);
    EXPECT_FALSE(result);
    if (result) return "";
    EXPECT_EQ(result.error().code(), ErrorCode::kUsage);
    return result.error().message();
  }
  // Sentences that differ.
  static std::string Text(size_t sentences) {
    std::string text;
    for (size_t i = 0; i < sentences; ++i) {
      text += "The bird number " + std::to_string(i * 37) + " sings in tree " + std::to_string(i);
      text += ".\n";
    }
    return text;
  }

  support::TemporaryDirectory folder_;
  ModelConfig config_;
  ImportedTokenizer imported_;
  std::optional<Tokenizer> tokenizer_;
  ChatTemplate chat_template_{"{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"};
};

TEST_F(CalibrationTextTest, CutsTheTextIntoWindows) {
  const std::string text = Text(300);
  const std::vector<int32_t> ids = Unwrap(tokenizer_->Encode(text, {.add_bos = false}));
  const CalibrationTokens tokens = Unwrap(Encode(text));
  const bool has_bos = imported_.vocabulary.view().add_bos_token;
  // The model's own length.
  EXPECT_EQ(tokens.window_tokens, 128);
  EXPECT_EQ(tokens.num_windows(), ids.size() / (has_bos ? 127 : 128));
  std::vector<int32_t> joined;
  for (size_t i = 0; i < tokens.num_windows(); ++i) {
    const auto window = tokens.Window(i);
    if (has_bos) {
      EXPECT_EQ(window.front(), imported_.vocabulary.view().bos_token_id);
    }
    joined.insert(joined.end(), window.begin() + (has_bos ? 1 : 0), window.end());
  }
  EXPECT_EQ(joined, std::vector(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(joined.size())));
}

TEST_F(CalibrationTextTest, TakesWindowsFromTheWholeOfALongText) {
  const CalibrationTokens all = Unwrap(Encode(Text(2000)));
  const CalibrationTokens some = Unwrap(Encode(Text(2000), 2048));
  ASSERT_EQ(some.num_windows(), 16);
  ASSERT_GT(all.num_windows(), 100);
  for (const size_t i : {0, 5, 15}) {
    EXPECT_THAT(some.Window(i), testing::ElementsAreArray(all.Window(i * all.num_windows() / 16)));
  }
}

TEST_F(CalibrationTextTest, ShortTextsHaveShortWindows) {
  const CalibrationTokens tokens = Unwrap(Encode(Text(12)));
  EXPECT_GE(tokens.num_windows(), 8);
  EXPECT_LT(tokens.window_tokens, 128);
  size_t held_back = 0;
  for (size_t i = 0; i < tokens.num_windows(); ++i) held_back += size_t{tokens.IsHeldBack(i)};
  EXPECT_GE(held_back, 1);
  EXPECT_LT(held_back, tokens.num_windows() / 2);
  EXPECT_THAT(ErrorOf("A word."), HasSubstr("at least 256 are needed, and about 16384"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("has 0 tokens"));
}

TEST_F(CalibrationTextTest, RendersConversations) {
  std::string lines;
  std::string rendered;
  for (int i = 0; i < 60; ++i) {
    const std::string number = std::to_string(i);
    lines += i % 2 == 0 ? R"([{"role": "user", "content": "What is )" + number + "?\"}]\n\n"
                        : R"({"id": 3, "messages": [{"role": "user", "content": "What is )" +
                              number + "?\"}]}\r\n";
    rendered += "[user]What is " + number + "?";
  }
  const CalibrationTokens tokens = Unwrap(Encode("\n" + lines));
  std::string text;
  for (const int32_t id : tokens.ids) text += tokenizer_->Piece(id);
  // Each conversation is a text of its own, with its own BOS token and its own first space.
  std::erase(text, ' ');
  std::erase(rendered, ' ');
  const std::string bos(tokenizer_->Piece(imported_.vocabulary.view().bos_token_id));
  for (size_t at = 0; !bos.empty() && (at = text.find(bos)) != std::string::npos;) {
    text.erase(at, bos.size());
  }
  EXPECT_EQ(text, rendered.substr(0, text.size()));
}

TEST_F(CalibrationTextTest, SaysWhatIsWrongWithALine) {
  EXPECT_THAT(ErrorOf("[]\n{"), HasSubstr("line 2 of the calibration text is not JSON"));
  EXPECT_THAT(ErrorOf("{\"a\": 1}"), HasSubstr("line 1 of the calibration text has no list"));
  EXPECT_THAT(ErrorOf("[1]"), HasSubstr("without the texts role and content"));
  EXPECT_THAT(ErrorOf("[{\"role\": \"user\", \"content\": 3}]"), HasSubstr("without the texts"));
}

TEST(ShippedTextTokens, FollowTheWidth) {
  ModelConfig config;
  config.hidden_size = 64;
  config.intermediate_size = 172;
  EXPECT_EQ(ShippedTextTokens(config), 8192);
  config.intermediate_size = 8192;
  EXPECT_EQ(ShippedTextTokens(config), 12288);
}

TEST(ShippedTextTokens, AreFewerForManyWeights) {
  ModelConfig config = {.hidden_size = 2048,
                        .intermediate_size = 8192,
                        .num_hidden_layers = 12,
                        .num_attention_heads = 32,
                        .num_key_value_heads = 8,
                        .head_dim = 64};
  EXPECT_THAT(ShippedTextTokens(config), AllOf(Gt(10000), Lt(12288)));
  config.num_hidden_layers = 28;
  EXPECT_EQ(ShippedTextTokens(config), 8192);
}

TEST(UsualCalibrationTokens, FollowTheWidth) {
  ModelConfig config;
  config.hidden_size = 64;
  config.intermediate_size = 172;
  EXPECT_EQ(UsualCalibrationTokens(config), 16384);
  config.intermediate_size = 8192;
  EXPECT_EQ(UsualCalibrationTokens(config), 32768);
}

TEST(UsualCalibrationTokens, GiveEveryExpertItsRows) {
  ModelConfig config;
  config.hidden_size = 2048;
  config.intermediate_size = 6144;
  config.num_experts = 128;
  config.num_experts_per_tok = 8;
  config.moe_intermediate_size = 768;
  // No layer is dense, so that intermediate_size counts for nothing.
  EXPECT_EQ(CalibrationTokensFor(config, 2), 2u * 2048u * 16u);
  EXPECT_EQ(UsualCalibrationTokens(config), 131072);
  config.num_experts_per_tok = 128;
  EXPECT_EQ(UsualCalibrationTokens(config), 16384);
  config.layer_kinds[0].dense_mlp = true;
  EXPECT_EQ(UsualCalibrationTokens(config), 24576);
  config.shared_expert_intermediate_size = 8192;
  EXPECT_EQ(UsualCalibrationTokens(config), 32768);
}

}  // namespace
}  // namespace cria
