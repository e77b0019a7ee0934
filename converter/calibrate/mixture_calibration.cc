#include "converter/calibrate/mixture_calibration.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "converter/calibrate/block_calibration.h"
#include "converter/calibrate/mixture_steps.h"

namespace cria {
namespace {

// With fewer rows for its inputs, the moments say nothing about most directions, and with fewer
// rows that are held back, chance decides whether codes are better there. From here on, calibrating
// lowered the divergence of small mixtures, because matrices that lose by it are rounded anyway.
constexpr size_t kMaxInputsPerRow = 4;
constexpr size_t kMinHeldBackRows = 8;

class MixtureCalibration {
 public:
  MixtureCalibration(CalibrationRun& run, Mixture& mixture)
      : run_(run),
        mixture_(mixture),
        exact_{run.exact, run.exact_sum, std::vector<WeightedRows>(mixture.num_blocks())},
        stored_{run.stored, run.stored_sum, std::vector<WeightedRows>(mixture.num_blocks())} {}

  Status Run() {
    CRIA_ASSIGN_OR_RETURN(const MixtureSteps steps,
                          MixtureSteps::Read(mixture_, run_.config, run_.threads));
    for (Pass* const pass : {&exact_, &stored_}) CRIA_RETURN_IF_ERROR(Begin(steps, *pass));
    for (size_t i = 0; i < mixture_.experts.size(); ++i) CRIA_RETURN_IF_ERROR(RunExpert(i));
    if (mixture_.shared) CRIA_RETURN_IF_ERROR(RunShared());
    for (Pass* const pass : {&exact_, &stored_}) CRIA_RETURN_IF_ERROR(Finish(steps, *pass));
    mixture_.Join();
    return {};
  }

 private:
  // One of the two models.
  struct Pass {
    ActivationFile& hidden;
    ActivationFile& sum;
    std::vector<WeightedRows> routes;  // One for each of the mixture's blocks.
  };

  // Routes all rows, and begins their sums with zeros.
  Status Begin(const MixtureSteps& steps, Pass& pass) {
    for (const RowBatch& batch : run_.all_rows) {
      CRIA_ASSIGN_OR_RETURN(Matrix hidden,
                            pass.hidden.ReadRows(batch.rows, run_.config.hidden_size));
      steps.Route(steps.Inputs(std::move(hidden)), batch.first, pass.routes);
      CRIA_RETURN_IF_ERROR(
          pass.sum.WriteRows(batch.rows, Matrix(batch.rows.size(), run_.config.hidden_size)));
    }
    return {};
  }

  Status RunExpert(size_t index) {
    std::vector<uint32_t> rows;
    std::ranges::set_union(exact_.routes[index].rows, stored_.routes[index].rows,
                           std::back_inserter(rows));
    const std::vector<RowBatch> batches = BatchSomeRows(run_.tokens, rows);
    const Block& block = mixture_.experts[index];
    const size_t inputs = std::max<size_t>(run_.config.hidden_size, block.inner_channels);
    const bool is_reached = HasEnoughRows(NumRows(batches, /*is_held_back=*/false),
                                          NumRows(batches, /*is_held_back=*/true), inputs);
    ++run_.so_far.num_experts;
    run_.so_far.num_rounded_experts += size_t{!is_reached};
    return RunBlock(index, batches, is_reached ? CodeChoice::kCalibrated : CodeChoice::kRounded);
  }

  Status RunShared() {
    return RunBlock(mixture_.experts.size(), run_.all_rows, CodeChoice::kCalibrated);
  }

  Status RunBlock(size_t index, std::span<const RowBatch> batches, CodeChoice choice) {
    const Block& block = mixture_.block(index);
    CRIA_ASSIGN_OR_RETURN(const BlockSteps steps,
                          BlockSteps::Read(block, run_.config, run_.threads));
    const std::vector<float> exact_weights = WeightsOfTokens(exact_.routes[index]);
    const std::vector<float> stored_weights = WeightsOfTokens(stored_.routes[index]);
    const auto add_to = [](ActivationFile& sum, const std::vector<float>& weights) -> TakeProducts {
      return [&sum, &weights](const RowBatch& batch, const Matrix& products) {
        return AddWeighted(batch, weights, products, sum);
      };
    };
    return CalibrateBlock(run_, block, steps, batches, choice,
                          {.exact = add_to(exact_.sum, exact_weights),
                           .stored = add_to(stored_.sum, stored_weights)});
  }

  // One for each token; 0 where the block is not chosen.
  std::vector<float> WeightsOfTokens(const WeightedRows& route) const {
    std::vector<float> weights(run_.tokens.ids.size());
    for (size_t i = 0; i < route.rows.size(); ++i) weights[route.rows[i]] = route.weights[i];
    return weights;
  }

  static Status AddWeighted(const RowBatch& batch, std::span<const float> weights,
                            const Matrix& products, ActivationFile& sum) {
    CRIA_ASSIGN_OR_RETURN(Matrix rows, sum.ReadRows(batch.rows, products.columns()));
    for (size_t i = 0; i < batch.rows.size(); ++i) {
      const float weight = weights[batch.rows[i]];
      for (size_t j = 0; j < rows.columns(); ++j) rows(i, j) += weight * products(i, j);
    }
    return sum.WriteRows(batch.rows, rows);
  }

  Status Finish(const MixtureSteps& steps, Pass& pass) {
    for (const RowBatch& batch : run_.all_rows) {
      CRIA_ASSIGN_OR_RETURN(Matrix sum, pass.sum.ReadRows(batch.rows, run_.config.hidden_size));
      CRIA_ASSIGN_OR_RETURN(Matrix hidden,
                            pass.hidden.ReadRows(batch.rows, run_.config.hidden_size));
      steps.AddOutputs(std::move(sum), hidden);
      CRIA_RETURN_IF_ERROR(pass.hidden.WriteRows(batch.rows, hidden));
    }
    return {};
  }

  CalibrationRun& run_;
  Mixture& mixture_;
  Pass exact_;
  Pass stored_;
};

}  // namespace

bool HasEnoughRows(size_t training, size_t held_back, size_t inputs) {
  return kMaxInputsPerRow * training >= inputs && held_back >= kMinHeldBackRows;
}

Status CalibrateMixture(CalibrationRun& run, Mixture& mixture) {
  return MixtureCalibration(run, mixture).Run();
}

}  // namespace cria
