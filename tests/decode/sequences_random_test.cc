// Random steps of several sequences, each of which compares what the model has of a sequence with a
// list of its tokens: rows of all layers, rows of layers with a window, and states.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "decode/scripted_model.h"

namespace cria {
namespace {

constexpr size_t kRandomText = 800;
constexpr size_t kRandomChunk = 40;
constexpr size_t kRandomVocab = 50;

class RandomSteps {
 public:
  RandomSteps(const ScriptedLayers& layers, size_t num_sequences, unsigned seed)
      : random_(seed),
        model_(
            kRandomVocab, num_sequences * kRandomText, kRandomChunk, [](auto) { return 0; },
            num_sequences, layers),
        max_drafts_(layers.max_state_rows == 0 ? 3 : layers.max_state_rows),
        texts_(num_sequences) {
    for (Text& text : texts_) text.id = model_.sequences().Open().value();
  }

  void Run(size_t num_steps) {
    for (size_t i = 0; i < num_steps && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(testing::Message() << "step " << i);
      RunStep();
    }
  }

  // Windows that save no page count as none.
  bool keeps_all() { return sequences().states() == nullptr && sequences().pages().KeepsAll(); }

  // How many tokens were lost because nothing kept them, and how many times none were.
  size_t num_lost = 0;
  size_t num_kept = 0;

 private:
  struct Text {
    SequenceId id = 0;
    std::vector<int32_t> tokens;
  };

  size_t Below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }
  Text& Any() { return texts_[Below(texts_.size())]; }
  Sequences& sequences() { return model_.sequences(); }

  void RunStep() {
    switch (Below(8)) {
      case 0:
        return Shorten(Any());
      case 1:
        return Share();
      case 2:
        return Drop(Any());
      case 3:
        sequences().AddCheckpoint(Any().id);
        ASSERT_TRUE(model_.CarryOutMoves());
        return;
      case 4:
        return Reopen(Any());
      default:
        return Extend(Any(), 1 + Below(Below(4) == 0 ? 3 : kRandomChunk));
    }
  }

  // Runs more tokens, of which the last ones may be drafts that are refused.
  void Extend(Text& text, size_t count) {
    count = std::min(count, kRandomText - text.tokens.size());
    if (count == 0) return Truncate(text, 0);
    std::vector<int32_t> tokens(count);
    for (int32_t& token : tokens) token = static_cast<int32_t>(Below(kRandomVocab));
    ASSERT_TRUE(model_.ForwardSequence(text.id, tokens, text.tokens.size(), 0));
    std::vector<int32_t> expected = text.tokens;
    expected.insert(expected.end(), tokens.begin(), tokens.end());
    const auto is_same = [](int32_t a, int32_t b) { return a == b || a < 0; };
    ASSERT_TRUE(std::ranges::equal(model_.cache(), expected, is_same));
    const size_t num_refused = Below(2) == 0 ? Below(std::min(count - 1, max_drafts_) + 1) : 0;
    text.tokens.insert(text.tokens.end(), tokens.begin(),
                       tokens.end() - static_cast<ptrdiff_t>(num_refused));
    if (Below(3) == 0) Truncate(text, text.tokens.size());
  }

  // Often by a little, so that texts become long.
  void Shorten(Text& text) {
    const size_t length = text.tokens.size();
    const size_t most = Below(4) == 0 ? length : std::min<size_t>(length, 60);
    Truncate(text, length - Below(most + 1));
  }

  // The rest is run again.
  void Truncate(Text& text, size_t wanted) {
    const size_t length = sequences().LongestPrefix(text.id, wanted);
    ASSERT_LE(length, wanted);
    num_lost += wanted - length;
    num_kept += length == wanted && wanted != 0 ? 1 : 0;
    ASSERT_TRUE(sequences().Truncate(text.id, length));
    ASSERT_TRUE(model_.CarryOutMoves());
    text.tokens.resize(length);
  }

  void Share() {
    Text& from = Any();
    Text& to = Any();
    if (&from == &to || Below(4) != 0) return;
    Truncate(to, 0);
    const size_t length =
        sequences().LongestPrefix(from.id, from.tokens.size() - Below(from.tokens.size() / 4 + 1));
    if (!sequences().CanShare(from.id, to.id, length)) return;
    ASSERT_TRUE(sequences().Share(from.id, to.id, length));
    ASSERT_TRUE(model_.CarryOutMoves());
    to.tokens.assign(from.tokens.begin(), from.tokens.begin() + static_cast<ptrdiff_t>(length));
  }

  void Drop(Text& text) {
    Truncate(text, text.tokens.size());
    const size_t first = Below(text.tokens.size() + 1);
    const size_t count = Below(std::min<size_t>(text.tokens.size() - first, 30) + 1);
    if (!sequences().CanDrop(text.id, first, count)) {
      EXPECT_FALSE(sequences().Drop(text.id, first, count));
      return;
    }
    ASSERT_TRUE(sequences().Drop(text.id, first, count));
    ASSERT_TRUE(model_.CarryOutMoves());
    const auto begin = text.tokens.begin() + static_cast<ptrdiff_t>(first);
    text.tokens.erase(begin, begin + static_cast<ptrdiff_t>(count));
  }

  void Reopen(Text& text) {
    if (Below(10) != 0) return;
    sequences().Close(text.id);
    text = {.id = sequences().Open().value()};
  }

  std::mt19937 random_;
  ScriptedModel model_;
  const size_t max_drafts_;
  std::vector<Text> texts_;
};

TEST(SequencesRandomTest, WhatIsKeptIsThatOfTheTokens) {
  const std::vector<uint32_t> kWindows = {0, 100, 30};
  size_t num_lost = 0;
  for (const size_t num_sequences : {1, 3}) {
    for (const size_t num_checkpoints : {0, 1, 4}) {
      for (const auto& windows : {std::vector<uint32_t>{0}, kWindows, {70}}) {
        for (const size_t max_state_rows : {0, 1, 3}) {
          SCOPED_TRACE(testing::Message()
                       << num_sequences << " sequences, " << num_checkpoints << " checkpoints, "
                       << windows.size() << " windows, " << max_state_rows << " rows");
          RandomSteps steps({.windows = windows,
                             .max_state_rows = max_state_rows,
                             .num_checkpoints = num_checkpoints},
                            num_sequences, static_cast<unsigned>(num_checkpoints + max_state_rows));
          steps.Run(1000);
          EXPECT_GT(steps.num_kept, 50u);
          if (steps.keeps_all()) {
            EXPECT_EQ(steps.num_lost, 0u);
          } else if (num_checkpoints == 0) {
            num_lost += steps.num_lost;
          }
        }
      }
    }
  }
  EXPECT_GT(num_lost, 1000u);
}

}  // namespace
}  // namespace cria
