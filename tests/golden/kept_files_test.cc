// The files in made_by_0.1.0/, which programs of that version wrote, load and give the logits and
// tokens that 0.1.0 gave on x86-64. Users have such files, and a change that fails here breaks
// them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/format.h"
#include "decode/open_sequence.h"
#include "llm/engine.h"
#include "support/emulation.h"
#include "support/paths.h"
#include "text/chat_template.h"
#include "xnn/known_layouts.h"
#include "xnn/packing.h"

namespace cria {
namespace {

using testing::AnyOf;
using testing::FloatNear;
using testing::Pointwise;

// A model, and the results of 0.1.0 for the message kQuestion.
struct Kept {
  std::string_view name;
  std::vector<int32_t> prompt;
  std::vector<float> logits;  // The logits of the first tokens of the vocabulary, after the prompt.
  std::vector<int32_t> greedy;  // The greedy tokens after the prompt.
  // The tolerance of logits. Processors round sums differently, so an element of a quantized row
  // may differ by one step. With one scale a row, each greedy token is at least 0.046 above the
  // next.
  float tolerance = 0;
  // The logits where activations for int8 weights have a scale for each block; empty if there are
  // none. The greedy tokens are the same.
  std::vector<float> logits_of_blocks = {};
};
constexpr std::string_view kQuestion = "Héllo, 世界! What's 2+2?";

const Kept& Llama() {
  static const Kept kept = {
      .name = "llama-f32",
      .prompt = {263, 265, 84,  82,  68,  81,  266, 198, 198, 39, 127, 102, 75, 75,  78,  11, 220,
                 160, 116, 244, 163, 243, 234, 0,   220, 54,  71, 64,  83,  6,  82,  220, 17, 10,
                 17,  30,  267, 265, 64,  82,  82,  72,  82,  83, 64,  77,  83, 266, 198, 198},
      .logits = {1.489935f, -0.606123f, 0.715462f, 1.292259f, -1.089761f, -1.712724f, 2.033121f,
                 -0.890289f},
      .greedy = {158, 174, 89, 122, 38, 136, 136, 136, 220, 220, 220, 136, 136, 136, 220, 220},
      .tolerance = 1e-4f};
  return kept;
}

const Kept& Mistral() {
  static const Kept kept = {
      .name = "mistral-int8",
      .prompt = {1,   3,    273, 15,   1492, 200,  174,  667,  1483, 1460, 233, 189, 155, 236, 154,
                 145, 1491, 390, 1506, 1463, 1460, 1513, 1528, 1513, 1485, 4,   15,  3,   274, 15},
      .logits = {-0.521487f, -1.016470f, 0.515327f, -0.608206f, 0.638707f, 0.226052f, -1.733122f,
                 -1.397417f},
      .greedy = {801, 147, 147, 147, 948, 948, 629, 278, 677, 214, 90, 295, 295, 295, 295, 295},
      .tolerance = 0.02f,
      .logits_of_blocks = {-0.511687f, -1.002593f, 0.538925f, -0.620591f, 0.640376f, 0.203331f,
                           -1.719309f, -1.346864f}};
  return kept;
}

const Kept& Qwen3() {
  static const Kept kept = {
      .name = "qwen3-int4",
      .prompt = {263, 268, 84,  82,  68,  81, 198, 39, 127, 102, 75, 75, 78, 11,  220, 160,
                 116, 244, 163, 243, 234, 0,  220, 54, 71,  64,  83, 6,  82, 220, 17,  10,
                 17,  30,  269, 198, 268, 64, 82,  82, 72,  82,  83, 64, 77, 83,  198},
      .logits = {-0.246578f, -1.200596f, 0.068690f, 0.215179f, 1.193517f, -0.365579f, -0.400327f,
                 -0.572536f},
      .greedy = {219, 76, 208, 74, 141, 207, 22, 192, 87, 262, 7, 65, 101, 192, 87, 262},
      .tolerance = 0.02f};
  return kept;
}

// The layouts of the kept packed weights. A Cortex-A72 has the layout of a Cortex-A53.
struct Layout {
  std::string_view name;
  uint64_t fingerprint;  // The fingerprint with Debian 13's XNNPACK.
};
constexpr Layout kLayouts[] = {{"avx512vnni", 0x02726cf66d4a5898},
                               {"avx2", 0x0b39b6381c9ef86a},
                               {"cortex-a53", 0xc7354c0c617894ad},
                               {"cortex-a76", 0x79eb2585abcd226f}};

std::string PathOf(std::string_view file) {
  return Format("{}/{}", support::SourcePath("tests/golden/made_by_0.1.0"), file);
}

void ExpectItsTokens(const Kept& kept, std::string_view file,
                     const xnn::PackingOptions& packing = {}) {
  SCOPED_TRACE(file);
  const auto loaded =
      Engine::Load(PathOf(file), {.num_threads = support::UsualThreads(), .packing = packing});
  ASSERT_TRUE(loaded) << loaded.error().message();
  Engine& engine = **loaded;
  const ChatMessage message = {"user", std::string(kQuestion)};
  const auto prompt = engine.chat_template().Encode(engine.tokenizer(), std::span(&message, 1),
                                                    {.add_generation_prompt = true});
  ASSERT_TRUE(prompt) << prompt.error().message();
  EXPECT_EQ(*prompt, kept.prompt);

  Decoder& decoder = engine.decoder();
  const auto sequence = OpenSequence::Create(decoder.sequences(), decoder.context_tokens());
  ASSERT_TRUE(sequence) << sequence.error().message();
  ASSERT_TRUE(decoder.ForwardSequence(sequence->id(), kept.prompt, 0, 1));
  auto logits = decoder.Logits(0);
  ASSERT_TRUE(logits) << logits.error().message();
  EXPECT_THAT(logits->first(kept.logits.size()),
              AnyOf(Pointwise(FloatNear(kept.tolerance), kept.logits),
                    Pointwise(FloatNear(kept.tolerance), kept.logits_of_blocks)));
  std::vector<int32_t> greedy;
  for (size_t position = kept.prompt.size();; ++position) {
    const auto likeliest = std::ranges::max_element(*logits);
    greedy.push_back(static_cast<int32_t>(likeliest - logits->begin()));
    if (greedy.size() == kept.greedy.size()) break;
    ASSERT_TRUE(decoder.ForwardSequence(sequence->id(), std::span(greedy).last(1), position, 1));
    logits = decoder.Logits(0);
    ASSERT_TRUE(logits) << logits.error().message();
  }
  EXPECT_EQ(greedy, kept.greedy);
}

// If the tests choose the processor, a test for a kept layout must not be skipped.
bool IsProcessorOfKeptFiles() {
  const char* loaded_first = std::getenv("LD_PRELOAD");
  const char* emulated = std::getenv("QEMU_CPU");
  return (loaded_first != nullptr && std::string_view(loaded_first).contains("avx2_processor")) ||
         (emulated != nullptr && xnn::FindKnownLayout(emulated) != nullptr);
}

class KeptPackedFiles : public testing::Test {
 protected:
  void SetUp() override {
    const auto fingerprint = xnn::LayoutFingerprint();
    ASSERT_TRUE(fingerprint) << fingerprint.error().message();
    const auto* layout = std::ranges::find(kLayouts, *fingerprint, &Layout::fingerprint);
    if (layout != std::end(kLayouts)) {
      layout_ = layout->name;
      return;
    }
    const std::string sentence = Format(
        "no packed files are kept of this processor's layout, which is {:016x}", *fingerprint);
    ASSERT_FALSE(IsProcessorOfKeptFiles()) << sentence;
    GTEST_SKIP() << sentence;
  }

  std::string_view layout_;
};

TEST(KeptModelFiles, GiveTheTokensThatTheyGave) {
  for (const Kept& kept : {Llama(), Mistral(), Qwen3()}) {
    ExpectItsTokens(kept, Format("{}.cria", kept.name));
  }
}

TEST_F(KeptPackedFiles, GiveTheTokensThatTheyGave) {
  const std::string packed = Format("{}.{}.packed", Mistral().name, layout_);
  ExpectItsTokens(Mistral(), Format("{}.cria", Mistral().name),
                  {.packed_path = PathOf(packed), .never_pack = true});
}

TEST_F(KeptPackedFiles, StandaloneModelsGiveTheTokensThatTheyGave) {
  ExpectItsTokens(Qwen3(), Format("{}.{}.cria", Qwen3().name, layout_), {.never_pack = true});
}

}  // namespace
}  // namespace cria
