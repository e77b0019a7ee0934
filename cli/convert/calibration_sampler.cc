#include "cli/convert/calibration_sampler.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "cli/convert/converter_engine.h"
#include "cli/convert/sampled_window.h"
#include "converter/calibrate/block.h"
#include "converter/step_costs.h"
#include "decode/open_sequence.h"
#include "llm/engine.h"
#include "llm/sampler.h"

namespace cria::cli {
namespace {

// Windows that are written at once, because the weights are then read once for all of them.
constexpr size_t kSequences = 8;

Result<Turns> FindTurns(const Engine& engine) {
  const Vocabulary& vocabulary = engine.file().vocabulary();
  Turns turns;
  if (vocabulary.bos_token_id >= 0) turns.opening = {vocabulary.bos_token_id};
  if (engine.chat_template().source().empty()) return turns;
  // What is equal around two messages is the template's.
  std::array<std::vector<int32_t>, 2> rendered;
  const std::array<const char*, 2> messages = {"1", "Z"};
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage message = {"user", messages[i]};
    auto tokens = engine.chat_template().Encode(engine.tokenizer(), std::span(&message, 1),
                                                {.add_generation_prompt = true});
    // A template that refuses this is not needed.
    if (!tokens) return turns;
    rendered[i] = *std::move(tokens);
  }
  const auto [begin, other_begin] = std::ranges::mismatch(rendered[0], rendered[1]);
  turns.opening.assign(rendered[0].begin(), begin);
  std::ranges::reverse(rendered[0]);
  std::ranges::reverse(rendered[1]);
  const auto [end, other_end] = std::ranges::mismatch(rendered[0], rendered[1]);
  turns.answer.assign(rendered[0].begin(), end);
  std::ranges::reverse(turns.answer);
  return turns;
}

struct TokenCount {
  size_t done;
  size_t total;
};

// Writes windows, as many at once as there are samplers. `before` are the tokens that are done.
Status WriteWindows(Engine& engine, size_t window_tokens, std::span<SampledWindow> windows,
                    std::span<Sampler> samplers, const TokenCount& before,
                    const ProgressCallback& progress) {
  Decoder& decoder = engine.decoder();
  std::vector<OpenSequence> sequences;
  for (size_t i = 0; i < windows.size(); ++i) {
    CRIA_ASSIGN_OR_RETURN(OpenSequence sequence,
                          OpenSequence::Create(decoder.sequences(), window_tokens));
    sequences.push_back(std::move(sequence));
  }
  std::vector<int32_t> next(windows.size());
  std::vector<BatchRun> runs(windows.size());
  for (size_t position = 0; position < window_tokens; ++position) {
    for (size_t i = 0; i < windows.size(); ++i) {
      int32_t sampled = -1;
      if (windows[i].needs_logits()) {
        CRIA_ASSIGN_OR_RETURN(const std::span<float> logits, decoder.Logits(i));
        CRIA_ASSIGN_OR_RETURN(sampled, samplers[i].Sample(logits, windows[i].tokens()));
      }
      next[i] = windows[i].Next(sampled);
      runs[i] = {sequences[i].id(), position, 1, 1};
    }
    CRIA_RETURN_IF_ERROR(decoder.Forward({next, runs}));
    const size_t done = before.done + (position + 1) * windows.size();
    if (progress != nullptr && !progress({"letting the model write tokens", done, before.total})) {
      return Fail(ErrorCode::kCancelled, "cancelled; nothing was written");
    }
  }
  return {};
}

Result<std::unique_ptr<Engine>> LoadInInt8(const std::filesystem::path& checkpoint_path,
                                           const std::filesystem::path& model_path,
                                           const ConvertOptions& options, size_t context_tokens,
                                           const ProgressCallback& progress) {
  ConvertOptions in_int8 = options;
  in_int8.weights = Scheme::kQc8w;
  in_int8.target.reset();
  in_int8.calibration.reset();
  in_int8.error_texts.clear();
  CRIA_ASSIGN_OR_RETURN(platform::File file,
                        ConvertUnnamed(checkpoint_path, model_path, in_int8, progress));
  EngineOptions engine;
  engine.num_threads = options.num_threads;
  engine.num_sequences = kSequences;
  engine.context_tokens = kSequences * context_tokens;
  auto loaded = LoadInConverter(std::move(file), engine);
  if (loaded || loaded.error().code() != ErrorCode::kOutOfMemory) return loaded;
  return Fail(ErrorCode::kOutOfMemory,
              "the model cannot write a text to calibrate with: " + loaded.error().message() +
                  "; --calibrate with a text, or --fast, takes less");
}

}  // namespace

Result<CalibrationTokens> SampleCalibrationTokens(const std::filesystem::path& checkpoint_path,
                                                  const std::filesystem::path& model_path,
                                                  const ModelConfig& config,
                                                  const ConvertOptions& options, size_t max_tokens,
                                                  const ProgressCallback& progress) {
  // Before a model is made that takes long to sample from.
  CRIA_RETURN_IF_ERROR(CheckCalibrates(config));
  CalibrationTokens tokens;
  const size_t total = max_tokens != 0 ? max_tokens : UsualCalibrationTokens(config);
  tokens.window_tokens = CalibrationWindowTokens(config, total);
  const double converting_part = ConvertingPartOfSampling(config, options);
  CRIA_ASSIGN_OR_RETURN(
      const std::unique_ptr<Engine> engine,
      LoadInInt8(checkpoint_path, model_path, options, tokens.window_tokens,
                 ProgressOfStep(progress, ConvertStep::kSampling, 0.0, converting_part)));
  const ProgressCallback sampling =
      ProgressOfStep(progress, ConvertStep::kSampling, converting_part, 1.0);
  const size_t num_windows = std::max<size_t>(1, total / tokens.window_tokens);
  CRIA_ASSIGN_OR_RETURN(const Turns turns, FindTurns(*engine));
  for (size_t first = 0; first < num_windows; first += kSequences) {
    std::vector<SampledWindow> windows;
    std::vector<Sampler> samplers;
    for (size_t i = first; i < std::min(first + kSequences, num_windows); ++i) {
      CRIA_ASSIGN_OR_RETURN(
          Sampler sampler,
          Sampler::Create(
              {.top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .temperature = 1.0f, .seed = i},
              config.vocab_size));
      samplers.push_back(std::move(sampler));
      windows.emplace_back(turns, engine->file().stop_token_ids(), config.vocab_size, i);
    }
    CRIA_RETURN_IF_ERROR(WriteWindows(*engine, tokens.window_tokens, windows, samplers,
                                      {tokens.ids.size(), total}, sampling));
    for (const SampledWindow& window : windows) {
      tokens.ids.insert(tokens.ids.end(), window.tokens().begin(), window.tokens().end());
    }
  }
  return tokens;
}

}  // namespace cria::cli
