#include "converter/calibrate/kept_predictions.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "converter/calibrate/block.h"
#include "converter/calibrate/exponential.h"
#include "converter/calibrate/layer_steps.h"
#include "converter/calibrate/predictions.h"
#include "converter/calibrate/stored_error.h"
#include "converter/write/hadamard.h"

namespace cria {
namespace {

// Adds up e^x over numbers x of which only some are known at a time.
class SumOfExps {
 public:
  // Numbers up to `largest` follow. Returns what everything that was added up for
  // numbers before must be multiplied by.
  float Raise(float largest) {
    if (!(largest > largest_)) return 1.0f;
    const float factor = Exponential(largest_ - largest);
    largest_ = largest;
    sum_ *= double{factor};
    return factor;
  }
  // e^(x - the largest number); also adds it.
  float Add(float x) {
    const float power = Exponential(x - largest_);
    sum_ += double{power};
    return power;
  }
  double sum() const { return sum_; }
  double Logarithm() const { return cria::Logarithm(sum_) + largest_; }

 private:
  float largest_ = std::numeric_limits<float>::lowest();
  double sum_ = 0.0;
};

// Compares two predictions whose logits come in parts.
class PredictionPair {
 public:
  // Both have the logits of the same tokens, from `first` on.
  void Add(size_t first, std::span<const float> exact, std::span<const float> stored) {
    const auto likeliest = std::ranges::max_element(exact);
    const auto stored_likeliest = std::ranges::max_element(stored);
    // The first of several that are equally likely counts.
    if (exact_choice_.logit < *likeliest) {
      exact_choice_ = {*likeliest, first + static_cast<size_t>(likeliest - exact.begin())};
    }
    if (stored_choice_.logit < *stored_likeliest) {
      stored_choice_ = {*stored_likeliest,
                        first + static_cast<size_t>(stored_likeliest - stored.begin())};
    }
    weighted_difference_ *= double{exact_sum_.Raise(*likeliest)};
    stored_sum_.Raise(*stored_likeliest);
    for (size_t i = 0; i < exact.size(); ++i) {
      weighted_difference_ += double{exact_sum_.Add(exact[i])} * (double{exact[i]} - stored[i]);
      stored_sum_.Add(stored[i]);
    }
  }

  bool have_same_choice() const { return exact_choice_.token == stored_choice_.token; }
  // The sum of p * (log(p) - log(q)) for the exact probabilities p and the stored ones q.
  double Divergence() const {
    return weighted_difference_ / exact_sum_.sum() - exact_sum_.Logarithm() +
           stored_sum_.Logarithm();
  }

 private:
  struct Choice {
    float logit = -std::numeric_limits<float>::infinity();
    size_t token = 0;
  };

  Choice exact_choice_;
  Choice stored_choice_;
  SumOfExps exact_sum_;
  SumOfExps stored_sum_;
  double weighted_difference_ = 0.0;  // Sum of e^(x - the largest x) * (x - y) of logits x and y.
};

}  // namespace

std::vector<uint32_t> HeldBackTokens(const CalibrationTokens& tokens, size_t max_tokens) {
  std::vector<size_t> all;
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    if (tokens.IsHeldBack(i / tokens.window_tokens)) all.push_back(i);
  }
  const std::vector<size_t> spaced = EvenlySpaced(all, max_tokens);
  return {spaced.begin(), spaced.end()};
}

Result<KeptPredictions> ComparePredictions(const ThreadPool& threads, const ModelConfig& config,
                                           FilePlan& plan, Matrix exact, Matrix stored,
                                           const std::function<Status(double)>& progress) {
  constexpr size_t kTileBytes = size_t{8} << 20;
  CRIA_ASSIGN_OR_RETURN(const std::vector<float> gain,
                        ReadVector(FindTensor(plan, TensorRole::kNorm, kNoLayer)));
  const PlannedTensor& head = HeadOf(plan);
  assert(head.parts.size() == 1 && !head.rotates_outputs);
  const TensorLayout& layout = head.stored.layout;
  for (Matrix* const rows : {&exact, &stored}) {
    if (config.rotated_residual) RotateRows(rows->columns(), rows->values());
    NormalizeRows(threads, std::as_const(*rows).view(), gain, config.rms_norm_eps, rows->view());
  }
  if (layout.scheme != Scheme::kF32) RoundInputs(threads, stored.view());
  std::vector<PredictionPair> pairs(exact.rows());
  const MappedPart& part = head.parts.front();
  const size_t columns = layout.input_channels;
  const size_t tile_rows = std::max<size_t>(1, kTileBytes / (columns * sizeof(float)));
  TensorReader reader;
  for (size_t first = 0; first < layout.output_channels; first += tile_rows) {
    CRIA_RETURN_IF_ERROR(
        progress(static_cast<double>(first) / static_cast<double>(layout.output_channels)));
    Matrix rows(std::min(tile_rows, layout.output_channels - first), columns);
    CRIA_RETURN_IF_ERROR(reader.Read(*part.source, uint64_t{first} * columns, rows.values()));
    ApplyFactors(part, first, columns, rows.values());
    Matrix exact_logits = Multiply(threads, exact, rows);
    CRIA_RETURN_IF_ERROR(TakeStoredRows(threads, head, first, rows.view()));
    Matrix stored_logits = Multiply(threads, stored, rows);
    threads.ParallelFor(pairs.size(), [&](size_t row) {
      const std::span<float> exact_row = exact_logits.view().row(row);
      const std::span<float> stored_row = stored_logits.view().row(row);
      CapLogits(config, exact_row);
      CapLogits(config, stored_row);
      pairs[row].Add(first, exact_row, stored_row);
    });
  }
  KeptPredictions result = {.num_tokens = exact.rows()};
  for (const PredictionPair& pair : pairs) {
    result.num_same += size_t{pair.have_same_choice()};
    result.divergence += pair.Divergence() / static_cast<double>(pairs.size());
  }
  return result;
}

}  // namespace cria
