#include "text/special_token_finder.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "converter/tokenizer/vocabulary_builder.h"

namespace cria {
namespace {

OwnedVocabulary Specials(const std::vector<std::string>& pieces) {
  VocabularyDraft draft;
  for (uint32_t id = 0; id < pieces.size(); ++id) {
    draft.SetPiece(id, pieces[id], PieceType::kControl);
  }
  return BuildVocabulary(draft, pieces.size()).value();
}

TEST(SpecialTokenFinderTest, TakesTheLeftmostAndThereTheLongest) {
  const OwnedVocabulary vocabulary = Specials({"<a>", "<a><b>", "<b>", "<a><b"});
  const SpecialTokenFinder finder(vocabulary.view(), {0, 1, 2, 3});
  const auto first = finder.Find("x<b><a><b>", 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->offset, 1u);
  EXPECT_EQ(first->id, 2);
  const auto second = finder.Find("x<b><a><b>", 4);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->id, 1);
  EXPECT_EQ(second->size_bytes, 6u);
  EXPECT_EQ(finder.Find("<a><b", 0)->id, 3);
  EXPECT_EQ(finder.Find("<a><", 0)->id, 0);
  EXPECT_FALSE(finder.Find("<a", 0));
  EXPECT_FALSE(finder.Find("", 0));
}

TEST(SpecialTokenFinderTest, IgnoresEmptyAndRepeatedPieces) {
  const OwnedVocabulary vocabulary = Specials({"", "<a>", "<a>"});
  const SpecialTokenFinder finder(vocabulary.view(), {0, 1, 2});
  EXPECT_EQ(finder.Find("..<a>", 0)->id, 1);
  EXPECT_FALSE(SpecialTokenFinder(vocabulary.view(), {0}).Find("abc", 0));
}

TEST(SpecialTokenFinderTest, AgreesWithTryingEveryToken) {
  std::mt19937 random(2);
  const auto random_word = [&](size_t most) {
    std::string word;
    const size_t size = random() % (most + 1);
    while (word.size() < size) word += "ab\xFF"[random() % 3];
    return word;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> pieces(1 + random() % 8);
    std::vector<uint32_t> ids;
    for (std::string& piece : pieces) {
      piece = random_word(4);
      ids.push_back(static_cast<uint32_t>(ids.size()));
    }
    const OwnedVocabulary vocabulary = Specials(pieces);
    const SpecialTokenFinder finder(vocabulary.view(), ids);
    const std::string text = random_word(12);
    size_t offset = 0;
    size_t longest = 0;
    for (; offset < text.size(); ++offset) {
      for (const std::string& piece : pieces) {
        if (text.substr(offset).starts_with(piece)) longest = std::max(longest, piece.size());
      }
      if (longest > 0) break;
    }
    const auto found = finder.Find(text, 0);
    ASSERT_EQ(found.has_value(), longest > 0);
    if (!found) continue;
    EXPECT_EQ(found->offset, offset);
    EXPECT_EQ(found->size_bytes, longest);
    EXPECT_EQ(pieces[static_cast<size_t>(found->id)], text.substr(offset, longest));
  }
}

}  // namespace
}  // namespace cria
