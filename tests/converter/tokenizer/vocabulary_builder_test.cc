#include "converter/tokenizer/vocabulary_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cria {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

VocabularyDraft Draft(std::initializer_list<const char*> pieces) {
  VocabularyDraft draft;
  for (const char* piece : pieces) {
    draft.SetPiece(static_cast<uint32_t>(draft.pieces.size()), piece, PieceType::kNormal);
  }
  return draft;
}

TEST(VocabularyBuilderTest, MakesTables) {
  VocabularyDraft draft = Draft({"b", "a", "ab", "ba"});
  draft.merges = {{1, 0, 2, 5}, {0, 1, 3, 4}};
  const auto built = BuildVocabulary(draft, 6);
  ASSERT_TRUE(built) << built.error().message();
  EXPECT_THAT(built->sorted_ids, ElementsAre(1, 2, 0, 3));
  EXPECT_THAT(built->piece_offsets, ElementsAre(0, 1, 2, 4, 6, 6, 6));
  EXPECT_THAT(built->merge_offsets, ElementsAre(0, 1, 2, 2, 2, 2, 2));
  EXPECT_EQ(built->merges[0].merged, 3u);
  EXPECT_EQ(built->merges[1].rank, 5u);
  EXPECT_EQ(built->piece_types[5], PieceType::kUnused);
  EXPECT_EQ(built->view().size(), 6u);
  EXPECT_EQ(built->view().piece(2), "ab");
  EXPECT_TRUE(ValidateVocabulary(built->view()));
}

TEST(VocabularyBuilderTest, EqualPiecesAndPairsCountOnce) {
  VocabularyDraft draft = Draft({"a", "b", "ab", "a", "ab"});
  draft.merges = {{0, 1, 4, 9}, {0, 1, 2, 3}};
  const auto built = BuildVocabulary(draft, 5);
  ASSERT_TRUE(built);
  EXPECT_THAT(built->sorted_ids, ElementsAre(0, 2, 1));
  ASSERT_EQ(built->merges.size(), 1u);
  EXPECT_EQ(built->merges[0].merged, 2u);
}

TEST(VocabularyBuilderTest, NothingMergesIntoAControlToken) {
  VocabularyDraft draft = Draft({"<", "s", "<s"});
  draft.merges = {{0, 1, 2, 0}};
  ASSERT_TRUE(draft.AddToken({2, "<s", true}, "x"));
  const auto built = BuildVocabulary(draft, 3);
  ASSERT_TRUE(built);
  EXPECT_TRUE(built->merges.empty());
  EXPECT_THAT(built->sorted_ids, ElementsAre(0, 1));
}

TEST(VocabularyBuilderTest, AllSplits) {
  VocabularyDraft draft = Draft({"a", "b", "ab", "abab", "bab", "x"});
  ASSERT_TRUE(draft.AddMergesOfAllSplits(std::vector<uint32_t>{0, 1, 2, 3, 4, 5}, "x.model"));
  std::vector<std::tuple<uint32_t, uint32_t, uint32_t>> found;
  for (const DraftMerge& merge : draft.merges) {
    EXPECT_EQ(merge.rank, merge.merged);
    found.emplace_back(merge.left, merge.right, merge.merged);
  }
  EXPECT_THAT(found, testing::UnorderedElementsAre(std::tuple(0, 1, 2), std::tuple(0, 4, 3),
                                                   std::tuple(2, 2, 3), std::tuple(1, 2, 4)));
}

TEST(VocabularyBuilderTest, AllSplitsAreMadeOfShortPiecesOnly) {
  const auto refusal = [](VocabularyDraft draft) {
    const std::vector<uint32_t> ranks(draft.pieces.size());
    const Status added = draft.AddMergesOfAllSplits(ranks, "x.model");
    return added ? std::string() : added.error().message();
  };
  const std::string longest(1024, 'a');
  EXPECT_EQ(refusal(Draft({longest.c_str()})), "");
  EXPECT_EQ(refusal(Draft({"a", (longest + 'a').c_str()})),
            "x.model: piece 1 has 1025 bytes, 1026 with those before it; at most 1024 and 16777216 "
            "are supported");
  VocabularyDraft large;
  for (uint32_t id = 0; id <= (16 << 20) / 1024; ++id) {
    large.SetPiece(id, longest, PieceType::kUserDefined);
  }
  EXPECT_EQ(refusal(large), "");
  for (DraftPiece& piece : large.pieces) piece.type = PieceType::kNormal;
  EXPECT_THAT(refusal(std::move(large)), testing::HasSubstr("piece 16384 has 1024 bytes"));
}

TEST(VocabularyBuilderTest, AddedTokens) {
  VocabularyDraft draft = Draft({"a", "<b>"});
  draft.rules.family = TokenizerFamily::kByteLevelBpe;
  EXPECT_TRUE(draft.AddToken({4, "<c>", true}, "x"));
  EXPECT_TRUE(draft.AddToken({1, "<b>", false}, "x"));
  EXPECT_EQ(draft.pieces[4].type, PieceType::kControl);
  EXPECT_EQ(draft.pieces[1].type, PieceType::kUserDefined);
  EXPECT_EQ(draft.pieces[3].type, PieceType::kUnused);
  EXPECT_EQ(draft.FindSpecial("<c>"), 4);
  EXPECT_EQ(draft.FindSpecial("a"), -1);
  // The same token again may change its type; another one may not take its place.
  EXPECT_TRUE(draft.AddToken({1, "<b>", true}, "x"));
  EXPECT_EQ(draft.pieces[1].type, PieceType::kControl);
  const Status taken = draft.AddToken({0, "<d>", true}, "some.json");
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message(),
              HasSubstr("some.json: the added token \"<d>\" has the id 0"));
  EXPECT_FALSE(draft.AddToken({kMaxDraftPieces, "<d>", true}, "x"));
}

TEST(VocabularyBuilderTest, AddedTokensOfSentencePiece) {
  VocabularyDraft draft;
  draft.SetPiece(0, "<unk>", PieceType::kUnknown);
  draft.SetPiece(1, "\n", PieceType::kByte);
  draft.SetPiece(2, "  ", PieceType::kNormal);
  EXPECT_TRUE(draft.AddToken({0, "<unk>", true}, "x"));
  EXPECT_EQ(draft.pieces[0].type, PieceType::kControl);
  EXPECT_TRUE(draft.AddToken({1, "<0x0A>", false}, "x"));
  EXPECT_EQ(draft.pieces[1].type, PieceType::kByte);
  EXPECT_TRUE(draft.AddToken({2, "\u2581\u2581", false}, "x"));
  EXPECT_EQ(draft.pieces[2].type, PieceType::kUserDefined);
}

TEST(VocabularyBuilderTest, MoreTokensThanRowsIsAnError) {
  const auto built = BuildVocabulary(Draft({"a", "b", "c"}), 2);
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code(), ErrorCode::kInvalidFile);
  EXPECT_THAT(built.error().message(), HasSubstr("3 tokens, but the checkpoint's vocab_size is 2"));
}

TEST(VocabularyBuilderTest, PiecesHaveAGreatestLength) {
  VocabularyDraft draft = Draft({"a"});
  draft.SetPiece(1, std::string(kMaxPieceBytes, 'x'), PieceType::kNormal);
  EXPECT_TRUE(BuildVocabulary(draft, 2));
  draft.SetPiece(1, std::string(kMaxPieceBytes + 1, 'x'), PieceType::kNormal);
  EXPECT_FALSE(BuildVocabulary(draft, 2));
}

TEST(VocabularyBuilderTest, EmptyTextIsUnused) {
  const auto built = BuildVocabulary(Draft({"a", ""}), 2);
  ASSERT_TRUE(built);
  EXPECT_EQ(built->piece_types[1], PieceType::kUnused);
}

}  // namespace
}  // namespace cria
