#include "model/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace cria {
namespace {

using testing::HasSubstr;

// "a", "b", "ab", "<s>" and the byte "b", with the one rule a + b.
struct Tables {
  std::vector<uint8_t> piece_bytes = {'a', 'b', 'a', 'b', '<', 's', '>', 'b'};
  std::vector<uint32_t> piece_offsets = {0, 1, 2, 4, 7, 8};
  std::vector<PieceType> piece_types = {PieceType::kNormal, PieceType::kNormal, PieceType::kNormal,
                                        PieceType::kControl, PieceType::kByte};
  std::vector<uint32_t> sorted_ids = {0, 2, 1};
  std::vector<uint32_t> merge_offsets = {0, 2, 2, 2, 2, 2};
  std::vector<Merge> merges = {{1, 0, 2}, {2, 1, 2}};
  std::vector<uint32_t> rstrip_ids = {3};
  Vocabulary rules;

  Vocabulary view() const {
    Vocabulary vocabulary = rules;
    vocabulary.piece_bytes = piece_bytes;
    vocabulary.piece_offsets = piece_offsets;
    vocabulary.piece_types = piece_types;
    vocabulary.sorted_ids = sorted_ids;
    vocabulary.merge_offsets = merge_offsets;
    vocabulary.merges = merges;
    vocabulary.rstrip_ids = rstrip_ids;
    return vocabulary;
  }
};

TEST(VocabularyTest, PiecesLieBetweenOffsets) {
  const Tables tables;
  EXPECT_EQ(tables.view().size(), 5u);
  EXPECT_EQ(tables.view().piece(2), "ab");
  EXPECT_EQ(tables.view().piece(3), "<s>");
}

TEST(VocabularyTest, SoundTablesPass) {
  Tables tables;
  EXPECT_TRUE(ValidateVocabulary(tables.view()));
  tables.rules.bos_token_id = 3;
  tables.rules.add_bos_token = true;
  tables.rules.unk_token_id = 0;
  EXPECT_TRUE(ValidateVocabulary(tables.view()));
}

struct Damage {
  std::string named;  // What the error must name.
  std::function<void(Tables&)> apply;
};

class VocabularyDamageTest : public testing::TestWithParam<Damage> {};

TEST_P(VocabularyDamageTest, IsFoundAndNamed) {
  Tables tables;
  GetParam().apply(tables);
  const Status status = ValidateVocabulary(tables.view());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kInvalidFile);
  EXPECT_THAT(status.error().message(), HasSubstr(GetParam().named));
}

INSTANTIATE_TEST_SUITE_P(
    All, VocabularyDamageTest,
    testing::Values(
        Damage{"piece_types is empty", [](Tables& broken) { broken.piece_types.clear(); }},
        Damage{"piece_types[1] is 6",
               [](Tables& broken) { broken.piece_types[1] = static_cast<PieceType>(6); }},
        Damage{"piece 3 stands for a byte",
               [](Tables& broken) { broken.piece_types[3] = PieceType::kByte; }},
        Damage{"piece_offsets has 5", [](Tables& broken) { broken.piece_offsets.pop_back(); }},
        Damage{"piece_offsets has 0", [](Tables& broken) { broken.piece_offsets.clear(); }},
        Damage{"piece_offsets[0] is 1", [](Tables& broken) { broken.piece_offsets[0] = 1; }},
        Damage{"piece_offsets[3] is below", [](Tables& broken) { broken.piece_offsets[3] = 1; }},
        Damage{"piece_offsets ends at 9", [](Tables& broken) { broken.piece_offsets[5] = 9; }},
        Damage{"piece_offsets ends at 8 instead of 7",
               [](Tables& broken) { broken.piece_bytes.pop_back(); }},
        Damage{"piece 4 has 65537 bytes",
               [](Tables& broken) {
                 broken.piece_bytes.resize(7 + kMaxPieceBytes + 1);
                 broken.piece_offsets[5] = 7 + kMaxPieceBytes + 1;
               }},
        Damage{"sorted_ids[1] is 5", [](Tables& broken) { broken.sorted_ids[1] = 5; }},
        Damage{"sorted_ids[2] is 3", [](Tables& broken) { broken.sorted_ids[2] = 3; }},
        Damage{"sorted_ids[1] is out of order", [](Tables& broken) { broken.sorted_ids[1] = 0; }},
        Damage{"sorted_ids[0] is out of order",
               [](Tables& broken) { broken.piece_offsets = {0, 0, 2, 4, 7, 8}; }},
        Damage{"merge_offsets has 7", [](Tables& broken) { broken.merge_offsets.push_back(2); }},
        Damage{"merge_offsets[2] is below", [](Tables& broken) { broken.merge_offsets[2] = 1; }},
        Damage{"merge_offsets ends at 2", [](Tables& broken) { broken.merges.pop_back(); }},
        Damage{"merges[0].right is 5", [](Tables& broken) { broken.merges[0].right = 5; }},
        Damage{"merges[1].merged is 4294967295",
               [](Tables& broken) { broken.merges[1].merged = 0xFFFFFFFF; }},
        Damage{"merges[1] is out of order", [](Tables& broken) { broken.merges[1].right = 1; }},
        Damage{"bos_token_id is 5", [](Tables& broken) { broken.rules.bos_token_id = 5; }},
        Damage{"bos_token_id is -2", [](Tables& broken) { broken.rules.bos_token_id = -2; }},
        Damage{"rstrip_ids[0] is 2, which is no special token",
               [](Tables& broken) { broken.rstrip_ids = {2}; }},
        Damage{"rstrip_ids[0] is 5", [](Tables& broken) { broken.rstrip_ids = {5}; }},
        Damage{"rstrip_ids[1] is 3", [](Tables& broken) { broken.rstrip_ids = {3, 3}; }},
        Damage{"unk_token_id is 99", [](Tables& broken) { broken.rules.unk_token_id = 99; }},
        Damage{"eos_token_id is 99", [](Tables& broken) { broken.rules.eos_token_id = 99; }},
        Damage{"add_bos_token", [](Tables& broken) { broken.rules.add_bos_token = true; }},
        Damage{"family is 2",
               [](Tables& broken) { broken.rules.family = static_cast<TokenizerFamily>(2); }}));

}  // namespace
}  // namespace cria
