#include "cli/bench/speed_options.h"

#include <algorithm>
#include <limits>
#include <span>

#include "cli/bench/draft_comparison.h"
#include "cli/bench/made_up_prompt.h"
#include "cli/input/text_file.h"
#include "core/format.h"
#include "core/numeric.h"

namespace cria::cli {
namespace {

bool WantsDrafts(const SpeedOptions& options) {
  return options.engine.drafts.has_drafts() || !options.engine.draft_model_path.empty();
}

// The context that the tests with several sequences need: each has pages of its own behind the
// depth.
size_t SharedContextTokens(const SpeedOptions& options, size_t longest_test) {
  const size_t sequences = std::ranges::max(options.sequences);
  if (sequences == 1) return longest_test;
  const size_t generated = std::ranges::max(options.generated_tokens);
  size_t pages = 0;
  for (const size_t depth : options.depths) {
    const size_t shared = depth / kKvPageTokens;
    const size_t own = DivideRoundingUp(depth + generated, kKvPageTokens) - shared;
    pages = std::max(pages, shared + sequences * own);
  }
  return std::max(longest_test, pages * kKvPageTokens);
}

}  // namespace

Status CheckTests(const SpeedOptions& options) {
  if (std::ranges::contains(options.sequences, size_t{0})) {
    return Fail(ErrorCode::kUsage, "-np 0 leaves nothing to measure; ask for 1 or more");
  }
  if (options.repetitions == 0) {
    return Fail(ErrorCode::kUsage, "-r 0 leaves nothing to measure; ask for 1 or more");
  }
  CRIA_RETURN_IF_ERROR(ValidateDraftOptions(options.engine.drafts));
  const bool wants_drafts = WantsDrafts(options);
  if (wants_drafts && (options.with_products || options.with_profile)) {
    return Fail(ErrorCode::kUsage,
                "--products and --profile are about single tokens, and so exclude drafts");
  }
  if (std::ranges::max(options.generated_tokens) > 0) return {};
  if (wants_drafts) {
    return Fail(ErrorCode::kUsage,
                "-n 0 leaves nothing to measure: with drafts, only tests that generate are run");
  }
  if (std::ranges::max(options.prompt_tokens) > 0) return {};
  return Fail(ErrorCode::kUsage, "-p and -n are both 0, which leaves nothing to measure");
}

std::vector<SpeedTest> Tests(const SpeedOptions& options) {
  const bool has_prompts =
      std::ranges::contains(options.sequences, size_t{1}) && !WantsDrafts(options);
  std::vector<SpeedTest> tests;
  for (const size_t depth : options.depths) {
    for (const size_t count : options.prompt_tokens) {
      if (count > 0 && has_prompts) {
        tests.push_back({.prompt_tokens = count, .depth_tokens = depth});
      }
    }
    for (const size_t count : options.generated_tokens) {
      if (count == 0) continue;
      for (const size_t sequences : options.sequences) {
        tests.push_back(
            {.generated_tokens = count, .depth_tokens = depth, .num_sequences = sequences});
      }
    }
  }
  return tests;
}

Result<size_t> ContextTokens(const SpeedOptions& options, size_t longest) {
  const size_t depth = std::ranges::max(options.depths);
  const size_t prompt = WantsDrafts(options) ? 0 : std::ranges::max(options.prompt_tokens);
  const size_t tokens = std::max(prompt, std::ranges::max(options.generated_tokens));
  constexpr size_t kMax = std::numeric_limits<size_t>::max();
  const size_t needed = tokens > kMax - depth ? kMax : depth + tokens;
  const size_t given = options.engine.context_tokens;
  if (given != 0 && given < needed) {
    return Fail(ErrorCode::kUsage,
                Format("{} tokens at depth {} need a context of {}, but -c asks for {}; leave "
                       "it out to get what the tests need",
                       tokens, depth, needed, given));
  }
  if (needed > longest) {
    return Fail(ErrorCode::kUsage,
                Format("{} tokens at depth {} need a context of {}, but the model was made for "
                       "{}; ask for less with -p, -n or -d",
                       tokens, depth, needed, longest));
  }
  if (!WantsDrafts(options)) return std::max(given, SharedContextTokens(options, needed));
  size_t context = std::max(given, needed);
  for (const SpeedTest& test : Tests(options)) {
    context = std::max(context, DraftComparison::ContextTokens(test));
  }
  return context;
}

Result<std::vector<int32_t>> TestTokens(const SpeedOptions& options, const Engine& engine) {
  const Decoder& decoder = engine.decoder();
  std::vector<int32_t> tokens = MakeUpPrompt(decoder.context_tokens(), decoder.vocab_size());
  if (options.text_path.empty()) return tokens;
  CRIA_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.text_path, LongText()));
  CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> read, engine.tokenizer().Encode(text));
  size_t needed = 0;
  for (const SpeedTest& test : Tests(options)) {
    needed = std::max(needed, test.depth_tokens + std::max(test.prompt_tokens, size_t{1}));
  }
  if (read.size() < needed) {
    return Fail(ErrorCode::kUsage,
                Format("{} has {} tokens, but the tests read {}; ask for less with -d or -p",
                       options.text_path, read.size(), needed));
  }
  std::ranges::copy(std::span(read).first(std::min(read.size(), tokens.size())), tokens.begin());
  return tokens;
}

}  // namespace cria::cli
