// Loads with too little memory, and with a little more each time until it succeeds: with a limit of
// Cria, and with one of the system.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "converter/convert.h"
#include "core/format.h"
#include "core/format_bytes.h"
#include "llm/engine.h"
#include "llm/generator.h"
#include "llm/turn.h"
#include "support/emulation.h"
#include "support/sanitizers.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using testing::HasSubstr;

// A few MB of weights, of KV cache and of working memory, so that each of them can be what is
// refused.
support::CheckpointSpec Spec() {
  support::CheckpointSpec spec = support::SpecGqa();
  spec.config.hidden_size = 256;
  spec.config.intermediate_size = 704;
  spec.config.head_dim = 64;
  spec.config.vocab_size = 2048;
  spec.config.max_position_embeddings = 1024;
  support::SetTokenIds(spec);
  return spec;
}

enum class Weights { kInMemory, kMapped, kPackedFirst };

// How a child's attempt ended.
enum class Ending : int {
  kLoaded,
  kOutOfMemory,  // An Error that says so.
  kOtherError,
  // A small container's, of bounded size: names, tables of layers, sentences. They are taken by
  // operator new, whose failure on any thread is for a program's own handler to tell.
  kNewFailed,
  kNotEnded,
};

// The message of a child process.
struct Message {
  Ending ending = Ending::kNotEnded;
  uint64_t peak_bytes = 0;  // As planned, where it loaded.
  RemedyKind remedy = RemedyKind::kNone;
  char text[2048] = {};

  void Leave(Ending how, std::string_view why = {}) {
    ending = how;
    text[why.copy(text, sizeof(text) - 1)] = '\0';
  }
};

struct Outcome {
  Message message;
  int signal = 0;
};

// Everything that takes memory is done in children of this process, which stays as small as it
// began: memory that an earlier load gave back would serve a later one.
Message* message_of_this_child = nullptr;

template <typename Work>
Outcome InChild(const Work& work) {
  void* const shared =
      mmap(nullptr, sizeof(Message), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("cannot share memory");
  auto* const message = new (shared) Message;
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    message_of_this_child = message;
    std::set_new_handler([] {
      message_of_this_child->Leave(Ending::kNewFailed, "operator new failed");
      _exit(0);
    });
    // A child that waits for what never comes ends by SIGALRM.
    alarm(support::IsEmulated() ? 600 : 20);
    try {
      work(message);
    } catch (const std::exception& exception) {
      message->Leave(Ending::kOtherError, exception.what());
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const Outcome outcome = {.message = *message,
                           .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
  munmap(shared, sizeof(Message));
  return outcome;
}

// Loads, reads a prompt and generates.
void TryToLoad(const std::string& path, const EngineOptions& options, Message* message) {
  const auto engine = Engine::Load(path, options);
  if (!engine) {
    const bool out_of_memory = engine.error().code() == ErrorCode::kOutOfMemory;
    message->remedy = engine.error().remedy().kind;
    return message->Leave(out_of_memory ? Ending::kOutOfMemory : Ending::kOtherError,
                          engine.error().message());
  }
  auto sampler = Sampler::Create({.temperature = 0.0f}, (*engine)->decoder().vocab_size());
  const std::vector<int32_t> prompt(200, 7);
  Session session((*engine)->scheduler());
  Turn turn(session);
  if (!sampler || !turn.Prefill(prompt) ||
      !Generate(turn, {.max_tokens = 3}, *sampler, [](const GeneratedToken&) { return true; })) {
    return message->Leave(Ending::kOtherError, "it was loaded, but does not run");
  }
  message->peak_bytes = (*engine)->memory_plan().peak_bytes();
  message->Leave(Ending::kLoaded);
}

class EngineMemory : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new support::TemporaryDirectory;
    const Outcome made = InChild([](Message* message) {
      const auto checkpoint = directory_->path() / "checkpoint";
      support::WriteHuggingFaceDirectory(support::MakeModel(Spec()), checkpoint, {});
      const auto converted = Convert(checkpoint, Path(), {.weights = Scheme::kQb4w});
      if (!converted) return message->Leave(Ending::kOtherError, converted.error().message());
      TryToLoad(Path(), Options(Weights::kMapped, 1), message);
    });
    ASSERT_EQ(made.message.ending, Ending::kLoaded) << made.message.text;
  }
  static void TearDownTestSuite() { delete directory_; }

  static std::string Path() { return directory_->path() / "model.cria"; }

  static EngineOptions Options(Weights weights, size_t threads) {
    EngineOptions options = {.num_threads = threads, .context_tokens = 1024};
    if (weights == Weights::kMapped) options.packing.cache_folder = directory_->path() / "packed";
    if (weights == Weights::kPackedFirst) {
      options.packing.cache_folder = directory_->path() / "emptied";
    }
    return options;
  }

  static inline support::TemporaryDirectory* directory_ = nullptr;
};

// Two plans differ by what the process uses by itself: a few pages, a sanitizer's shadow, or the
// code that an emulator translated in between. The packed weights that the tests weigh take 1.4 MB.
const uint64_t kDriftBytes = [] {
  if (support::kHeapIsSanitized) return uint64_t{8} << 20;
  return uint64_t{support::IsEmulated() ? 768u : 256u} << 10;
}();

// The planned peak; nothing if the model does not load within the limit.
std::optional<uint64_t> PeakWithin(const std::string& path, EngineOptions options, uint64_t limit) {
  options.memory_limit_bytes = limit;
  const Outcome outcome = InChild([&](Message* message) { TryToLoad(path, options, message); });
  EXPECT_EQ(outcome.signal, 0);
  const Message& message = outcome.message;
  if (message.ending == Ending::kLoaded) {
    EXPECT_LE(message.peak_bytes, limit);
    return message.peak_bytes;
  }
  EXPECT_EQ(message.ending, Ending::kOutOfMemory) << message.text;
  EXPECT_EQ(message.remedy, RemedyKind::kFitMemory) << message.text;
  for (const char* words : {"the model needs ", "packed weights ", "KV cache ", "activations ",
                            "program ", "may reclaim "}) {
    EXPECT_THAT(message.text, HasSubstr(words));
  }
  EXPECT_THAT(message.text, HasSubstr("more than the " + FormatBytes(limit)));
  return std::nullopt;
}

TEST_F(EngineMemory, TheFirstLimitThatSufficesIsThePlannedPeak) {
  for (const Weights weights : {Weights::kMapped, Weights::kInMemory}) {
    const EngineOptions options = Options(weights, 2);
    const auto peak = PeakWithin(Path(), options, UINT64_MAX);
    ASSERT_TRUE(peak);
    uint64_t failing = 0;
    uint64_t fitting = 0;
    while (!PeakWithin(Path(), options, fitting)) {
      failing = fitting;
      fitting += *peak / 30 + 1;
      ASSERT_LT(fitting, 2 * *peak);
    }
    const uint64_t precision_bytes = support::IsEmulated() ? uint64_t{32} << 10 : 1024;
    while (fitting - failing > precision_bytes) {
      const uint64_t middle = std::midpoint(failing, fitting);
      (PeakWithin(Path(), options, middle) ? fitting : failing) = middle;
    }
    EXPECT_NEAR(static_cast<double>(fitting), static_cast<double>(*peak),
                static_cast<double>(kDriftBytes));
  }
}

// Weights that are packed into private memory are resident in addition to the memory for packing,
// and weights in a file are not: if the cache cannot be written, the limit is checked again.
TEST_F(EngineMemory, WithoutACacheTheLimitIsCheckedAgain) {
  if (support::kHeapIsSanitized) {
    GTEST_SKIP() << "the weights are smaller than what a sanitizer's shadow varies by";
  }
  const auto load = [](bool limit_of_mapped, bool ignore) {
    return InChild([&](Message* message) {
      EngineOptions options = Options(Weights::kMapped, 1);
      options.context_tokens = 256;
      options.num_batch_threads = 16;  // Each packs a slice of its own.
      options.ignore_memory_limits = ignore;
      options.packing.cache_folder = Path() + "/is no folder";
      // Touches the pages of the program that loading needs, so that its own memory is the same
      // later.
      EngineOptions any_memory = options;
      any_memory.ignore_memory_limits = true;
      Message unused;
      TryToLoad(Path(), any_memory, &unused);
      const ModelOutline outline = OutlineOf(ModelFile::Open(Path()).value());
      MemoryPlanOptions resolved = ResolveOptions(outline, options);
      resolved.weights_in_memory = !limit_of_mapped;
      options.memory_limit_bytes =
          PlanMemory(outline, resolved, platform::ReadMemoryUsage())->peak_bytes() + kDriftBytes;
      TryToLoad(Path(), options, message);
    });
  };
  const Outcome fitting = load(/*limit_of_mapped=*/false, /*ignore=*/false);
  EXPECT_EQ(fitting.message.ending, Ending::kLoaded) << fitting.message.text;
  const Outcome forced = load(/*limit_of_mapped=*/true, /*ignore=*/true);
  EXPECT_EQ(forced.message.ending, Ending::kLoaded) << forced.message.text;
  const Outcome refused = load(/*limit_of_mapped=*/true, /*ignore=*/false);
  EXPECT_EQ(refused.message.ending, Ending::kOutOfMemory) << refused.message.text;
  for (const char* words : {"cannot make this folder", "into memory instead, the model needs ",
                            "packed weights ", "KV cache ", "program "}) {
    EXPECT_THAT(refused.message.text, HasSubstr(words));
  }
  EXPECT_EQ(refused.message.remedy, RemedyKind::kFitMemory);
}

TEST_F(EngineMemory, IgnoringLimitsLoadsAllTheSame) {
  EngineOptions options = Options(Weights::kMapped, 1);
  options.memory_limit_bytes = 1;
  options.ignore_memory_limits = true;
  const Outcome outcome = InChild([&](Message* message) { TryToLoad(Path(), options, message); });
  EXPECT_EQ(outcome.message.ending, Ending::kLoaded) << outcome.message.text;
}

// Loads in a child that may have `extra_bytes` of address space more than it begins with.
Outcome LoadWithExtra(const std::string& path, const EngineOptions& options, uint64_t extra_bytes) {
  return InChild([&](Message* message) {
    const uint64_t bytes = platform::ReadMemoryUsage().virtual_bytes + extra_bytes;
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
    setrlimit(RLIMIT_AS, &limit);
    TryToLoad(path, options, message);
  });
}

class EngineAddressSpace : public EngineMemory,
                           public testing::WithParamInterface<std::tuple<Weights, size_t>> {};

TEST_P(EngineAddressSpace, EveryRefusalOfTheSystemIsAnError) {
  if (support::kHeapIsSanitized) GTEST_SKIP() << "a sanitizer reserves terabytes of address space";
  const auto [weights, threads] = GetParam();
  EngineOptions options = Options(weights, threads);
  options.ignore_memory_limits = true;
  const char* const step_override = std::getenv("CRIA_ADDRESS_SPACE_STEP");
  const uint64_t step = step_override != nullptr ? std::stoull(step_override) : 160 << 10;
  size_t errors = 0;
  size_t failures_of_new = 0;
  uint64_t extra = 0;
  for (;; extra += step) {
    if (weights == Weights::kPackedFirst) {
      std::filesystem::remove_all(options.packing.cache_folder);
    }
    const auto [message, signal] = LoadWithExtra(Path(), options, extra);
    ASSERT_EQ(signal, 0) << "ended by a signal with " << extra << " bytes more";
    if (message.ending == Ending::kLoaded) break;
    ASSERT_NE(message.ending, Ending::kOtherError) << extra << ": " << message.text;
    ASSERT_STRNE(message.text, "");
    ++(message.ending == Ending::kNewFailed ? failures_of_new : errors);
    ASSERT_LT(extra, uint64_t{1} << 30) << message.text;
  }
  std::printf("loads with %llu bytes more; before, %zu errors and %zu failures of operator new\n",
              static_cast<unsigned long long>(extra), errors, failures_of_new);
  // Nearly all that is taken is taken in large blocks.
  EXPECT_GT(errors, 9 * failures_of_new);
  // The plan bounds what it takes.
  const auto file = ModelFile::Open(Path());
  ASSERT_TRUE(file);
  const ModelOutline outline = OutlineOf(*file);
  const auto plan = PlanMemory(outline, ResolveOptions(outline, options), {});
  ASSERT_TRUE(plan);
  EXPECT_LE(extra, plan->address_space_bytes + step);
}

INSTANTIATE_TEST_SUITE_P(Ways, EngineAddressSpace,
                         testing::Combine(testing::Values(Weights::kInMemory, Weights::kMapped,
                                                          Weights::kPackedFirst),
                                          testing::Values(1, 2)),
                         [](const auto& param) {
                           const Weights weights = std::get<0>(param.param);
                           const char* const name = weights == Weights::kInMemory ? "InMemory"
                                                    : weights == Weights::kMapped ? "Mapped"
                                                                                  : "PackedFirst";
                           return Format("{}{}", name, std::get<1>(param.param));
                         });

TEST(ArenaOfADecoder, IsHadFromItsTotalOnAndNotBefore) {
  ModelConfig config = {.architecture = "LlamaForCausalLM",
                        .hidden_size = 64,
                        .intermediate_size = 160,
                        .num_hidden_layers = 2,
                        .num_attention_heads = 4,
                        .num_key_value_heads = 2,
                        .head_dim = 16,
                        .vocab_size = 300,
                        .max_position_embeddings = 128};
  for (const KvType kv_type : {KvType::kF32, KvType::kF16, KvType::kInt8}) {
    const DecoderMemory memory =
        PlanDecoderMemory(config, {.context_tokens = 64, .kv_type = kv_type}, 2);
    const size_t total = memory.layout.total_bytes();
    for (size_t limit = 0; limit < total; limit += 1009) {
      const auto refused = Arena::Create(memory.layout, limit);
      ASSERT_FALSE(refused) << limit;
      EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
    }
    EXPECT_FALSE(Arena::Create(memory.layout, total - 1));
    EXPECT_TRUE(Arena::Create(memory.layout, total));
  }
}

}  // namespace
}  // namespace cria
