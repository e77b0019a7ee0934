#include "converter/calibrate/sensitivity.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "converter/calibrate/block.h"
#include "converter/calibrate/block_steps.h"
#include "converter/calibrate/expert_parts.h"
#include "converter/calibrate/layer_blocks.h"
#include "converter/calibrate/mixture_steps.h"
#include "converter/calibrate/predictions.h"
#include "converter/calibrate/stored_error.h"
#include "converter/write/hadamard.h"
#include "core/numeric.h"

namespace cria {
namespace {

// The text is as long as this number of multiplications allows, between these numbers of tokens:
// each matrix needs a run of the layers behind it.
constexpr double kMultiplications = 3e12;
constexpr size_t kMinTokens = 1024;
constexpr size_t kMaxTokens = 4096;
// Windows are run together as long as the changed activations of all matrices take these bytes.
constexpr size_t kMaxActivationBytes = size_t{512} << 20;
// Inputs with which products are compared.
constexpr size_t kComparedInputs = 512;
// How much more the relative error of a table counts than that of a matrix of a layer, if nothing
// is measured. It is an estimate: tables of small models lost up to 12 times as much in trials.
constexpr double kTableWeight = 10.0;

double SumOfSquares(const Matrix& matrix) {
  double sum = 0.0;
  for (const float value : matrix.values()) sum += double{value} * value;
  return sum;
}

Matrix FirstRows(const Matrix& matrix, size_t count) {
  Matrix rows(std::min(count, matrix.rows()), matrix.columns());
  std::ranges::copy(matrix.values().first(rows.values().size()), rows.values().begin());
  return rows;
}

// Rows of a table, evenly spaced: a few thousand tokens say as much as all.
Result<Matrix> SomeRows(const PlannedTensor& table) {
  constexpr size_t kMostRows = 4096;
  const TensorSpec& spec = table.stored.spec;
  const MappedPart& part = table.parts.front();
  Matrix rows(std::min(kMostRows, spec.output_channels), spec.input_channels);
  TensorReader reader;
  for (size_t i = 0; i < rows.rows(); ++i) {
    const size_t row = i * spec.output_channels / rows.rows();
    const std::span<float> values = rows.view().row(i);
    CRIA_RETURN_IF_ERROR(reader.Read(*part.source, uint64_t{row} * values.size(), values));
    ApplyFactors(part, row, values.size(), values);
  }
  return rows;
}

class Measurement {
 public:
  Measurement(const CalibrationTokens& tokens, const ModelConfig& config, const ThreadPool& threads,
              const ProgressCallback& progress, FilePlan& plan,
              std::vector<MatrixOptions>& matrices, size_t measured_option)
      : tokens_(tokens),
        config_(config),
        threads_(threads),
        progress_(progress),
        plan_(plan),
        matrices_(matrices),
        measured_option_(measured_option),
        divergences_(matrices.size()) {
    // The table comes first, so that its changed rows are run before those of other matrices.
    const auto role_of = [&](const MatrixOptions& matrix) {
      return plan.tensors[matrix.tensor].stored.spec.role;
    };
    has_table_ = role_of(matrices.front()) == TensorRole::kEmbedTokens;
    const bool has_head = role_of(matrices.back()) == TensorRole::kLmHead;
    if (has_head) head_ = matrices.size() - 1;
    if (has_table_ && !has_head) head_ = 0;
  }

  Status Run() {
    const std::vector<size_t> windows = Windows();
    // A mixture sums up what its experts give in as much memory again.
    const size_t copies = config_.num_experts == 0 ? 1 : 2;
    const size_t row_bytes = copies * matrices_.size() * config_.hidden_size * sizeof(float);
    const size_t together =
        std::max<size_t>(1, kMaxActivationBytes / (row_bytes * tokens_.window_tokens));
    num_batches_ = DivideRoundingUp(windows.size(), together);
    for (; batch_ < num_batches_; ++batch_) {
      const auto rest = std::span(windows).subspan(batch_ * together);
      CRIA_RETURN_IF_ERROR(RunWindows(rest.first(std::min(rest.size(), together))));
    }
    for (size_t i = 0; i < matrices_.size(); ++i) {
      std::vector<SchemeOption>& options = matrices_[i].options;
      const double measured = divergences_[i] / static_cast<double>(num_rows_);
      const double reference = options[measured_option_].cost;
      for (SchemeOption& option : options) {
        option.cost *= reference > 0.0 ? measured / reference : 0.0;
      }
    }
    return {};
  }

 private:
  // Evenly spaced.
  std::vector<size_t> Windows() const {
    double weights = 0.0;
    for (const MatrixOptions& matrix : matrices_) {
      const TensorSpec& spec = plan_.tensors[matrix.tensor].stored.spec;
      if (spec.is_of_own_layer()) weights += WeightsPerToken(config_, spec);
    }
    std::vector<size_t> all(tokens_.num_windows());
    std::ranges::iota(all, size_t{0});
    return EvenlySpaced(all, SensitivityTokens(weights, matrices_.size()) / tokens_.window_tokens);
  }

  Status RunWindows(std::span<const size_t> windows) {
    CRIA_ASSIGN_OR_RETURN(Matrix exact, EmbedWindows(tokens_, windows, config_, plan_));
    std::vector<Matrix> changed;  // The hidden rows, for each matrix that is stored in int4.
    if (has_table_) {
      CRIA_ASSIGN_OR_RETURN(changed.emplace_back(), EmbedChanged(windows, exact));
    }
    for (size_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      CRIA_ASSIGN_OR_RETURN(
          const LayerBlocks blocks,
          MakeLayerBlocks(config_, threads_, tokens_.window_tokens, layer, plan_));
      for (const Block& block : blocks.blocks) {
        CRIA_RETURN_IF_ERROR(RunBlock(block, exact, changed));
      }
      if (!blocks.mixture) continue;
      CRIA_RETURN_IF_ERROR(RunMixture(*blocks.mixture, exact, changed));
    }
    if (config_.rotated_residual) {
      RotateRows(exact.columns(), exact.values());
      for (Matrix& hidden : changed) RotateRows(hidden.columns(), hidden.values());
    }
    std::optional<HeadChange> head_change;
    if (head_) {
      if (*head_ == changed.size()) changed.push_back(exact);
      head_change = {*head_, matrices_[*head_].options[measured_option_].layout};
      CRIA_RETURN_IF_ERROR(CompareHeads(exact));
    }
    CRIA_ASSIGN_OR_RETURN(const std::vector<double> divergences,
                          Divergences(threads_, config_, plan_, exact, changed, head_change));
    for (size_t i = 0; i < changed.size(); ++i) divergences_[i] += divergences[i];
    num_rows_ += exact.rows();
    return {};
  }

  // The rows of the windows' tokens in a table that is stored in int4. Adds the squared errors of
  // all options, unless the table is the head, too, whose errors matter more.
  Result<Matrix> EmbedChanged(std::span<const size_t> windows, const Matrix& exact) {
    std::vector<SchemeOption>& options = matrices_.front().options;
    const auto embed = [&](const SchemeOption& option) {
      return EmbedWindows(tokens_, windows, config_, plan_, &option.layout);
    };
    if (batch_ == 0 && head_ != 0) {
      for (SchemeOption& option : options) {
        CRIA_ASSIGN_OR_RETURN(Matrix error, embed(option));
        for (size_t i = 0; i < error.values().size(); ++i) error.values()[i] -= exact.values()[i];
        option.cost += SumOfSquares(error);
      }
    }
    return embed(options[measured_option_]);
  }

  // Adds the squared errors of the head's products with rows behind the last layer.
  Status CompareHeads(const Matrix& exact) {
    if (batch_ > 0) return {};
    const PlannedTensor& head = HeadOf(plan_);
    CRIA_ASSIGN_OR_RETURN(const Matrix weights, SomeRows(head));
    CRIA_ASSIGN_OR_RETURN(
        const Matrix inputs,
        HeadInputs(threads_, config_, plan_,
                   exact.view().Rows(0, std::min(kComparedInputs, exact.rows()))));
    for (SchemeOption& option : matrices_[*head_].options) {
      CRIA_ASSIGN_OR_RETURN(const Matrix error,
                            StoredError(threads_, weights, head, option.layout));
      option.cost += SumOfSquares(Multiply(threads_, inputs, error));
    }
    return {};
  }

  // The products of a block's second matrix: with the weights as they are, and if one of the two
  // is changed.
  struct BlockProducts {
    Matrix exact;
    Matrix of_first;
    Matrix of_second;
  };

  // Returns products with these inputs of the first matrix, which is number `matrix` of all.
  Result<BlockProducts> ProductsOf(const Block& block, const BlockSteps& steps, size_t matrix,
                                   const Matrix& first, const Matrix& second,
                                   const Matrix& inputs) {
    Matrix products = Multiply(threads_, inputs, first);
    CRIA_ASSIGN_OR_RETURN(const Matrix first_error,
                          CompareOptions(matrix, *block.first, first, inputs));
    Matrix changed_products = products;
    Accumulate(inputs, first_error, changed_products);
    const Matrix inner = steps.Inner(std::move(products), inputs);
    CRIA_ASSIGN_OR_RETURN(const Matrix second_error,
                          CompareOptions(matrix + 1, *block.second, second, inner));
    BlockProducts result;
    const Matrix changed_inner = steps.Inner(std::move(changed_products), inputs);
    result.of_first = Multiply(threads_, changed_inner, second);
    result.exact = Multiply(threads_, inner, second);
    result.of_second = result.exact;
    Accumulate(inner, second_error, result.of_second);
    return result;
  }

  // Runs the block on all hidden rows, and adds those where one of its matrices is changed.
  Status RunBlock(const Block& block, Matrix& exact, std::vector<Matrix>& changed) {
    CRIA_ASSIGN_OR_RETURN(const BlockSteps steps, BlockSteps::Read(block, config_, threads_));
    CRIA_ASSIGN_OR_RETURN(const Matrix first, ReadMatrix(*block.first));
    CRIA_ASSIGN_OR_RETURN(const Matrix second, ReadMatrix(*block.second));
    for (Matrix& hidden : changed) steps.Run(first, second, /*rounds=*/false, hidden);
    CRIA_ASSIGN_OR_RETURN(BlockProducts products, ProductsOf(block, steps, changed.size(), first,
                                                             second, steps.Inputs(exact)));
    for (Matrix* const each : {&products.of_first, &products.of_second}) {
      Matrix hidden = exact;
      steps.AddOutputs(std::move(*each), hidden);
      changed.push_back(std::move(hidden));
    }
    steps.AddOutputs(std::move(products.exact), exact);
    return {};
  }

  // Measures a mixture, whose matrices are those of all experts together, and those of the
  // shared one.
  Status RunMixture(const Mixture& mixture, Matrix& exact, std::vector<Matrix>& changed) {
    CRIA_ASSIGN_OR_RETURN(const MixtureSteps steps, MixtureSteps::Read(mixture, config_, threads_));
    std::vector<MixturePass> passes;  // They refer to `changed`, which must not move meanwhile.
    passes.reserve(changed.size());
    for (const Matrix& hidden : changed) passes.emplace_back(steps, hidden);
    // What follows from the exact rows: as they are, and with each of the mixture's matrices
    // changed.
    const size_t num_matrices = mixture.shared ? 4 : 2;
    MixturePass exact_pass(steps, exact);
    std::vector<MixturePass> new_passes(num_matrices, exact_pass);
    for (size_t i = 0; i < mixture.num_blocks(); ++i) {
      const Block& block = mixture.block(i);
      CRIA_ASSIGN_OR_RETURN(const BlockSteps expert, BlockSteps::Read(block, config_, threads_));
      CRIA_ASSIGN_OR_RETURN(const Matrix first, ReadMatrix(*block.first));
      CRIA_ASSIGN_OR_RETURN(const Matrix second, ReadMatrix(*block.second));
      for (MixturePass& pass : passes) {
        pass.Add(i, expert.Products(first, second, /*rounds=*/false, pass.InputsOf(i)));
      }
      const size_t matrix = i < mixture.experts.size() ? 0 : 2;
      CRIA_ASSIGN_OR_RETURN(const BlockProducts products,
                            ProductsOf(block, expert, changed.size() + matrix, first, second,
                                       exact_pass.InputsOf(i)));
      exact_pass.Add(i, products.exact);
      for (size_t j = 0; j < num_matrices; ++j) {
        new_passes[j].Add(i, j == matrix       ? products.of_first
                             : j == matrix + 1 ? products.of_second
                                               : products.exact);
      }
    }
    for (size_t i = 0; i < passes.size(); ++i) steps.AddOutputs(passes[i].TakeSum(), changed[i]);
    for (MixturePass& pass : new_passes) {
      Matrix hidden = exact;
      steps.AddOutputs(pass.TakeSum(), hidden);
      changed.push_back(std::move(hidden));
    }
    steps.AddOutputs(exact_pass.TakeSum(), exact);
    return {};
  }

  // out += x * transposed weights.
  void Accumulate(const Matrix& x, const Matrix& weights, Matrix& out) const {
    const Matrix products = Multiply(threads_, x, weights);
    for (size_t i = 0; i < out.values().size(); ++i) out.values()[i] += products.values()[i];
  }

  // Adds the squared errors of products with these inputs to the costs of the options of a matrix,
  // once. Returns the rounding error of the option that is measured. `tensor` is the matrix's, or
  // one expert's.
  Result<Matrix> CompareOptions(size_t matrix, const PlannedTensor& tensor, const Matrix& weights,
                                const Matrix& inputs) {
    std::vector<SchemeOption>& options = matrices_[matrix].options;
    const std::string name = tensor.stored.spec.Name();
    const uint64_t done = batch_ * matrices_.size() + matrix;
    if (progress_ != nullptr &&
        !progress_({"measuring " + name, done, num_batches_ * matrices_.size()})) {
      return Fail(ErrorCode::kCancelled, "cancelled; nothing was written");
    }
    const Matrix compared = FirstRows(inputs, kComparedInputs);
    Matrix measured;
    for (size_t i = 0; i < options.size(); ++i) {
      if (batch_ > 0 && i != measured_option_) continue;
      CRIA_ASSIGN_OR_RETURN(Matrix error,
                            StoredError(threads_, weights, tensor, options[i].layout.Part()));
      if (batch_ == 0) options[i].cost += SumOfSquares(Multiply(threads_, compared, error));
      if (i == measured_option_) measured = std::move(error);
    }
    return measured;
  }

  const CalibrationTokens& tokens_;
  const ModelConfig& config_;
  const ThreadPool& threads_;
  const ProgressCallback& progress_;
  FilePlan& plan_;
  std::vector<MatrixOptions>& matrices_;
  size_t measured_option_;
  bool has_table_ = false;           // Whether the first matrix is the embedding table.
  std::optional<size_t> head_ = {};  // The matrix that is the head, which may be the table.
  std::vector<double> divergences_;  // One for each matrix, summed over the rows.
  size_t num_rows_ = 0;
  size_t batch_ = 0;
  size_t num_batches_ = 0;
};

}  // namespace

size_t SensitivityTokens(double weights_per_token, size_t num_matrices) {
  // On average, half of the layers are behind a matrix.
  const double affordable =
      kMultiplications / (0.5 * weights_per_token * static_cast<double>(num_matrices));
  return static_cast<size_t>(std::clamp(affordable, double{kMinTokens}, double{kMaxTokens}));
}

Status MeasureSensitivity(const CalibrationTokens& tokens, const ModelConfig& config,
                          const ThreadPool& threads, const ProgressCallback& progress,
                          FilePlan& plan, std::vector<MatrixOptions>& matrices) {
  CRIA_RETURN_IF_ERROR(CheckCalibrates(config));
  constexpr size_t kMeasuredOption = 1;
  static_assert(kOptionSchemes[kMeasuredOption] == Scheme::kW4G64);
  return Measurement(tokens, config, threads, progress, plan, matrices, kMeasuredOption).Run();
}

Result<std::vector<MatrixError>> MeasureErrors(const CalibrationTokens& tokens,
                                               const ModelConfig& config, const ThreadPool& threads,
                                               const ProgressCallback& progress, FilePlan& plan) {
  CRIA_RETURN_IF_ERROR(CheckCalibrates(config));
  std::vector<MatrixOptions> matrices = AllSchemeOptions(plan);
  for (MatrixOptions& matrix : matrices) {
    matrix.options = {{.layout = plan.tensors[matrix.tensor].stored.layout}};
  }
  CRIA_RETURN_IF_ERROR(Measurement(tokens, config, threads, progress, plan, matrices, 0).Run());
  std::vector<MatrixError> errors;
  errors.reserve(matrices.size());
  for (const MatrixOptions& matrix : matrices) {
    errors.push_back(
        {.spec = plan.tensors[matrix.tensor].stored.spec, .divergence = matrix.options[0].cost});
  }
  return errors;
}

Status EstimateSensitivity(const ThreadPool& threads, const ProgressCallback& progress,
                           const FilePlan& plan, std::vector<MatrixOptions>& matrices) {
  for (size_t i = 0; i < matrices.size(); ++i) {
    const PlannedTensor& tensor = plan.tensors[matrices[i].tensor];
    if (progress != nullptr &&
        !progress({"measuring " + tensor.stored.spec.Name(), i, matrices.size()})) {
      return Fail(ErrorCode::kCancelled, "cancelled; nothing was written");
    }
    double squares = 0.0;
    const bool is_table = tensor.stored.spec.layer == kNoLayer;
    for (const PlannedTensor& part : SplitExperts(tensor)) {
      CRIA_ASSIGN_OR_RETURN(const Matrix weights, is_table ? SomeRows(part) : ReadMatrix(part));
      squares += SumOfSquares(weights);
      for (SchemeOption& option : matrices[i].options) {
        CRIA_ASSIGN_OR_RETURN(const Matrix error,
                              StoredError(threads, weights, part, option.layout.Part()));
        option.cost += SumOfSquares(error);
      }
    }
    for (SchemeOption& option : matrices[i].options) {
      option.cost = squares > 0.0 ? option.cost / squares : 0.0;
      if (is_table) option.cost *= kTableWeight;
    }
  }
  return {};
}

}  // namespace cria
