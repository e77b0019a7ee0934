// A token reads only the experts of a mixture that it chooses: no other page of them is
// touched, and none is read from the disk. So the model runs with less memory than it has weights.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "decode/open_sequence.h"
#include "llm/engine.h"
#include "model/model_outline.h"
#include "support/converted_model.h"
#include "support/emulation.h"
#include "support/sanitizers.h"
#include "support/unwrap.h"

namespace cria {
namespace {

using testing::HasSubstr;

// As support::WideMixture has them.
constexpr size_t kLayersWithExperts = 2;
constexpr size_t kNumExperts = 8;
constexpr size_t kChosenExperts = 2;

// The pages that lie entirely in one matrix of an expert.
struct ExpertPages {
  std::byte* begin = nullptr;
  size_t bytes = 0;

  bool Contains(const void* address) const {
    const auto* byte = static_cast<const std::byte*>(address);
    return byte >= begin && byte < begin + bytes;
  }
};

// All of them: first the layer, then gate and up together or down, then the expert.
using AllExperts =
    std::array<std::array<std::array<ExpertPages, kNumExperts>, 2>, kLayersWithExperts>;

AllExperts ExpertsOf(const Engine& engine) {
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const std::vector<TensorLayout> layouts = OutlineOf(engine.file()).matrices;
  AllExperts all;
  size_t found = 0;
  for (size_t i = 0; i < layouts.size(); ++i) {
    if (layouts[i].num_parts == 1) continue;
    const std::span<const std::byte> matrix = engine.weights().matrices()[i];
    const size_t expert_bytes = matrix.size() / kNumExperts;
    for (size_t expert = 0; expert < kNumExperts; ++expert) {
      const auto begin = reinterpret_cast<uintptr_t>(matrix.data()) + expert * expert_bytes;
      const uintptr_t first = (begin + page_bytes - 1) / page_bytes * page_bytes;
      const uintptr_t end = (begin + expert_bytes) / page_bytes * page_bytes;
      all.at(found / 2).at(found % 2).at(expert) = {reinterpret_cast<std::byte*>(first),
                                                    end - first};
    }
    ++found;
  }
  EXPECT_EQ(found, 2 * kLayersWithExperts);
  return all;
}

// While it exists, it notices which of these pages are read, by any thread: they cannot be read
// until a signal's handler has noted it.
class PageWatch {
 public:
  explicit PageWatch(const AllExperts& experts) {
    for (const auto& layer : experts) {
      for (const auto& matrix : layer) {
        for (const ExpertPages& pages : matrix) {
          EXPECT_GT(pages.bytes, 0u);
          EXPECT_EQ(mprotect(pages.begin, pages.bytes, PROT_NONE), 0);
          watched_[num_watched_] = pages;
          is_read_[num_watched_++] = false;
        }
      }
    }
    struct sigaction action = {};
    action.sa_sigaction = Note;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &former_);
  }
  ~PageWatch() {
    for (size_t i = 0; i < num_watched_; ++i) {
      mprotect(watched_[i].begin, watched_[i].bytes, PROT_READ);
    }
    sigaction(SIGSEGV, &former_, nullptr);
    num_watched_ = 0;
  }
  PageWatch(const PageWatch&) = delete;
  PageWatch& operator=(const PageWatch&) = delete;

  // The experts of a layer whose gate and up, or whose down projection was read.
  static std::set<size_t> ReadExperts(size_t layer, size_t matrix) {
    std::set<size_t> experts;
    for (size_t expert = 0; expert < kNumExperts; ++expert) {
      if (is_read_[(layer * 2 + matrix) * kNumExperts + expert]) experts.insert(expert);
    }
    return experts;
  }

 private:
  static void Note(int signal, siginfo_t* info, void* /*context*/) {
    for (size_t i = 0; i < num_watched_; ++i) {
      if (!watched_[i].Contains(info->si_addr)) continue;
      is_read_[i] = true;
      mprotect(watched_[i].begin, watched_[i].bytes, PROT_READ);
      return;
    }
    // Another error, which ends the program when it is repeated.
    ::signal(signal, SIG_DFL);
  }

  static inline size_t num_watched_ = 0;
  static inline std::array<ExpertPages, kLayersWithExperts * 2 * kNumExperts> watched_;
  static inline std::array<std::atomic<bool>, kLayersWithExperts * 2 * kNumExperts> is_read_;
  struct sigaction former_ = {};
};

class MixtureMemory : public testing::TestWithParam<Scheme> {
 protected:
  MixtureMemory() : model_(support::WideMixture(), {.weights = GetParam()}) {}

  std::filesystem::path PackedFolder() const { return model_.folder() / "packed"; }
  std::unique_ptr<Engine> Load(EngineOptions options = {}) const {
    options.num_threads = support::UsualThreads();
    options.context_tokens = 64;
    options.packing.cache_folder = PackedFolder();
    return Unwrap(Engine::Load(model_.path(), options));
  }

  support::ConvertedModel model_;
};

TEST_P(MixtureMemory, ATokenTouchesTheExpertsItChooses) {
  const std::unique_ptr<Engine> engine = Load();
  Decoder& decoder = engine->decoder();
  const OpenSequence sequence = Unwrap(OpenSequence::Create(decoder.sequences(), 64));
  const AllExperts experts = ExpertsOf(*engine);
  std::array<std::set<size_t>, kLayersWithExperts> ever;
  std::vector<int32_t> tokens;
  for (int32_t token = 3; token < 12; ++token) {
    const PageWatch watch(experts);
    ASSERT_TRUE(decoder.ForwardSequence(sequence.id(), std::span(&token, 1), tokens.size(), 1));
    for (size_t layer = 0; layer < kLayersWithExperts; ++layer) {
      const std::set<size_t> chosen = PageWatch::ReadExperts(layer, 0);
      EXPECT_EQ(chosen.size(), kChosenExperts) << "token " << token << ", layer " << layer;
      EXPECT_EQ(PageWatch::ReadExperts(layer, 1), chosen) << "token " << token;
      ever[layer].insert(chosen.begin(), chosen.end());
    }
    tokens.push_back(token);
  }
  // Together, several tokens read what each of them chooses.
  const PageWatch watch(experts);
  ASSERT_TRUE(decoder.ForwardSequence(sequence.id(), tokens, 0, tokens.size()));
  for (size_t layer = 0; layer < kLayersWithExperts; ++layer) {
    EXPECT_GT(ever[layer].size(), kChosenExperts);
    EXPECT_EQ(PageWatch::ReadExperts(layer, 0), ever[layer]);
    EXPECT_EQ(PageWatch::ReadExperts(layer, 1), ever[layer]);
  }
}

// The number of these pages that are in memory, no matter which process has read them.
size_t PagesInMemory(const ExpertPages& pages) {
  std::vector<unsigned char> states(pages.bytes / static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(mincore(pages.begin, pages.bytes, states.data()), 0);
  return static_cast<size_t>(
      std::ranges::count_if(states, [](unsigned char state) { return (state & 1) != 0; }));
}

size_t PagesInMemory(const AllExperts& experts) {
  size_t count = 0;
  for (const auto& layer : experts) {
    for (const auto& matrix : layer) {
      for (const ExpertPages& pages : matrix) count += PagesInMemory(pages);
    }
  }
  return count;
}

// Makes the system forget the contents of a file, which it need not.
void DropFromMemory(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDONLY);
  ASSERT_GE(file, 0);
  fsync(file);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  close(file);
}

TEST_P(MixtureMemory, NoOtherExpertIsReadFromTheDisk) {
  if (support::IsEmulated()) GTEST_SKIP() << "the emulator does not say which pages are in memory";
  Load();
  for (const auto& entry : std::filesystem::directory_iterator(PackedFolder())) {
    DropFromMemory(entry.path());
  }
  const std::unique_ptr<Engine> engine = Load();
  const AllExperts experts = ExpertsOf(*engine);
  const size_t before = PagesInMemory(experts);
  if (before > kLayersWithExperts * 2 * kNumExperts) {
    GTEST_SKIP() << "the file system keeps " << before << " pages in memory";
  }
  // Around a page of other weights, the system may read megabytes, which this test is not about.
  for (const std::span<const std::byte> matrix : engine->weights().matrices()) {
    platform::ExpectUseInNoOrder(matrix);
  }
  Decoder& decoder = engine->decoder();
  const OpenSequence sequence = Unwrap(OpenSequence::Create(decoder.sequences(), 64));
  const int32_t token = 7;
  const PageWatch watch(experts);
  ASSERT_TRUE(decoder.ForwardSequence(sequence.id(), std::span(&token, 1), 0, 1));
  for (size_t layer = 0; layer < kLayersWithExperts; ++layer) {
    for (size_t matrix = 0; matrix < 2; ++matrix) {
      const std::set<size_t> chosen = PageWatch::ReadExperts(layer, matrix);
      EXPECT_EQ(chosen.size(), kChosenExperts);
      for (size_t expert = 0; expert < kNumExperts; ++expert) {
        const ExpertPages& pages = experts[layer][matrix][expert];
        if (chosen.contains(expert)) {
          EXPECT_GT(PagesInMemory(pages), 0u);
        } else {
          EXPECT_EQ(PagesInMemory(pages), 0u) << "layer " << layer << ", expert " << expert;
        }
      }
    }
  }
}

// Memory for what every token reads and the experts of one is enough, and a user is told.
TEST_P(MixtureMemory, LessMemoryThanWeightsIsEnough) {
  std::string notice;
  EngineOptions options;
  options.on_notice = [&](std::string_view sentence) { notice += sentence; };
  // Twice, so that the code that loads is in memory when the second plan measures the program.
  Load(options);
  const MemoryPlan plan = Load(options)->memory_plan();
  EXPECT_EQ(notice, "");
  EXPECT_EQ(plan.on_demand_bytes(), 3 * plan.token_expert_bytes);
  if (support::kHeapIsSanitized) {
    GTEST_SKIP() << "the experts are smaller than what a sanitizer's shadow varies by";
  }
  // The program's own memory is not the same each time.
  const uint64_t slack = plan.on_demand_bytes() / 3;
  options.memory_limit_bytes = plan.peak_bytes() + slack;
  Load(options);
  EXPECT_THAT(notice, HasSubstr("not all experts fit into memory: a token is expected to read "));
  options.memory_limit_bytes = plan.peak_bytes() - slack;
  options.packing.cache_folder = PackedFolder();
  const auto refused = Engine::Load(model_.path(), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
}

INSTANTIATE_TEST_SUITE_P(Schemes, MixtureMemory,
                         testing::Values(Scheme::kF32, Scheme::kQc8w, Scheme::kQb4w),
                         [](const auto& scheme) { return std::string(SchemeName(scheme.param)); });

}  // namespace
}  // namespace cria
