#include "cli/convert/cache_check.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cli/convert/converter_engine.h"
#include "cli/remedy.h"
#include "cli/terminal/printable.h"
#include "converter/calibrate/shipped_text.h"
#include "core/format.h"
#include "decode/open_sequence.h"
#include "llm/engine.h"
#include "llm/measure/forward_rows.h"
#include "llm/measure/logit_comparison.h"

namespace cria::cli {
namespace {

// The second half of so many tokens is measured: enough for a mean whose standard error is a tenth
// of kMaxInt8Divergence. The logits of 128 positions of a vocabulary of 152,000 take 78 MB.
constexpr size_t kTokens = 256;
constexpr size_t kLeastTokens = 64;
constexpr size_t kTextBytes = 8192;

using VisitPosition = std::function<void(std::span<const float> logits)>;

// Calls `visit` with the logits behind each token of the second half; never if the text has too few
// tokens.
Status VisitLogitsWith(KvType type, const platform::File& model, size_t num_threads,
                       const VisitPosition& visit) {
  CRIA_ASSIGN_OR_RETURN(platform::File file, model.Duplicate());
  CRIA_ASSIGN_OR_RETURN(
      const std::unique_ptr<Engine> engine,
      LoadInConverter(
          std::move(file),
          {.num_threads = num_threads, .kv_type = type, .max_logit_bytes = kMeasuringLogitBytes}));
  CRIA_ASSIGN_OR_RETURN(
      const std::vector<int32_t> ids,
      engine->tokenizer().Encode(ShippedText().substr(0, kTextBytes), {.parse_special = false}));
  Decoder& decoder = engine->decoder();
  const size_t length = std::min({ids.size(), decoder.context_tokens(), kTokens});
  if (length < kLeastTokens) return {};
  CRIA_ASSIGN_OR_RETURN(const OpenSequence sequence,
                        OpenSequence::Create(decoder.sequences(), length));
  const ModelSequence sequences[] = {{&decoder, sequence.id()}};
  return ForwardRows(sequences, std::span(ids).first(length), 0, length / 2,
                     [&](size_t, std::span<const std::span<const float>> logits) -> Status {
                       visit(logits[0]);
                       return {};
                     });
}

Result<CacheCheck> Measure(const platform::File& model, size_t num_threads) {
  std::vector<std::vector<float>> exact;
  exact.reserve(kTokens / 2);
  CRIA_RETURN_IF_ERROR(VisitLogitsWith(
      KvType::kF32, model, num_threads,
      [&](std::span<const float> logits) { exact.emplace_back(logits.begin(), logits.end()); }));
  CacheCheck check = {.num_positions = exact.size()};
  const auto divergence_of = [&](KvType type) -> Result<double> {
    LogitComparison comparison;
    CRIA_RETURN_IF_ERROR(
        VisitLogitsWith(type, model, num_threads, [&](std::span<const float> logits) {
          AddPosition(exact[comparison.num_positions], logits, comparison);
        }));
    return comparison.mean_divergence();
  };
  if (check.num_positions == 0) return check;
  CRIA_ASSIGN_OR_RETURN(check.int8_divergence, divergence_of(KvType::kInt8));
  // Usually, this is known to be little already.
  if (!check.prefers_f16()) return check;
  CRIA_ASSIGN_OR_RETURN(check.f16_divergence, divergence_of(KvType::kF16));
  return check;
}

}  // namespace

CacheCheck CheckCache(const platform::File& model, size_t num_threads) {
  Result<CacheCheck> check = Measure(model, num_threads);
  return check ? *std::move(check) : CacheCheck{.obstacle = check.error()};
}

std::string CheckText(const CacheCheck& check) {
  if (check.obstacle) {
    return "whether the KV cache can be in int8 was not measured: " +
           Printable(Sentence(*check.obstacle));
  }
  if (!check.prefers_f16()) return {};
  return Format(
      "the KV cache of this model is in f16 unless --kv says otherwise: in int8, predictions would "
      "change by {:.2g} nats of KL divergence, and by {:.2g} in f16, at {} positions",
      check.int8_divergence, check.f16_divergence, check.num_positions);
}

}  // namespace cria::cli
