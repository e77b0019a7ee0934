#include "cli/models/known_models.h"

#include <algorithm>
#include <array>

#include "raspberry-pi/boards.h"

namespace cria::cli {
namespace {

// Name, source, licence; megabytes of the download, of the model file, and of memory. Sorted by
// size. The licences are those that the pages of the models on the hub name; for llama3.2, users
// must agree to the terms there.
constexpr auto kKnownModels = std::to_array<KnownModel>({
    {"smollm2-135m", "hf:HuggingFaceTB/SmolLM2-135M-Instruct", "apache-2.0", 272, 91, 129},
    {"smollm2-360m", "hf:HuggingFaceTB/SmolLM2-360M-Instruct", "apache-2.0", 727, 227, 286},
    {"qwen2.5-0.5b", "hf:Qwen/Qwen2.5-0.5B-Instruct", "apache-2.0", 999, 346, 378},
    {"qwen3-0.6b", "hf:Qwen/Qwen3-0.6B", "apache-2.0", 1515, 412, 552},
    {"tinyllama-1.1b", "hf:TinyLlama/TinyLlama-1.1B-Chat-v1.0", "apache-2.0", 2203, 679, 659},
    {"llama3.2-1b", "hf:meta-llama/Llama-3.2-1B-Instruct", "llama3.2", 2481, 817, 877},
    {"qwen2.5-1.5b", "hf:Qwen/Qwen2.5-1.5B-Instruct", "apache-2.0", 3099, 979, 1034},
    {"smollm2-1.7b", "hf:HuggingFaceTB/SmolLM2-1.7B-Instruct", "apache-2.0", 3426, 1010, 1250},
    {"qwen3-1.7b", "hf:Qwen/Qwen3-1.7B", "apache-2.0", 4079, 1113, 1256},
    {"smollm3-3b", "hf:HuggingFaceTB/SmolLM3-3B", "apache-2.0", 6168, 1852, 1958},
    {"llama3.2-3b", "hf:meta-llama/Llama-3.2-3B-Instruct", "llama3.2", 6443, 1987, 2140},
    {"qwen3-4b", "hf:Qwen/Qwen3-4B-Instruct-2507", "apache-2.0", 8056, 2442, 2625},
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
    if (board.usable_bytes < model.memory_megabytes * 1'000'000) continue;
    if (smallest == nullptr || board.usable_bytes < smallest->usable_bytes) smallest = &board;
  }
  return smallest == nullptr ? "" : smallest->name;
}

}  // namespace cria::cli
