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

TEST(TokenTableTest, HasTheTokensInOrder) {
  std::mt19937 random(1);
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
    for (const bool plain : {false, true}) {
      std::string last;
      for (unsigned byte = 0; byte < 256; ++byte) {
        for (const auto entry : test.table->Beginning(static_cast<uint8_t>(byte), plain)) {
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
          const bool has_other = std::ranges::any_of(
              piece, [](char c) { return c < ' ' || c > '~' || c == '"' || c == '\\'; });
          EXPECT_EQ(plain, !has_other);
          last = piece;
        }
      }
    }
    for (uint32_t id = 0; id < pieces.size(); ++id) {
      const bool is_text = !pieces[id].empty() && pieces[id].size() <= TokenTable::kMaxPieceBytes;
      EXPECT_EQ(ids.contains(id), is_text);
      const bool is_plain = (test.table->plain_words()[id / 64] >> (id % 64) & 1) != 0;
      EXPECT_EQ(is_plain, is_text && std::ranges::all_of(pieces[id], TokenTable::IsPlain));
    }
  }
}

}  // namespace
}  // namespace cria::grammar
