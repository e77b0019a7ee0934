// Random steps of several sequences of a model with recurrent layers: after each, a sequence goes
// on as if its tokens had been run alone. Its form for more steps: CRIA_RANDOM_STEPS.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decode/kv_state.h"
#include "decode/loaded_model.h"
#include "support/family_checkpoint.h"
#include "support/schemes_and_kv_types.h"

namespace cria {
namespace {

constexpr size_t kRecurrentText = 60;  // The most tokens of one.
constexpr size_t kMaxDrafts = 3;
constexpr size_t kNumTexts = 2;

size_t NumRandomSteps(size_t usual) {
  const char* const steps = std::getenv("CRIA_RANDOM_STEPS");
  return steps == nullptr ? usual : std::stoul(steps);
}

class RecurrentRandomTest : public testing::TestWithParam<const char*> {
 protected:
  // In int8, bits do not depend on what runs beside a sequence; in f32 on Arm, they do.
  RecurrentRandomTest()
      : converted_(std::make_shared<const ConvertedModel>(
            support::FamilyNamed(GetParam()), ConvertOptions{.weights = Scheme::kQc8w})),
        model_(converted_,
               {.context_tokens = 64 * kNumTexts,
                .chunk_tokens = 16,
                .num_sequences = kNumTexts,
                .num_checkpoints = 4,
                .revocable_tokens = 1 + kMaxDrafts,
                .has_mtp = HasMtp()},
               support::UsualThreads()),
        alone_(converted_, {.context_tokens = 64, .has_mtp = HasMtp()}, support::UsualThreads()) {
    model_.CloseSequence();
    for (Text& text : texts_) text.id = Unwrap(sequences().Open());
  }

  static bool HasMtp() { return std::string_view(GetParam()).ends_with("Mtp"); }

  struct Text {
    SequenceId id = 0;
    std::vector<int32_t> tokens;
  };

  size_t Below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }
  Text& Any() { return texts_[Below(texts_.size())]; }
  Decoder& decoder() { return model_.decoder(); }
  Sequences& sequences() { return decoder().sequences(); }
  size_t vocab_size() { return decoder().vocab_size(); }

  void RunStep() {
    switch (Below(7)) {
      case 0:
        return Truncate(Any(), true);
      case 1:
        return Share(Any(), Any());
      case 2:
        sequences().AddCheckpoint(Any().id);
        return Unwrap(decoder().CarryOutMoves());
      case 3:
        return SaveAndLoad(Any(), Any());
      default:
        return RunTogether();
    }
  }

  // Runs more tokens of some texts in one batch, and refuses some of the last ones.
  void RunTogether() {
    std::vector<int32_t> tokens;
    std::vector<BatchRun> runs;
    std::vector<std::pair<Text*, size_t>> refused;
    for (Text& text : texts_) {
      if (Below(3) == 0 || text.tokens.size() == kRecurrentText) continue;
      const size_t room = kRecurrentText - text.tokens.size();
      const size_t count = 1 + Below(std::min<size_t>(room, 5));
      runs.push_back({text.id, text.tokens.size(), count, 1});
      for (size_t i = 0; i < count; ++i) {
        tokens.push_back(static_cast<int32_t>(Below(vocab_size())));
        text.tokens.push_back(tokens.back());
      }
      refused.emplace_back(&text, Below(2) == 0 ? 0 : Below(std::min(count, 1 + kMaxDrafts)));
    }
    if (runs.empty()) return Truncate(Any(), true);
    Unwrap(decoder().Forward({tokens, runs}));
    for (size_t i = 0; i < refused.size(); ++i) {
      ExpectAsAlone(*refused[i].first, Unwrap(decoder().Logits(i)));
    }
    for (const auto& [text, count] : refused) text->tokens.resize(text->tokens.size() - count);
  }

  void ExpectAsAlone(const Text& text, std::span<const float> logits) {
    const std::vector<float> expected = alone_.Run(text.tokens, {16});
    const std::vector<float> last(expected.end() - static_cast<ptrdiff_t>(vocab_size()),
                                  expected.end());
    EXPECT_TRUE(std::ranges::equal(logits, last)) << "after " << text.tokens.size() << " tokens";
    if (!HasMtp()) return;
    const size_t length = text.tokens.size();
    EXPECT_EQ(Guesses(decoder(), text.id, length),
              Guesses(alone_.decoder(), alone_.sequence(), length))
        << "after " << length << " tokens";
  }

  static std::vector<float> Guesses(Decoder& decoder, SequenceId sequence, size_t length) {
    std::vector<float> all;
    const GuessRequest request = {
        .sequence = sequence, .position = length, .token = 5, .max_tokens = 2};
    Unwrap(decoder.Guess(request, [&](std::span<float> logits) {
      all.insert(all.end(), logits.begin(), logits.end());
      return 7;
    }));
    return all;
  }

  void Truncate(Text& text, bool is_any_length) {
    const size_t wanted = text.tokens.size() - (is_any_length ? Below(text.tokens.size() + 1) : 0);
    const size_t length = sequences().LongestPrefix(text.id, wanted);
    Unwrap(sequences().Truncate(text.id, length));
    Unwrap(decoder().CarryOutMoves());
    text.tokens.resize(length);
  }

  void Empty(Text& text) {
    Unwrap(sequences().Truncate(text.id, 0));
    Unwrap(decoder().CarryOutMoves());
    text.tokens.clear();
  }

  void Share(const Text& from, Text& to) {
    if (&from == &to) return;
    Empty(to);
    const size_t wanted = from.tokens.size() - Below(from.tokens.size() / 2 + 1);
    const size_t length = sequences().LongestPrefix(from.id, wanted);
    Unwrap(sequences().Share(from.id, to.id, length));
    Unwrap(decoder().CarryOutMoves());
    to.tokens.assign(from.tokens.begin(), from.tokens.begin() + static_cast<ptrdiff_t>(length));
  }

  // As a session file does.
  void SaveAndLoad(const Text& from, Text& to) {
    const size_t length = sequences().OwnPrefix(from.id, from.tokens.size());
    const std::vector<int32_t> tokens(from.tokens.begin(),
                                      from.tokens.begin() + static_cast<ptrdiff_t>(length));
    KvState state(decoder(), from.id, length);
    std::vector<std::vector<std::byte>> saved;
    for (size_t block = 0; block < state.num_blocks(); ++block) {
      for (size_t head = 0; head < state.NumHeads(block); ++head) {
        for (const std::span<std::byte> part : state.Rows(block, head)) {
          saved.emplace_back(part.begin(), part.end());
        }
      }
    }
    Empty(to);
    Unwrap(sequences().Restore(to.id, length));
    state.set_sequence(to.id);
    auto next = saved.begin();
    for (size_t block = 0; block < state.num_blocks(); ++block) {
      for (size_t head = 0; head < state.NumHeads(block); ++head) {
        for (const std::span<std::byte> part : state.Rows(block, head)) {
          ASSERT_EQ(part.size(), next->size());
          std::ranges::copy(*next++, part.begin());
        }
      }
    }
    to.tokens = tokens;
  }

  const std::shared_ptr<const ConvertedModel> converted_;
  LoadedModel model_;
  LoadedModel alone_;
  std::mt19937 random_{1};
  std::vector<Text> texts_ = std::vector<Text>(kNumTexts);
};

TEST_P(RecurrentRandomTest, ASequenceGoesOnAsIfItHadRunAlone) {
  const size_t num_steps = NumRandomSteps(support::IsEmulated() ? 100 : 2000);
  for (size_t step = 0; step < num_steps && !HasFailure(); ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    RunStep();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RecurrentRandomTest,
                         testing::Values("Lfm2", "Lfm2Biases", "Lfm2Moe", "Lfm3", "Qwen35",
                                         "Qwen35Other", "Qwen35Mtp", "GraniteMamba",
                                         "GraniteMambaOther", "GraniteMambaMoe"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace cria
