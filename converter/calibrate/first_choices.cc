#include "converter/calibrate/first_choices.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "converter/calibrate/block.h"
#include "converter/calibrate/layer_steps.h"
#include "converter/calibrate/predictions.h"
#include "converter/calibrate/stored_error.h"
#include "converter/write/hadamard.h"

namespace cria {
namespace {

// The most likely token of each row so far; the first of several that are equally likely.
class Choices {
 public:
  explicit Choices(size_t rows) : tokens_(rows), logits_(rows, kNone) {}

  // `logits` [rows, tokens] are those of the tokens from `first` on.
  void Add(size_t first, const Matrix& logits) {
    for (size_t row = 0; row < tokens_.size(); ++row) {
      const std::span<const float> values = logits.view().row(row);
      const auto likeliest = std::ranges::max_element(values);
      if (!(*likeliest > logits_[row])) continue;
      logits_[row] = *likeliest;
      tokens_[row] = first + static_cast<size_t>(likeliest - values.begin());
    }
  }
  const std::vector<size_t>& tokens() const { return tokens_; }

 private:
  static constexpr float kNone = -std::numeric_limits<float>::infinity();

  std::vector<size_t> tokens_;
  std::vector<float> logits_;
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

Result<FirstChoices> CompareFirstChoices(const ThreadPool& threads, const ModelConfig& config,
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
  Choices exact_choices(exact.rows());
  Choices stored_choices(stored.rows());
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
    exact_choices.Add(first, Multiply(threads, exact, rows));
    CRIA_RETURN_IF_ERROR(TakeStoredRows(threads, head, first, rows.view()));
    stored_choices.Add(first, Multiply(threads, stored, rows));
  }
  FirstChoices result = {.num_tokens = exact.rows()};
  for (size_t row = 0; row < exact.rows(); ++row) {
    result.num_same += size_t{exact_choices.tokens()[row] == stored_choices.tokens()[row]};
  }
  return result;
}

}  // namespace cria
