#include "llm/changed_beginning.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace cria {
namespace {

using TokenIds = std::vector<int32_t>;

TokenIds RandomTokens(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  TokenIds tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 1000);
  return tokens;
}

TokenIds Joined(std::initializer_list<TokenIds> parts) {
  TokenIds all;
  for (const TokenIds& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

void Expect(const ChangedBeginning& found, size_t first, size_t end, size_t num_same) {
  EXPECT_EQ(found.first, first);
  EXPECT_EQ(found.end, end);
  EXPECT_EQ(found.num_same, num_same);
}

TEST(ChangedBeginning, ATimeBeforeARestThatIsTheSame) {
  const TokenIds head = RandomTokens(20, 1), rest = RandomTokens(500, 2);
  const TokenIds earlier = Joined({head, {1001, 1002}, rest, RandomTokens(100, 3)});
  Expect(FindChangedBeginning(Joined({head, {1003, 1004}, rest}), 20, earlier), 20, 22, 500);
  // It has another length, and what follows the rest differs.
  Expect(FindChangedBeginning(Joined({head, {1003}, rest, {5, 6, 7}}), 20, earlier), 20, 21, 500);
  Expect(FindChangedBeginning(Joined({head, RandomTokens(200, 4), rest}), 20, earlier), 20, 220,
         500);
}

TEST(ChangedBeginning, MessagesThatWereLeftOut) {
  const TokenIds head = RandomTokens(20, 1), rest = RandomTokens(500, 2);
  const TokenIds earlier = Joined({head, RandomTokens(300, 5), rest});
  Expect(FindChangedBeginning(Joined({head, rest}), 20, earlier), 20, 20, 500);
}

TEST(ChangedBeginning, OtherTextsAndShortRestsAreNone) {
  const TokenIds head = RandomTokens(20, 1), rest = RandomTokens(255, 2);
  const TokenIds earlier = Joined({head, {1001}, rest});
  Expect(FindChangedBeginning(Joined({head, {1002}, rest}), 20, earlier), 0, 0, 0);
  Expect(FindChangedBeginning(RandomTokens(500, 6), 0, RandomTokens(500, 7)), 0, 0, 0);
  Expect(FindChangedBeginning(RandomTokens(500, 6), 0, {}), 0, 0, 0);
  Expect(FindChangedBeginning({}, 0, RandomTokens(500, 7)), 0, 0, 0);
  Expect(FindChangedBeginning(RandomTokens(500, 6), 500, RandomTokens(500, 6)), 0, 0, 0);
}

}  // namespace
}  // namespace cria
