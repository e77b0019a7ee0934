// How much faster drafts make a model: draft_benchmark MODEL [-t THREADS] [-r PAIRS] [-n TOKENS]
// [-md DRAFT_MODEL] [--costs]. Recorded texts, or their first TOKENS, are forced as the choices of
// the model, whose weights may be random: proposals, verification, truncation and time are real. A
// draft model's choices are forced, too, to be right with a given probability. Prints the median
// over pairs of runs without and with drafts, by turns. With --costs, prints what rows cost and the
// table of gain that follows from it.

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bench/draft_texts.h"
#include "llm/engine.h"
#include "llm/generator.h"
#include "llm/model_drafter.h"
#include "llm/turn.h"

namespace {

using namespace cria;

void Exit(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  std::exit(1);
}

template <typename T>
T Take(Result<T> result) {
  if (!result) Exit(result.error());
  return std::move(*result);
}

void Check(const Status& status) {
  if (!status) Exit(status.error());
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Pieces of up to four letters, each with a space before it, as a tokenizer of words makes them:
// about as many as a byte-pair encoding of English. Equal pieces have equal ids.
std::vector<int32_t> TokensOf(const std::string& text, size_t vocab_size) {
  std::vector<int32_t> tokens;
  std::string piece;
  const auto end_piece = [&] {
    if (piece.empty()) return;
    const size_t hash = std::hash<std::string>()(piece);
    tokens.push_back(static_cast<int32_t>(hash % (vocab_size - 1) + 1));
    piece.clear();
  };
  for (const char letter : text) {
    const bool is_letter = std::isalpha(static_cast<unsigned char>(letter)) != 0;
    if (!is_letter || piece.size() >= 5) end_piece();
    piece += letter;
    if (!is_letter && letter != ' ') end_piece();
  }
  end_piece();
  return tokens;
}

// Runs a model, and makes it choose the tokens of a text with some probability.
class ForcedModel final : public TokenModel {
 public:
  explicit ForcedModel(Decoder& decoder) : decoder_(decoder) {}

  // What is chosen at a position depends on nothing else.
  void Force(std::vector<int32_t> text, double probability) {
    text_ = std::move(text);
    probability_ = probability;
  }

  size_t vocab_size() const override { return decoder_.vocab_size(); }
  size_t hidden_size() const override { return decoder_.hidden_size(); }
  Result<std::span<const float>> LastHiddenState(size_t row) override {
    return decoder_.LastHiddenState(row);
  }
  size_t context_tokens() const override { return decoder_.context_tokens(); }
  size_t cache_tokens() const override { return decoder_.cache_tokens(); }
  size_t chunk_tokens() const override { return decoder_.chunk_tokens(); }
  size_t max_sequences() const override { return decoder_.max_sequences(); }
  size_t max_logit_rows() const override { return decoder_.max_logit_rows(); }
  Sequences& sequences() override { return decoder_.sequences(); }
  Status CarryOutMoves() override { return decoder_.CarryOutMoves(); }

  Status Forward(const Batch& batch) override {
    const BatchRun& run = batch.runs.front();
    first_choice_ = run.first_position + run.num_tokens - run.num_logits + 1;
    return decoder_.Forward(batch);
  }

  Result<std::span<float>> Logits(size_t row) override {
    CRIA_ASSIGN_OR_RETURN(const std::span<float> logits, decoder_.Logits(row));
    const size_t position = std::min(first_choice_ + row, text_.size() - 1);
    // Independent of its neighbours, as consecutive multiples of a constant would not be.
    std::mt19937_64 random(position);
    const bool is_right = std::generate_canonical<double, 53>(random) < probability_;
    const auto right = static_cast<size_t>(text_[position]);
    logits[is_right ? right : (right + 1) % logits.size()] = 1e5f;
    return logits;
  }

 private:
  Decoder& decoder_;
  std::vector<int32_t> text_;
  double probability_ = 1.0;
  size_t first_choice_ = 0;
};

struct Arguments {
  std::string model;
  std::string draft_model;
  size_t threads = 0;
  size_t pairs = 3;
  size_t max_tokens = SIZE_MAX;  // The most tokens of an answer.
  bool costs = false;
};

Arguments Read(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const auto next = [&] { return i + 1 < argc ? argv[++i] : ""; };
    if (argument == "-t") {
      arguments.threads = std::strtoull(next(), nullptr, 10);
    } else if (argument == "-r") {
      arguments.pairs = std::max(1ULL, std::strtoull(next(), nullptr, 10));
    } else if (argument == "-n") {
      arguments.max_tokens = std::max(2ULL, std::strtoull(next(), nullptr, 10));
    } else if (argument == "-md") {
      arguments.draft_model = next();
    } else if (argument == "--costs") {
      arguments.costs = true;
    } else {
      arguments.model = argument;
    }
  }
  return arguments;
}

class Benchmark {
 public:
  Benchmark(Engine& engine, size_t pairs, size_t max_tokens)
      : engine_(engine),
        pairs_(pairs),
        max_tokens_(max_tokens),
        model_(engine.decoder()),
        scheduler_(model_) {
    if (engine.draft_engine() == nullptr) return;
    draft_model_ = std::make_unique<ForcedModel>(engine.draft_engine()->decoder());
    draft_scheduler_ = std::make_unique<Scheduler>(*draft_model_);
  }

  void Compare(const char* text_name, const char* drafts_name, const DraftOptions& options,
               double probability) {
    const bench::DraftText text = bench::DraftTextNamed(text_name);
    const size_t vocab_size = engine_.decoder().vocab_size();
    prompt_ = TokensOf(text.question, vocab_size);
    std::vector<int32_t> whole = prompt_;
    std::vector<int32_t> answer = TokensOf(text.answer, vocab_size);
    answer.resize(std::min(answer.size(), max_tokens_));
    whole.insert(whole.end(), answer.begin(), answer.end());
    if (whole.size() > model_.context_tokens()) {
      std::printf("%-8s does not fit a context of %zu tokens\n", text_name,
                  model_.context_tokens());
      return;
    }
    model_.Force(whole, 1.0);
    if (draft_model_ != nullptr) draft_model_->Force(whole, probability);
    num_tokens_ = answer.size() - 1;
    std::vector<double> ratios;
    double without_rate = 0.0;
    SessionStats stats;
    for (size_t pair = 0; pair < pairs_; ++pair) {
      const double without = Seconds({}, stats);
      const double with = Seconds(options, stats);
      without_rate = static_cast<double>(num_tokens_) / without;
      ratios.push_back(without / with);
    }
    std::printf(
        "%-8s %-18s %5zu tokens %7.2f tok/s  %5.2f times as fast (%.2f to %.2f), told %.2f, "
        "%zu of %zu accepted, %zu forwards\n",
        text_name, drafts_name, num_tokens_, without_rate, Median(ratios), std::ranges::min(ratios),
        std::ranges::max(ratios), stats.draft_gain(), stats.accepted_tokens, stats.drafted_tokens,
        stats.decoding_forwards);
    std::fflush(stdout);
  }

 private:
  // The time of generating the answer, without reading the prompt.
  double Seconds(const DraftOptions& options, SessionStats& stats) {
    std::unique_ptr<Drafting> drafting;
    if (options.has_drafts()) {
      const size_t context = model_.context_tokens();
      drafting = std::make_unique<Drafting>(
          options, context,
          options.has_model ? std::make_unique<ModelDrafter>(*draft_scheduler_, context) : nullptr);
    }
    Session session(scheduler_, std::move(drafting));
    Sampler sampler = Take(Sampler::Create({.temperature = 0.0f}, model_.vocab_size()));
    Check(Turn(session).Prefill(prompt_));
    const auto begin = std::chrono::steady_clock::now();
    Take(Generate(session, {.max_tokens = num_tokens_}, sampler,
                  [](const GeneratedToken&) { return true; }));
    stats = session.stats();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  Engine& engine_;
  const size_t pairs_;
  const size_t max_tokens_;
  ForcedModel model_;
  Scheduler scheduler_;
  std::unique_ptr<ForcedModel> draft_model_;
  std::unique_ptr<Scheduler> draft_scheduler_;
  std::vector<int32_t> prompt_;
  size_t num_tokens_ = 0;
};

// What Forwards of several rows cost behind 256 tokens, and what follows from it.
void PrintCosts(Engine& engine, size_t repetitions) {
  constexpr size_t kDepth = 256;
  constexpr size_t kMaxRows = 16;
  Decoder& decoder = engine.decoder();
  const SequenceId sequence = Take(decoder.sequences().Open());
  Check(decoder.sequences().Reserve(sequence, kDepth + kMaxRows));
  const std::vector<int32_t> tokens(kDepth + kMaxRows, 1);
  for (size_t done = 0; done < kDepth; done += 64) {
    Check(decoder.ForwardSequence(sequence, std::span(tokens).subspan(done, 64), done, 0));
  }
  std::vector<std::vector<double>> seconds(kMaxRows + 1);
  for (size_t i = 0; i <= repetitions; ++i) {
    for (size_t rows = 1; rows <= kMaxRows; ++rows) {
      const auto begin = std::chrono::steady_clock::now();
      Check(decoder.ForwardSequence(sequence, std::span(tokens).first(rows), kDepth, rows));
      Take(decoder.Logits(0));
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
      if (i > 0) seconds[rows].push_back(time.count());
    }
  }
  decoder.sequences().Close(sequence);
  const double one = Median(seconds[1]);
  std::printf("rows      ");
  for (size_t rows = 1; rows <= kMaxRows; ++rows) std::printf(" %5zu", rows);
  std::printf("\nms        ");
  for (size_t rows = 1; rows <= kMaxRows; ++rows)
    std::printf(" %5.1f", Median(seconds[rows]) * 1e3);
  std::printf("\nof one    ");
  for (size_t rows = 1; rows <= kMaxRows; ++rows)
    std::printf(" %5.2f", Median(seconds[rows]) / one);
  std::printf("\ngain by acceptance, of drafts with 1, 2, … tokens that cost nothing to make\n");
  for (const double acceptance : {0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0}) {
    std::printf("%.2f            ", acceptance);
    double expected = 1.0;
    double probability = 1.0;
    for (size_t rows = 2; rows <= kMaxRows; ++rows) {
      probability *= acceptance;
      expected += probability;
      std::printf(" %5.2f", expected * one / Median(seconds[rows]));
    }
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = Read(argc, argv);
  if (arguments.model.empty()) {
    std::fputs(
        "usage: draft_benchmark MODEL [-t N] [-r PAIRS] [-n TOKENS] [-md DRAFT_MODEL] [--costs]\n",
        stderr);
    return 2;
  }
  EngineOptions options = {.num_threads = arguments.threads,
                           .drafts = {.ngram_tokens = 3, .max_tokens = 15},
                           .draft_model_path = arguments.draft_model};
  options.packing.cache_folder = arguments.model + "-packed";
  const auto engine = Take(Engine::Load(arguments.model, options));
  if (arguments.costs) PrintCosts(*engine, arguments.pairs);
  Benchmark benchmark(*engine, arguments.pairs, arguments.max_tokens);
  for (const char* text : {"edit", "extract", "json", "prose"}) {
    benchmark.Compare(text, "n-grams of 3", {.ngram_tokens = 3}, 0.0);
  }
  if (engine->draft_engine() == nullptr) return 0;
  for (const double probability : {0.7, 0.85, 0.0}) {
    const std::string name = "model, right " + std::to_string(probability).substr(0, 4);
    benchmark.Compare("prose", name.c_str(), {.has_model = true}, probability);
  }
  benchmark.Compare("edit", "both, right 0.7", {.ngram_tokens = 3, .has_model = true}, 0.7);
  return 0;
}
