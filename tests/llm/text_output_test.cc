#include "llm/text_output.h"

#include <gtest/gtest.h>

#include <string>

#include "llm/conversation_fixture.h"

namespace cria {
namespace {

class TextOutputTest : public testing::Test {
 protected:
  TextOutputTest() {
    auto tokenizer = Tokenizer::Create(vocabulary_.view());
    EXPECT_TRUE(tokenizer);
    tokenizer_.emplace(std::move(*tokenizer));
    detokenizer_.emplace(*tokenizer_);
  }

  void Write(TextOutput& output, std::string_view bytes) {
    for (const char byte : bytes) output.Write(output.TextOf(ByteToken(byte)));
  }

  ByteVocabulary vocabulary_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<Detokenizer> detokenizer_;
  std::string text_;
  const TextCallback on_text_ = [this](std::string_view text) {
    EXPECT_FALSE(text.empty());
    text_ += text;
  };
};

TEST_F(TextOutputTest, PassesOnWholeCharactersAndWhatIsLeftOfOne) {
  TextOutput output(*detokenizer_, nullptr, on_text_);
  Write(output, "a\u00e9\xE2\x82");
  EXPECT_EQ(text_, "a\u00e9");
  EXPECT_EQ(output.End(), "\uFFFD");
  EXPECT_EQ(text_, "a\u00e9\uFFFD");
  EXPECT_FALSE(output.has_stop_string());
}

TEST_F(TextOutputTest, HoldsBackWhatMayBecomeAStopString) {
  StopStrings stops = *StopStrings::Create({"STOP"});
  TextOutput output(*detokenizer_, &stops, on_text_);
  Write(output, "no ST");
  EXPECT_EQ(text_, "no ");
  EXPECT_EQ(output.End(), "");
  EXPECT_EQ(text_, "no ST");
  EXPECT_FALSE(output.has_stop_string());
}

TEST_F(TextOutputTest, EndsBeforeAStopString) {
  StopStrings stops = *StopStrings::Create({"STOP"});
  // It is half found in another text.
  stops.Append("ST");
  TextOutput output(*detokenizer_, &stops, on_text_);
  Write(output, "OP, now STOP!");
  output.End();
  EXPECT_TRUE(output.has_stop_string());
  EXPECT_EQ(text_, "OP, now ");
}

}  // namespace
}  // namespace cria
