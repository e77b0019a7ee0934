#include "budget/quiet_model.h"

#include <filesystem>

#include "llm/generator.h"
#include "llm/turn.h"
#include "support/convert_model.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

// With biases and norms of heads, and layers of two kinds. Small, but so wide that single rows are
// shared between threads: 256 Ki multiplications in gate and up, and in the head.
support::CheckpointSpec SharedRowsSpec() {
  support::CheckpointSpec spec = support::SpecQwen3Biases();
  spec.config.hidden_size = 256;
  spec.config.intermediate_size = 512;
  spec.config.num_hidden_layers = 2;
  spec.config.layers = {{.rope_theta = 1e6}, {.rope_theta = 1e4, .sliding_window = 16}};
  spec.config.head_dim = 64;
  spec.config.vocab_size = kVocabulary;
  spec.config.max_position_embeddings = 512;
  support::SetTokenIds(spec);
  return spec;
}

}  // namespace

const std::vector<SchemeCase>& SchemeCases() {
  static const std::vector<SchemeCase> kCases = {
      {"F32", {.weights = Scheme::kF32}},
      {"Int8", {.weights = Scheme::kQc8w, .embedding = Scheme::kQc8w, .head = Scheme::kQc8w}},
      {"Int4", {.weights = Scheme::kQb4w, .embedding = Scheme::kQc8w, .head = Scheme::kQc8w}},
      {"AllInt4", {.weights = Scheme::kQb4w, .embedding = Scheme::kQb4w, .head = Scheme::kQb4w}}};
  return kCases;
}

std::string ModelPath(const SchemeCase& scheme) {
  static const support::TemporaryDirectory directory;
  const auto checkpoint = directory.path() / "checkpoint";
  if (!std::filesystem::exists(checkpoint)) {
    support::WriteHuggingFaceDirectory(support::MakeModel(SharedRowsSpec()), checkpoint, {});
  }
  const auto path = directory.path() / (std::string(scheme.name) + ".cria");
  if (!std::filesystem::exists(path)) support::ConvertModel(checkpoint, path, scheme.conversion);
  return path.string();
}

std::vector<int32_t> SomeTokens(size_t count, size_t first) {
  std::vector<int32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = static_cast<int32_t>((first + i * 37) % 256);
  return tokens;
}

Status Answer(Session& session, Sampler& sampler, std::span<const int32_t> prompt, size_t count) {
  Turn turn(session, {.max_tokens = count, .kept_tokens = 4});
  CRIA_RETURN_IF_ERROR(turn.Prefill(prompt));
  const TokenCallback on_token = [](const GeneratedToken&) { return true; };
  return Generate(turn, {.max_tokens = count}, sampler, on_token).transform([](StopReason) {});
}

}  // namespace cria
