#include "cli/models/known_models.h"

#include <algorithm>
#include <array>

#include "raspberry-pi/boards.h"

namespace cria::cli {
namespace {

constexpr uint64_t kMB = 1'000'000;

// Name, source, licence; bytes of the download, of the model file, and of memory. Sorted by
// size. The licences are those that the pages of the models on the hub name; for llama3.2, users
// must agree to the terms there.
constexpr auto kKnownModels = std::to_array<KnownModel>({
    {"smollm2-135m", "hf:HuggingFaceTB/SmolLM2-135M-Instruct", "apache-2.0", 272 * kMB, 91 * kMB,
     129 * kMB},
    {"smollm2-360m", "hf:HuggingFaceTB/SmolLM2-360M-Instruct", "apache-2.0", 727 * kMB, 227 * kMB,
     286 * kMB},
    {"qwen2.5-0.5b", "hf:Qwen/Qwen2.5-0.5B-Instruct", "apache-2.0", 999 * kMB, 346 * kMB,
     378 * kMB},
    {"qwen3-0.6b", "hf:Qwen/Qwen3-0.6B", "apache-2.0", 1515 * kMB, 412 * kMB, 552 * kMB},
    {"tinyllama-1.1b", "hf:TinyLlama/TinyLlama-1.1B-Chat-v1.0", "apache-2.0", 2203 * kMB, 679 * kMB,
     659 * kMB},
    {"llama3.2-1b", "hf:meta-llama/Llama-3.2-1B-Instruct", "llama3.2", 2481 * kMB, 817 * kMB,
     877 * kMB},
    {"qwen2.5-1.5b", "hf:Qwen/Qwen2.5-1.5B-Instruct", "apache-2.0", 3099 * kMB, 979 * kMB,
     1034 * kMB},
    {"smollm2-1.7b", "hf:HuggingFaceTB/SmolLM2-1.7B-Instruct", "apache-2.0", 3426 * kMB, 1010 * kMB,
     1250 * kMB},
    {"qwen3-1.7b", "hf:Qwen/Qwen3-1.7B", "apache-2.0", 4079 * kMB, 1113 * kMB, 1256 * kMB},
    {"smollm3-3b", "hf:HuggingFaceTB/SmolLM3-3B", "apache-2.0", 6168 * kMB, 1852 * kMB, 1958 * kMB},
    {"llama3.2-3b", "hf:meta-llama/Llama-3.2-3B-Instruct", "llama3.2", 6443 * kMB, 1987 * kMB,
     2140 * kMB},
    {"qwen3-4b", "hf:Qwen/Qwen3-4B-Instruct-2507", "apache-2.0", 8056 * kMB, 2442 * kMB,
     2625 * kMB},
});

}  // namespace

std::span<const KnownModel> KnownModels() { return kKnownModels; }

const KnownModel* FindKnownModel(std::string_view name) {
  const auto* const found = std::ranges::find(kKnownModels, name, &KnownModel::name);
  return found == kKnownModels.end() ? nullptr : found;
}

std::string_view SmallestBoard(const KnownModel& model) {
  const raspberry_pi::Board* smallest = nullptr;
  for (const raspberry_pi::Board& board : raspberry_pi::Boards()) {
    if (board.usable_bytes < model.peak_bytes) continue;
    if (smallest == nullptr || board.usable_bytes < smallest->usable_bytes) smallest = &board;
  }
  return smallest == nullptr ? "" : smallest->name;
}

}  // namespace cria::cli
