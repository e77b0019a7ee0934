#include "text/byte_pair_merger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "converter/tokenizer/vocabulary_builder.h"

namespace cria {
namespace {

std::optional<Merge> FindMerge(const Vocabulary& vocabulary, int32_t left, int32_t right) {
  const auto id = static_cast<size_t>(left);
  for (size_t i = vocabulary.merge_offsets[id]; i < vocabulary.merge_offsets[id + 1]; ++i) {
    if (vocabulary.merges[i].right == static_cast<uint32_t>(right)) return vocabulary.merges[i];
  }
  return std::nullopt;
}

// Byte-pair encoding word for word: look at all neighbours, merge the best, again.
std::vector<int32_t> MergeNaively(const Vocabulary& vocabulary, std::vector<int32_t> ids) {
  while (true) {
    std::optional<Merge> best;
    size_t best_position = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto merge = FindMerge(vocabulary, ids[i], ids[i + 1]);
      if (merge && (!best || merge->rank < best->rank)) {
        best = merge;
        best_position = i;
      }
    }
    if (!best) return ids;
    ids[best_position] = static_cast<int32_t>(best->merged);
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(best_position) + 1);
  }
}

// Any rules at all, with many of equal rank.
OwnedVocabulary RandomRules(std::mt19937& random, uint32_t vocab_size) {
  VocabularyDraft draft;
  for (uint32_t id = 0; id < vocab_size; ++id) {
    draft.SetPiece(id, std::string(1, static_cast<char>('a' + id)), PieceType::kNormal);
  }
  const size_t num_merges = random() % 40;
  for (size_t i = 0; i < num_merges; ++i) {
    draft.merges.push_back(
        {static_cast<uint32_t>(random() % vocab_size), static_cast<uint32_t>(random() % vocab_size),
         static_cast<uint32_t>(random() % vocab_size), static_cast<uint32_t>(random() % 12)});
  }
  return BuildVocabulary(draft, vocab_size).value();
}

TEST(BytePairMergerTest, AgreesWithTheNaiveLoop) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const OwnedVocabulary rules = RandomRules(random, 8);
    const Vocabulary vocabulary = rules.view();
    // With few candidates, it looks for others again and again.
    BytePairMerger merger(vocabulary, size_t{2} << (round % 4));
    for (int text = 0; text < 3; ++text) {
      std::vector<int32_t> ids(random() % 30);
      for (int32_t& id : ids) id = static_cast<int32_t>(random() % 8);
      const std::vector<int32_t> expected = MergeNaively(vocabulary, ids);
      merger.Merge(ids, 0);
      ASSERT_EQ(ids, expected) << "round " << round;
    }
  }
}

TEST(BytePairMergerTest, LeavesWhatComesBeforeAlone) {
  VocabularyDraft draft;
  draft.SetPiece(0, "a", PieceType::kNormal);
  draft.SetPiece(1, "aa", PieceType::kNormal);
  draft.merges.push_back({0, 0, 1, 0});
  const OwnedVocabulary rules = BuildVocabulary(draft, 2).value();
  const Vocabulary vocabulary = rules.view();
  BytePairMerger merger(vocabulary);
  std::vector<int32_t> ids = {0, 0, 0, 0, 0};
  merger.Merge(ids, 2);
  EXPECT_EQ(ids, (std::vector<int32_t>{0, 0, 1, 0}));
  merger.Merge(ids, 4);
  EXPECT_EQ(ids, (std::vector<int32_t>{0, 0, 1, 0}));
}

}  // namespace
}  // namespace cria
