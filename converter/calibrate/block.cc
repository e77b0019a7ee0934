#include "converter/calibrate/block.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "converter/calibrate/layer_steps.h"
#include "converter/calibrate/linear_algebra.h"
#include "converter/write/hadamard.h"
#include "core/numeric.h"
#include "model/rope_table.h"

namespace cria {

Status CheckCalibrates(const ModelConfig& config) {
  if (config.num_experts != 0) {
    return Fail(ErrorCode::kUnsupported,
                "mixtures of experts cannot be calibrated; convert the model without a calibration "
                "text");
  }
  if (LinearAlgebraRuns()) return {};
  return Fail(ErrorCode::kUnsupported, "calibrating needs a processor with AVX");
}

Result<Matrix> ReadMatrix(const PlannedTensor& tensor) {
  const TensorSpec& spec = tensor.stored.spec;
  Matrix matrix(spec.output_channels, spec.input_channels);
  std::span<float> rest = matrix.values();
  TensorReader reader;
  for (const MappedPart& part : tensor.parts) {
    const auto values = rest.first(part.source->num_elements());
    CRIA_RETURN_IF_ERROR(reader.Read(*part.source, 0, values));
    ApplyFactors(part, 0, spec.is_vector() ? values.size() : spec.input_channels, values);
    rest = rest.subspan(values.size());
  }
  if (tensor.rotates_outputs) RotateColumns(spec.input_channels, matrix.values());
  return matrix;
}

Result<std::vector<float>> ReadVector(const PlannedTensor* tensor) {
  if (tensor == nullptr) return std::vector<float>();
  CRIA_ASSIGN_OR_RETURN(const Matrix vector, ReadMatrix(*tensor));
  return std::vector<float>(vector.values().begin(), vector.values().end());
}

Matrix Multiply(const ThreadPool& threads, const Matrix& x, const Matrix& weights) {
  constexpr size_t kTile = 256;
  Matrix product(x.rows(), weights.rows());
  threads.ParallelFor(DivideRoundingUp(weights.rows(), kTile), [&](size_t index) {
    const size_t first = index * kTile;
    const size_t count = std::min(kTile, weights.rows() - first);
    AddProductWithTransposed(x.view(), weights.view().Rows(first, count),
                             product.view().Columns(first, count));
  });
  return product;
}

Result<std::array<Block, 2>> MakeBlocks(const ModelConfig& config, const ThreadPool& threads,
                                        size_t window_tokens, size_t layer, FilePlan& plan) {
  const auto find = [&](TensorRole role) {
    return FindTensor(plan, role, static_cast<int>(layer));
  };
  const LayerKind& kind = config.layer_kind(layer);
  AttentionWeights norms;
  CRIA_ASSIGN_OR_RETURN(norms.q_norm, ReadVector(find(TensorRole::kQNorm)));
  CRIA_ASSIGN_OR_RETURN(norms.k_norm, ReadVector(find(TensorRole::kKNorm)));
  const auto attention = std::make_shared<const AttentionWeights>(std::move(norms));
  const auto rope = std::make_shared<const RopeTable>(MakeRopeTable(config, kind, window_tokens));
  return std::array<Block, 2>{
      {{.norm = find(TensorRole::kInputLayernorm),
        .output_norm = find(TensorRole::kAttentionOutputNorm),
        .first = find(TensorRole::kQkvProj),
        .first_bias = find(TensorRole::kQkvBias),
        .second = find(TensorRole::kOProj),
        .second_bias = find(TensorRole::kOBias),
        .inner_channels = config.query_channels(),
        .scaled_part = 2,
        .head_dim = config.head_dim,
        .heads_per_channel_head = config.num_attention_heads / config.num_key_value_heads,
        .inner =
            [&config, &threads, &kind, attention, rope, window_tokens](MatrixView qkv,
                                                                       MatrixView output) {
              Attend(threads, config, kind, *attention, *rope, window_tokens, qkv, output);
            }},
       {.norm = find(TensorRole::kPostAttentionLayernorm),
        .output_norm = find(TensorRole::kMlpOutputNorm),
        .first = find(TensorRole::kGateUpProj),
        .first_bias = find(TensorRole::kGateUpBias),
        .second = find(TensorRole::kDownProj),
        .second_bias = find(TensorRole::kDownBias),
        .inner_channels = config.intermediate_size,
        .scaled_part = 1,
        .head_dim = 1,
        .heads_per_channel_head = 1,
        .inner = [&config, &threads](MatrixView gate_up, MatrixView output) {
          Activate(threads, config.hidden_act, gate_up, output);
        }}}};
}

}  // namespace cria
