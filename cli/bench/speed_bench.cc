#include "cli/bench/speed_bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <span>
#include <utility>

#include "cli/bench/read_bandwidth.h"
#include "cli/engine_loader.h"
#include "cli/report.h"
#include "cli/terminal/progress_bar.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "decode/layer_products.h"
#include "decode/open_sequence.h"
#include "decode/state_cache.h"
#include "llm/sampler.h"
#include "model/model_outline.h"

namespace cria::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Number of generated tokens between two measurements of only the products.
constexpr size_t kStretchTokens = 8;

double Nanoseconds(Clock::duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

// Bytes of keys, values and recurrent states that generating one of `tokens` after `depth` reads on
// average. A token also reads its own position.
double MeanCacheBytes(const ModelConfig& config, KvType type, size_t depth, size_t tokens) {
  double bytes = 0.0;  // Summed over all layers and tokens.
  for (size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const LayerKind& kind = config.layer_kind(layer);
    if (!kind.has_attention()) continue;
    const size_t window = kind.sliding_window;
    const size_t head_bytes = config.head_dim_of(kind) * KvElementBytes(type) +
                              (type == KvType::kInt8 ? sizeof(float) : 0);
    for (size_t i = 1; i <= tokens; ++i) {
      const size_t positions = window == 0 ? depth + i : std::min(depth + i, window);
      bytes += 2.0 * static_cast<double>(positions * config.key_value_heads_of(kind) * head_bytes);
    }
  }
  return static_cast<double>(StateCache::BytesPerToken(config)) +
         bytes / static_cast<double>(tokens);
}

// What one token reads of the packed weights: of a mixture's experts, as many as it chooses.
std::vector<std::span<const std::byte>> WeightsOfAToken(const Engine& engine) {
  const std::vector<TensorLayout> layouts = OutlineOf(engine.file()).matrices;
  std::vector<std::span<const std::byte>> weights;
  for (size_t i = 0; i < layouts.size(); ++i) {
    std::span<const std::byte> matrix = engine.weights().matrices()[i];
    if (layouts[i].num_parts > 1) {
      matrix = matrix.first(matrix.size() / layouts[i].num_parts *
                            engine.file().config().num_experts_per_tok);
    }
    weights.push_back(matrix);
  }
  return weights;
}

// Bytes of packed weights that one step of so many sequences reads, if tokens choose all experts
// equally often.
double StepBytes(const Engine& engine, size_t num_sequences) {
  const ModelConfig& config = engine.file().config();
  // The share of experts that at least one of the tokens chooses.
  double chosen = 1.0;
  if (config.num_experts != 0) {
    const double one = static_cast<double>(config.num_experts_per_tok) / config.num_experts;
    chosen = 1.0 - std::pow(1.0 - one, static_cast<double>(num_sequences));
  }
  const std::vector<TensorLayout> layouts = OutlineOf(engine.file()).matrices;
  double bytes = 0.0;
  for (size_t i = 0; i < layouts.size(); ++i) {
    bytes += static_cast<double>(engine.weights().matrices()[i].size()) *
             (layouts[i].num_parts > 1 ? chosen : 1.0);
  }
  return bytes;
}

// The tests of one engine.
class SpeedBench {
 public:
  // There is at least one sequence, or the engine has drafts, whose tests open their own.
  SpeedBench(Engine& engine, std::vector<OpenSequence> sequences, const SpeedOptions& options,
             std::vector<int32_t> tokens, const InterruptGuard& interrupt, Sampler& sampler,
             const ThreadPool& one_thread)
      : engine_(engine),
        decoder_(engine.decoder()),
        sequences_(std::move(sequences)),
        options_(options),
        interrupt_(interrupt),
        sampler_(sampler),
        one_thread_(one_thread),
        bandwidth_(WeightsOfAToken(engine)),
        tokens_(std::move(tokens)) {
    if (sequences_.empty()) drafts_.emplace(engine, tokens_, interrupt.flag());
  }

  // `result` has the test.
  Status Run(SpeedResult& result);

 private:
  // Runs the test once and adds its times as another repetition.
  Status RunOnce(SpeedResult& result) {
    if (drafts_) return CompareDrafts(result);
    CRIA_RETURN_IF_ERROR(Rewind(result.test));
    return result.test.is_prompt() ? RunPrompt(result) : Generate(result);
  }
  Status CompareDrafts(SpeedResult& result) {
    if (!result.drafts) result.drafts.emplace();
    Status status = drafts_->Run(result.test, result.run_ns, *result.drafts);
    CRIA_RETURN_IF_ERROR(CheckInterrupt());
    return status;
  }
  // Makes the sequences of the test end at its depth.
  Status Rewind(const SpeedTest& test);
  size_t NumUsedPages() const;
  Status RunPrompt(SpeedResult& result);
  Status Generate(SpeedResult& result);

  // Logits are wanted after the last token.
  Status Prefill(size_t begin, size_t end);
  // Runs only the products of Forwards of `rows` rows that run so many tokens, each with the logits
  // of `logit_rows` rows, and returns the time.
  Result<Clock::duration> TimeProducts(size_t tokens, size_t rows, size_t logit_rows);
  void MeasureBandwidth(const ThreadPool& pool, SpeedResult& result);
  Status CheckInterrupt() const {
    if (!interrupt_.interrupted()) return {};
    return Fail(ErrorCode::kCancelled, "stopped before all tests were done");
  }

  Engine& engine_;
  Decoder& decoder_;
  const std::vector<OpenSequence> sequences_;
  const SpeedOptions& options_;
  const InterruptGuard& interrupt_;
  Sampler& sampler_;
  const ThreadPool& one_thread_;
  ReadBandwidth bandwidth_;
  const std::vector<int32_t> tokens_;  // The tokens before they are replaced by generated ones.
  std::optional<DraftComparison> drafts_;
  Profile profile_;
};

Status SpeedBench::Run(SpeedResult& result) {
  const SpeedTest& test = result.test;
  const ThreadPool& pool = test.is_batch() ? engine_.batch_pool() : engine_.pool();
  result.begin = std::chrono::system_clock::now();
  result.first_state = platform::ReadProcessorState();
  if (!test.is_prompt() && !drafts_) {
    result.bytes_per_token =
        StepBytes(engine_, test.num_sequences) / static_cast<double>(test.num_sequences) +
        MeanCacheBytes(engine_.file().config(), engine_.memory_plan().options.decoder.kv_type,
                       test.depth_tokens, test.generated_tokens);
  }
  std::optional<ProgressBar> bar;
  if (IsTerminal(stderr)) {
    bar.emplace(Format("{}, {} thread{}", test.Name(), pool.num_threads(),
                       pool.num_threads() == 1 ? "" : "s"));
  }
  const auto show_progress = [&](size_t done, const std::string& item) {
    if (bar) bar->Update(done, options_.repetitions + 1, item);
  };

  show_progress(0, "warming up");
  SpeedResult not_counted = {.test = test};
  CRIA_RETURN_IF_ERROR(RunOnce(not_counted));
  profile_ = {};
  if (options_.with_profile) decoder_.set_profile(&profile_);
  for (size_t i = 1; i <= options_.repetitions; ++i) {
    show_progress(i, Format("repetition {} of {}", i, options_.repetitions));
    MeasureBandwidth(pool, result);
    CRIA_RETURN_IF_ERROR(RunOnce(result));
  }
  decoder_.set_profile(nullptr);
  if (!drafts_) result.kv_pages = NumUsedPages();
  if (options_.with_profile) result.profile = profile_;
  result.last_state = platform::ReadProcessorState();
  return {};
}

Status SpeedBench::RunPrompt(SpeedResult& result) {
  const size_t depth = result.test.depth_tokens;
  const size_t count = result.test.prompt_tokens;
  const Clock::time_point begin = Clock::now();
  CRIA_RETURN_IF_ERROR(Prefill(depth, depth + count));
  CRIA_ASSIGN_OR_RETURN(const std::span<float> logits, decoder_.Logits(0));
  result.run_ns.push_back(Nanoseconds(Clock::now() - begin));
  CRIA_RETURN_IF_ERROR(sampler_.Sample(logits, {}).transform([](int32_t) {}));
  result.first_token_ms.push_back(MillisecondsSince(begin));
  if (options_.with_products) {
    const size_t rows = decoder_.chunk_tokens();
    // Only the last chunk has logits.
    const size_t last = (count - 1) % rows + 1;
    CRIA_ASSIGN_OR_RETURN(const Clock::duration time, TimeProducts(count - last, rows, 0));
    CRIA_ASSIGN_OR_RETURN(const Clock::duration last_time, TimeProducts(last, last, 1));
    result.products_ns.push_back(Nanoseconds(time + last_time));
  }
  return {};
}

Status SpeedBench::Generate(SpeedResult& result) {
  const size_t rows = result.test.num_sequences;
  const size_t end = result.test.depth_tokens + result.test.generated_tokens;
  size_t position = result.test.depth_tokens;
  std::vector<int32_t> tokens(rows, tokens_[position]);
  std::vector<BatchRun> runs(rows);
  for (size_t i = 0; i < rows; ++i) {
    runs[i] = {.sequence = sequences_[i].id(),
               .first_position = position,
               .num_tokens = 1,
               .num_logits = 1,
               .num_candidates = sampler_.NumCandidates()};
  }
  Clock::duration run = {}, products = {};
  while (position < end) {
    const size_t count = std::min(end - position, kStretchTokens);
    const Clock::time_point begin = Clock::now();
    for (size_t i = 0; i < count; ++i, ++position) {
      for (BatchRun& sequence : runs) sequence.first_position = position;
      CRIA_RETURN_IF_ERROR(decoder_.Forward({tokens, runs}));
      for (size_t row = 0; row < rows; ++row) {
        CRIA_ASSIGN_OR_RETURN(const std::span<float> logits, decoder_.Logits(row));
        if (options_.with_profile) profile_.Resume();
        CRIA_ASSIGN_OR_RETURN(tokens[row], sampler_.Sample(logits, {}));
        if (options_.with_profile) profile_.Count(OperatorKind::kSampling);
      }
    }
    run += Clock::now() - begin;
    if (options_.with_products) {
      CRIA_ASSIGN_OR_RETURN(const Clock::duration time, TimeProducts(count * rows, rows, rows));
      products += time;
    }
    CRIA_RETURN_IF_ERROR(CheckInterrupt());
  }
  result.run_ns.push_back(Nanoseconds(run));
  if (options_.with_products) result.products_ns.push_back(Nanoseconds(products));
  return {};
}

Status SpeedBench::Rewind(const SpeedTest& test) {
  Sequences& sequences = decoder_.sequences();
  const SequenceId first = sequences_[0].id();
  const size_t kept = sequences.LongestPrefix(first, test.depth_tokens);
  CRIA_RETURN_IF_ERROR(sequences.Truncate(first, kept));
  CRIA_RETURN_IF_ERROR(decoder_.CarryOutMoves());
  for (const OpenSequence& other : std::span(sequences_).subspan(1)) {
    CRIA_RETURN_IF_ERROR(sequences.Truncate(other.id(), 0));
  }
  // What an earlier test reserved is free for this one.
  for (const OpenSequence& sequence : sequences_) {
    CRIA_RETURN_IF_ERROR(sequences.Reserve(sequence.id(), 0));
  }
  CRIA_RETURN_IF_ERROR(Prefill(kept, test.depth_tokens));
  sequences.AddCheckpoint(first);
  CRIA_RETURN_IF_ERROR(decoder_.CarryOutMoves());
  for (size_t i = 1; i < test.num_sequences; ++i) {
    CRIA_RETURN_IF_ERROR(sequences.Share(first, sequences_[i].id(), test.depth_tokens));
    CRIA_RETURN_IF_ERROR(decoder_.CarryOutMoves());
  }
  return {};
}

size_t SpeedBench::NumUsedPages() const {
  const KvPages& pages = decoder_.sequences().pages();
  size_t used = 0;
  for (uint32_t page = 0; page < pages.num_pages(); ++page) {
    used += pages.num_holders(page) != 0 ? 1 : 0;
  }
  return used;
}

Status SpeedBench::Prefill(size_t begin, size_t end) {
  for (size_t position = begin; position < end;) {
    CRIA_RETURN_IF_ERROR(CheckInterrupt());
    const size_t count = std::min(end - position, decoder_.chunk_tokens());
    const BatchRun run = {.sequence = sequences_[0].id(),
                          .first_position = position,
                          .num_tokens = count,
                          .num_logits = position + count == end ? size_t{1} : 0,
                          .num_candidates = sampler_.NumCandidates()};
    CRIA_RETURN_IF_ERROR(
        decoder_.Forward({std::span(tokens_).subspan(position, count), std::span(&run, 1)}));
    position += count;
  }
  return {};
}

Result<Clock::duration> SpeedBench::TimeProducts(size_t tokens, size_t rows, size_t logit_rows) {
  decoder_.set_profile(nullptr);
  const Clock::time_point begin = Clock::now();
  for (size_t done = 0; done < tokens; done += rows) {
    CRIA_RETURN_IF_ERROR(RunLayerProducts(decoder_, std::min(tokens - done, rows), logit_rows));
    if (logit_rows > 0) CRIA_RETURN_IF_ERROR(RunHeadProduct(decoder_, logit_rows));
  }
  const Clock::duration time = Clock::now() - begin;
  if (options_.with_profile) decoder_.set_profile(&profile_);
  return time;
}

void SpeedBench::MeasureBandwidth(const ThreadPool& pool, SpeedResult& result) {
  result.read_gb_per_s_one_thread.push_back(bandwidth_.Measure(one_thread_));
  result.read_gb_per_s.push_back(pool.num_threads() == 1 ? result.read_gb_per_s_one_thread.back()
                                                         : bandwidth_.Measure(pool));
}

}  // namespace

Status RunSpeedBench(const SpeedOptions& options,
                     const std::function<void(const Engine&, const SpeedResult&)>& on_result) {
  CRIA_RETURN_IF_ERROR(CheckTests(options));
  EngineOptions engine_options = options.engine;
  CRIA_ASSIGN_OR_RETURN(const ModelFile file, ModelFile::Open(options.model_path));
  CRIA_ASSIGN_OR_RETURN(engine_options.context_tokens,
                        ContextTokens(options, file.config().longest_context()));
  engine_options.num_sequences = std::ranges::max(options.sequences);
  const std::vector<SpeedTest> tests = Tests(options);
  CRIA_ASSIGN_OR_RETURN(const ThreadPool one_thread, ThreadPool::Create(1));
  for (const size_t num_threads : options.threads) {
    engine_options.num_threads = num_threads;
    const Clock::time_point begin = Clock::now();
    CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                          LoadEngine(options.model_path, engine_options));
    const double load_ms = MillisecondsSince(begin);
    const InterruptGuard interrupt;
    CRIA_ASSIGN_OR_RETURN(Sampler sampler,
                          Sampler::Create({.temperature = 0.0f}, engine->decoder().vocab_size()));
    CRIA_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, TestTokens(options, *engine));
    const bool has_drafts = engine->memory_plan().options.drafts.has_drafts();
    std::vector<OpenSequence> sequences;
    for (size_t i = 0; !has_drafts && i < engine_options.num_sequences; ++i) {
      CRIA_ASSIGN_OR_RETURN(OpenSequence sequence,
                            OpenSequence::Create(engine->decoder().sequences(), 0));
      sequences.push_back(std::move(sequence));
    }
    SpeedBench bench(*engine, std::move(sequences), options, std::move(tokens), interrupt, sampler,
                     one_thread);
    for (const SpeedTest& test : tests) {
      SpeedResult result = {.test = test, .load_ms = load_ms};
      CRIA_RETURN_IF_ERROR(bench.Run(result));
      on_result(*engine, result);
    }
  }
  return {};
}

}  // namespace cria::cli
