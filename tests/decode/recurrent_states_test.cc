#include "decode/recurrent_states.h"

#include <gtest/gtest.h>

#include <vector>

#include "decode/scripted_model.h"

namespace cria {
namespace {

TEST(RecurrentStatesTest, TheTokensOfTheLastRunCanBeTakenBack) {
  ScriptedModel model(50, 64, 16, [](auto) { return 0; }, 1, {.max_state_rows = 3});
  const SequenceId id = model.sequences().Open().value();
  size_t position = 0;
  const auto shortest_after = [&](size_t num_tokens) {
    const std::vector<int32_t> tokens(num_tokens, 1);
    EXPECT_TRUE(model.ForwardSequence(id, tokens, position, 0));
    position += num_tokens;
    size_t shortest = position;
    while (shortest > 0 && model.sequences().LongestPrefix(id, shortest - 1) == shortest - 1) {
      --shortest;
    }
    return shortest;
  };
  EXPECT_EQ(shortest_after(10), 7u);
  EXPECT_EQ(shortest_after(1), 10u);
  EXPECT_EQ(shortest_after(2), 11u);
  // Drafts that were refused leave the rows before them.
  position = 12;
  EXPECT_EQ(shortest_after(1), 12u);
}

}  // namespace
}  // namespace cria
