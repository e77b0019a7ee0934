#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include "support/allocation_watch.h"
#include "text/test_vocabulary.h"

namespace cria {
namespace {

std::string Decode(const TestTokenizer& tokenizer, const std::vector<int32_t>& ids,
                   const DetokenizerOptions& options = {}) {
  Detokenizer detokenizer(*tokenizer, options);
  std::string text;
  for (const int32_t id : ids) {
    const std::string_view part = detokenizer.Append(id);
    EXPECT_EQ(ValidUtf8Prefix(part), part.size());
    text += part;
  }
  text += detokenizer.Flush();
  return text;
}

TEST(DetokenizerTest, CharactersOverSeveralTokensComeOutWhole) {
  const TestTokenizer tokenizer(ByteLevelDraft({}));
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.Append(0xF0), "");
  EXPECT_EQ(detokenizer.Append(0x9F), "");
  EXPECT_EQ(detokenizer.Append(0x98), "");
  EXPECT_EQ(detokenizer.Append(0x80), "😀");
  EXPECT_EQ(detokenizer.Append('a'), "a");
  EXPECT_EQ(detokenizer.Flush(), "");
}

TEST(DetokenizerTest, WrongBytesAreReplacedAsSoonAsTheyAreCertain) {
  const TestTokenizer tokenizer(ByteLevelDraft({}));
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.Append(0x80), "\uFFFD");
  EXPECT_EQ(detokenizer.Append(0xE2), "");
  EXPECT_EQ(detokenizer.Append(0x82), "");
  EXPECT_EQ(detokenizer.Append('a'), "\uFFFDa");
  EXPECT_EQ(detokenizer.Append(0xED), "");
  EXPECT_EQ(detokenizer.Append(0xA0), "\uFFFD\uFFFD");
  EXPECT_EQ(detokenizer.Append(0xC3), "");
  EXPECT_EQ(detokenizer.Append(0xC3), "\uFFFD");
  EXPECT_EQ(detokenizer.Flush(), "\uFFFD");
  EXPECT_EQ(detokenizer.Flush(), "");
}

TEST(DetokenizerTest, AControlTokenEndsAnIncompleteCharacter) {
  const TestTokenizer tokenizer(ByteLevelDraft({}));
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.Append(0xC3), "");
  EXPECT_EQ(detokenizer.Append(256), "\uFFFD");
  EXPECT_EQ(detokenizer.Append(0xA9), "\uFFFD");
  EXPECT_EQ(detokenizer.Append(256), "");
}

TEST(DetokenizerTest, TheDummyPrefixIsTakenAwayOnce) {
  const TestTokenizer tokenizer(SentencePieceDraft({" ", "a", " a"}));
  const std::vector<int32_t> ids = {kBos, kFirstText + 2, kFirstText + 2};
  EXPECT_EQ(Decode(tokenizer, ids), "a a");
  EXPECT_EQ(Decode(tokenizer, ids, {.at_text_start = false}), " a a");
  EXPECT_EQ(Decode(tokenizer, {kFirstText, kFirstText, kFirstText + 1}), " a");
  EXPECT_EQ(Decode(tokenizer, {kFirstText + 1, kFirstText + 2}), "a a");
}

TEST(DetokenizerTest, FlushBeginsANewText) {
  const TestTokenizer tokenizer(SentencePieceDraft({" ", "a", " a"}));
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.Append(kFirstText + 2), "a");
  EXPECT_EQ(detokenizer.Append(kFirstText + 2), " a");
  detokenizer.Flush();
  EXPECT_EQ(detokenizer.Append(kFirstText + 2), "a");
}

TEST(DetokenizerTest, IdsOutsideTheVocabularyGiveNothing) {
  const TestTokenizer tokenizer(ByteLevelDraft({}));
  EXPECT_EQ(Decode(tokenizer, {-1, 'a', 1'000'000}), "a");
}

TEST(DetokenizerTest, TextComesBack) {
  std::mt19937 random(5);
  const TestTokenizer byte_level(ByteLevelDraft({"ab", "\xC3\xA9", "\x9F\x98"}));
  const TestTokenizer sentencepiece(
      SentencePieceDraft({" ", "a", "b", "th", "the", " the", "t", "h", "e", "日"}));
  for (int round = 0; round < 2000; ++round) {
    const std::string text = RandomText(random, false);
    EXPECT_EQ(Decode(byte_level, byte_level.Encode(text)), text);
    EXPECT_EQ(Decode(sentencepiece, sentencepiece.Encode(text)), WithPlainSpaces(text));
  }
}

TEST(DetokenizerTest, LongPiecesFit) {
  const std::string long_piece(500, '\xFF');
  VocabularyDraft draft = ByteLevelDraft({});
  draft.SetPiece(258, long_piece, PieceType::kNormal);
  const TestTokenizer tokenizer(draft);
  std::string expected = "\uFFFD";
  for (size_t i = 0; i < long_piece.size(); ++i) expected += "\uFFFD";
  EXPECT_EQ(Decode(tokenizer, {0xF0, 258}), expected);
}

TEST(DetokenizerTest, AppendingTakesNothingFromTheHeap) {
  const TestTokenizer tokenizer(SentencePieceDraft({" ", "a", " a", "日本"}));
  Detokenizer detokenizer(*tokenizer);
  support::AllocationWatch watch("appending");
  size_t text_bytes = 0;
  for (int32_t id = 0; id < static_cast<int32_t>(tokenizer->vocab_size()); ++id) {
    text_bytes += detokenizer.Append(id).size();
  }
  text_bytes += detokenizer.Flush().size();
  EXPECT_EQ(watch.Finish(), "");
  EXPECT_GT(text_bytes, 256u);
}

}  // namespace
}  // namespace cria
