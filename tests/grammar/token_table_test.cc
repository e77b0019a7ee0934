#include "grammar/token_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "matcher_fixture.h"

namespace cria::grammar {
namespace {

using Kind = TokenTable::Kind;

TEST(TokenTableTest, TextsOfFewCharactersAreApart) {
  struct Case {
    std::string piece;
    Kind kind;
    size_t num_characters;
  };
  const std::string many(TokenTable::kMaxCharacters, 'x');
  std::string many_wide;
  while (many_wide.size() < 4 * TokenTable::kMaxCharacters) many_wide += "\xF0\x9F\xA6\x99";
  const std::vector<Case> cases = {
      {"a", Kind::kPlain, 1},
      {" ~!#[]", Kind::kPlain, 6},
      {many, Kind::kPlain, many.size()},
      {many + 'x', Kind::kOther, 0},
      {"a\"", Kind::kOther, 0},
      {"\\n", Kind::kOther, 0},
      {"\n", Kind::kOther, 0},
      {"\x7F", Kind::kOther, 0},
      {std::string(1, '\0'), Kind::kOther, 0},
      {"é", Kind::kWide, 1},
      {"vicuña ", Kind::kWide, 7},
      {"\xC2\x80", Kind::kWide, 1},
      {"\xED\x9F\xBF\xEE\x80\x80", Kind::kWide, 2},
      {"\xF4\x8F\xBF\xBF", Kind::kWide, 1},
      {many_wide, Kind::kWide, TokenTable::kMaxCharacters},
      {many_wide + "a", Kind::kOther, 0},
      {"é\"", Kind::kOther, 0},
      // Parts of characters, an overlong form, a surrogate, and what is above the last character.
      {"\xC3", Kind::kOther, 0},
      {"\xA9", Kind::kOther, 0},
      {"a\xE2\x82", Kind::kOther, 0},
      {"\xC1\xA1", Kind::kOther, 0},
      {"\xED\xA0\x80", Kind::kOther, 0},
      {"\xF4\x90\x80\x80", Kind::kOther, 0},
  };
  for (const Case& c : cases) {
    const TestMatcher test({c.piece});
    for (const Kind kind : TokenTable::kKinds) {
      const bool is_kind = kind == c.kind;
      EXPECT_EQ(test.table->Beginning(static_cast<uint8_t>(c.piece[0]), kind).size(),
                is_kind ? 1U : 0U)
          << c.piece;
      for (size_t length = 1; length <= TokenTable::kMaxCharacters; ++length) {
        const bool has_length = is_kind && length == c.num_characters;
        EXPECT_EQ(test.table->WithLength(kind, length).count, has_length ? 1U : 0U) << c.piece;
        EXPECT_EQ(test.table->WithLength(kind, length).last, has_length ? 0 : -1) << c.piece;
      }
      if (kind == Kind::kOther) continue;
      EXPECT_EQ(test.table->words(kind)[0], is_kind ? 1U : 0U) << c.piece;
    }
    for (size_t bit = 0; bit < TokenTable::kLengthBits; ++bit) {
      const uint64_t expected = c.kind == Kind::kOther ? 0 : (c.num_characters - 1) >> bit & 1;
      EXPECT_EQ(test.table->length_words(bit)[0], expected) << c.piece;
    }
  }
}

TEST(TokenTableTest, HasTheTokensInOrder) {
  std::mt19937 random(1);
  const auto kind_of = [](const std::string& piece) {
    const bool is_plain = piece.size() <= TokenTable::kMaxCharacters &&
                          std::ranges::all_of(piece, TokenTable::IsPlain);
    return is_plain ? Kind::kPlain : Kind::kOther;
  };
  for (int i = 0; i < 100; ++i) {
    std::vector<std::string> pieces = RandomVocabulary(random, 3);
    // Bytes that are "negative", and zeros.
    for (int k = 0; k < 30; ++k) {
      std::string piece;
      for (size_t length = random() % 9; piece.size() < length;) {
        piece += static_cast<char>(random() % 2 == 0 ? 0 : 0xFE + random() % 2);
      }
      pieces.push_back(piece);
    }
    pieces.push_back(std::string(TokenTable::kMaxPieceBytes, 'b'));
    pieces.push_back(std::string(TokenTable::kMaxPieceBytes + 1, 'b'));
    TestMatcher test(pieces);
    std::set<uint32_t> ids;
    for (const Kind kind : TokenTable::kKinds) {
      std::string last;
      for (unsigned byte = 0; byte < 256; ++byte) {
        for (const auto entry : test.table->Beginning(static_cast<uint8_t>(byte), kind)) {
          const std::string& piece = pieces[entry.id()];
          EXPECT_TRUE(ids.insert(entry.id()).second);
          EXPECT_EQ(static_cast<uint8_t>(piece[0]), byte);
          EXPECT_LE(last, piece);
          EXPECT_EQ(entry.shared(),
                    static_cast<size_t>(std::ranges::mismatch(piece, last).in1 - piece.begin()));
          EXPECT_EQ(entry.shared() + entry.own(), piece.size());
          if (entry.own() > TokenTable::kInlineBytes) {
            EXPECT_EQ(test.table->LongOwn(entry), piece.substr(entry.shared()));
          } else {
            for (size_t k = 0; k < entry.own(); ++k) {
              EXPECT_EQ(entry.byte(k), static_cast<uint8_t>(piece[entry.shared() + k]));
            }
          }
          EXPECT_EQ(kind, kind_of(piece));
          last = piece;
        }
      }
    }
    for (uint32_t id = 0; id < pieces.size(); ++id) {
      const bool is_text = !pieces[id].empty() && pieces[id].size() <= TokenTable::kMaxPieceBytes;
      EXPECT_EQ(ids.contains(id), is_text);
      for (const Kind kind : {Kind::kPlain, Kind::kWide}) {
        const bool is_one = (test.table->words(kind)[id / 64] >> (id % 64) & 1) != 0;
        EXPECT_EQ(is_one, is_text && kind_of(pieces[id]) == kind);
        if (!is_one) continue;
        EXPECT_GT(test.table->WithLength(kind, pieces[id].size()).count, 0U);
        for (size_t bit = 0; bit < TokenTable::kLengthBits; ++bit) {
          EXPECT_EQ(test.table->length_words(bit)[id / 64] >> (id % 64) & 1,
                    (pieces[id].size() - 1) >> bit & 1);
        }
      }
    }
  }
}

TEST(TokenTableTest, SortedIdsChangeNothing) {
  std::mt19937 random(2);
  for (int i = 0; i < 100; ++i) {
    const TestMatcher test(RandomVocabulary(random, 3));
    // As in a model file, where texts that are sorted differ; and ids of other vocabularies.
    const auto is_before = [&](uint32_t one, uint32_t other) {
      return test.pieces[one] < test.pieces[other];
    };
    std::set<uint32_t, decltype(is_before)> sorted(is_before);
    for (uint32_t id = 0; id < test.pieces.size(); ++id) {
      if (i == 0 || random() % 8 != 0) sorted.insert(id);
    }
    std::vector<uint32_t> ids(sorted.begin(), sorted.end());
    ids.push_back(static_cast<uint32_t>(test.pieces.size()));
    const auto piece = [](const void* context, int32_t id) {
      const auto& pieces = *static_cast<const std::vector<std::string>*>(context);
      return std::string_view(pieces[static_cast<size_t>(id)]);
    };
    std::vector<uint64_t> memory(test.table_memory.size());
    const TokenTable table(std::as_writable_bytes(std::span(memory)), test.pieces.size(),
                           TokenPieces{piece, &test.pieces, ids});
    for (const Kind kind : TokenTable::kKinds) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        const auto entries = table.Beginning(static_cast<uint8_t>(byte), kind);
        const auto expected = test.table->Beginning(static_cast<uint8_t>(byte), kind);
        EXPECT_TRUE(std::ranges::equal(entries, expected, {}, &TokenTable::Entry::bits,
                                       &TokenTable::Entry::bits));
      }
    }
  }
}

}  // namespace
}  // namespace cria::grammar
