#include "converter/calibrate/layer_blocks.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "converter/calibrate/expert_parts.h"
#include "converter/calibrate/layer_steps.h"
#include "converter/calibrate/linear_attention_steps.h"
#include "converter/calibrate/mamba_steps.h"
#include "model/rope_table.h"

namespace cria {
namespace {

class BlockMaker {
 public:
  BlockMaker(const ModelConfig& config, const ThreadPool& threads, size_t window_tokens,
             size_t layer, FilePlan& plan)
      : config_(config),
        threads_(threads),
        window_tokens_(window_tokens),
        layer_(layer),
        plan_(plan) {}

  Result<Block> Attention() const {
    AttentionWeights norms;
    CRIA_ASSIGN_OR_RETURN(norms.q_norm, ReadVector(Find(TensorRole::kQNorm)));
    CRIA_ASSIGN_OR_RETURN(norms.k_norm, ReadVector(Find(TensorRole::kKNorm)));
    CRIA_ASSIGN_OR_RETURN(norms.sinks, ReadVector(Find(TensorRole::kAttnSinks)));
    const auto attention = std::make_shared<const AttentionWeights>(std::move(norms));
    const LayerKind& kind = config_.layer_kind(layer_);
    const auto rope =
        std::make_shared<const RopeTable>(MakeRopeTable(config_, kind, window_tokens_));
    return Block{.norm = Find(TensorRole::kInputLayernorm),
                 .output_norm = Find(TensorRole::kAttentionOutputNorm),
                 .first = Find(TensorRole::kQkvProj),
                 .first_bias = Find(TensorRole::kQkvBias),
                 .second = Find(TensorRole::kOProj),
                 .second_bias = Find(TensorRole::kOBias),
                 .inner_channels = config_.query_channels(kind),
                 .inner =
                     [&config = config_, &threads = threads_, &kind, attention, rope,
                      window_tokens = window_tokens_](MatrixView qkv, ConstMatrixView gates,
                                                      MatrixView output) {
                       Attend(threads, config, kind, *attention, *rope, window_tokens, qkv, output);
                       MultiplyByGates(threads, gates, output);
                       if (!config.attn_output_gate) return;
                       const size_t channels = config.query_channels(kind);
                       MultiplyByGates(threads,
                                       qkv.Columns(config.qkv_channels(kind) - channels, channels),
                                       output);
                     },
                 .gate = Find(TensorRole::kAttentionGate)};
  }

  Result<Block> ShortConvolution() const {
    struct Weights {
      std::vector<float> taps;
      std::vector<float> bias;
    };
    Weights read;
    CRIA_ASSIGN_OR_RETURN(read.taps, ReadVector(Find(TensorRole::kConvWeight)));
    CRIA_ASSIGN_OR_RETURN(read.bias, ReadVector(Find(TensorRole::kConvBias)));
    const auto weights = std::make_shared<const Weights>(std::move(read));
    return Block{.norm = Find(TensorRole::kInputLayernorm),
                 .output_norm = Find(TensorRole::kAttentionOutputNorm),
                 .first = Find(TensorRole::kConvInProj),
                 .first_bias = Find(TensorRole::kConvInBias),
                 .second = Find(TensorRole::kConvOutProj),
                 .second_bias = Find(TensorRole::kConvOutBias),
                 .inner_channels = config_.hidden_size,
                 .inner = [&threads = threads_, weights, window_tokens = window_tokens_](
                              MatrixView bcx, ConstMatrixView /*gates*/, MatrixView output) {
                   Convolve(threads, weights->taps, weights->bias, window_tokens, bcx, output);
                 }};
  }

  Result<Block> LinearAttention() const {
    LinearAttentionWeights read;
    CRIA_ASSIGN_OR_RETURN(read.taps, ReadVector(Find(TensorRole::kLinearConvWeight)));
    CRIA_ASSIGN_OR_RETURN(read.dt_bias, ReadVector(Find(TensorRole::kLinearDtBias)));
    CRIA_ASSIGN_OR_RETURN(read.decay_rates, ReadVector(Find(TensorRole::kLinearDecayRate)));
    CRIA_ASSIGN_OR_RETURN(read.norm, ReadVector(Find(TensorRole::kLinearNorm)));
    const auto weights = std::make_shared<const LinearAttentionWeights>(std::move(read));
    return Block{
        .norm = Find(TensorRole::kInputLayernorm),
        .output_norm = Find(TensorRole::kAttentionOutputNorm),
        .first = Find(TensorRole::kLinearInProj),
        .first_bias = nullptr,
        .second = Find(TensorRole::kLinearOutProj),
        .second_bias = nullptr,
        .inner_channels = config_.linear_value_channels(),
        .inner =
            [&config = config_, &threads = threads_, weights, window_tokens = window_tokens_](
                MatrixView projected, ConstMatrixView gates, MatrixView output) {
              RunLinearAttention(threads, config, *weights, window_tokens, projected, gates,
                                 output);
            },
        .gate = Find(TensorRole::kLinearBaProj)};
  }

  Result<Block> Mamba() const {
    MambaWeights read;
    CRIA_ASSIGN_OR_RETURN(read.in_bias, ReadVector(Find(TensorRole::kMambaInBias)));
    CRIA_ASSIGN_OR_RETURN(read.taps, ReadVector(Find(TensorRole::kMambaConvWeight)));
    CRIA_ASSIGN_OR_RETURN(read.conv_bias, ReadVector(Find(TensorRole::kMambaConvBias)));
    CRIA_ASSIGN_OR_RETURN(read.dt_bias, ReadVector(Find(TensorRole::kMambaDtBias)));
    CRIA_ASSIGN_OR_RETURN(read.decay_rates, ReadVector(Find(TensorRole::kMambaDecayRate)));
    CRIA_ASSIGN_OR_RETURN(read.direct, ReadVector(Find(TensorRole::kMambaD)));
    CRIA_ASSIGN_OR_RETURN(read.norm, ReadVector(Find(TensorRole::kMambaNorm)));
    const auto weights = std::make_shared<const MambaWeights>(std::move(read));
    return Block{
        .norm = Find(TensorRole::kInputLayernorm),
        .output_norm = Find(TensorRole::kAttentionOutputNorm),
        .first = Find(TensorRole::kMambaInProj),
        .first_bias = nullptr,  // It has rows of the time steps, too.
        .second = Find(TensorRole::kMambaOutProj),
        .second_bias = Find(TensorRole::kMambaOutBias),
        .inner_channels = config_.mamba_channels(),
        .inner =
            [&config = config_, &threads = threads_, weights, window_tokens = window_tokens_](
                MatrixView projected, ConstMatrixView steps, MatrixView output) {
              RunMamba(threads, config, *weights, window_tokens, projected, steps, output);
            },
        .gate = Find(TensorRole::kMambaDtProj)};
  }

  // Attention, or what a layer has in its place.
  Result<Block> Mixer() const {
    const LayerKind& kind = config_.layer_kind(layer_);
    if (kind.short_conv) return ShortConvolution();
    if (kind.mamba) return Mamba();
    return kind.linear_attention ? LinearAttention() : Attention();
  }

  Block DenseFeedForward() const {
    Block block = GatedBlock(Find(TensorRole::kGateUpProj), Find(TensorRole::kDownProj));
    block.output_norm = Find(TensorRole::kMlpOutputNorm);
    block.first_bias = Find(TensorRole::kGateUpBias);
    block.second_bias = Find(TensorRole::kDownBias);
    block.scalar = Find(TensorRole::kLayerScalar);
    if (config_.ungated_mlp) {
      std::span<const float> xielu = config_.xielu;
      if (!xielu.empty()) xielu = xielu.subspan(layer_ * kXieluNumbers, kXieluNumbers);
      block.inner = [act = config_.hidden_act, xielu, &threads = threads_](
                        MatrixView up, ConstMatrixView /*gates*/, MatrixView output) {
        ActivateUngated(threads, act, xielu, up, output);
      };
    }
    return block;
  }

  Result<Mixture> Experts() const {
    Mixture mixture;
    mixture.norm = Find(TensorRole::kPostAttentionLayernorm);
    mixture.output_norm = Find(TensorRole::kMlpOutputNorm);
    mixture.router = Find(TensorRole::kRouter);
    mixture.router_bias = Find(TensorRole::kRouterBias);
    mixture.shared_gate = Find(TensorRole::kSharedExpertGate);
    mixture.all_first = Find(TensorRole::kExpertsGateUpProj);
    mixture.all_second = Find(TensorRole::kExpertsDownProj);
    mixture.first = SplitExperts(*mixture.all_first);
    mixture.second = SplitExperts(*mixture.all_second);
    for (size_t i = 0; i < config_.num_experts; ++i) {
      mixture.experts.push_back(GatedBlock(&mixture.first[i], &mixture.second[i]));
    }
    mixture.down_bias = Find(TensorRole::kExpertsDownBias);
    CRIA_ASSIGN_OR_RETURN(std::vector<float> biases,
                          ReadVector(Find(TensorRole::kExpertsGateUpBias)));
    if (!biases.empty() || config_.swiglu_limit != 0.0f) {
      ClampExperts(std::make_shared<const std::vector<float>>(std::move(biases)), mixture);
    }
    if (config_.shared_expert_intermediate_size != 0) {
      mixture.shared = GatedBlock(Find(TensorRole::kSharedExpertGateUpProj),
                                  Find(TensorRole::kSharedExpertDownProj));
    }
    return mixture;
  }

 private:
  PlannedTensor* Find(TensorRole role) const {
    return FindTensor(plan_, role, static_cast<int>(layer_));
  }

  // Gives experts the biases of gate and up, unless these are empty, and gpt-oss's activation.
  void ClampExperts(const std::shared_ptr<const std::vector<float>>& biases,
                    Mixture& mixture) const {
    const size_t channels = 2 * size_t{config_.moe_intermediate_size};
    for (size_t i = 0; i < mixture.experts.size(); ++i) {
      mixture.experts[i].inner = [&config = config_, &threads = threads_, biases, i, channels](
                                     MatrixView gate_up, ConstMatrixView /*gates*/,
                                     MatrixView output) {
        if (!biases->empty()) AddBias(std::span(*biases).subspan(i * channels, channels), gate_up);
        if (config.swiglu_limit == 0.0f)
          return Activate(threads, config.hidden_act, gate_up, output);
        ActivateClamped(threads, config.swiglu_alpha, config.swiglu_limit, gate_up, output);
      };
    }
  }

  // As an expert has it: neither biases nor a norm of the outputs.
  Block GatedBlock(PlannedTensor* first, PlannedTensor* second) const {
    return {.norm = Find(TensorRole::kPostAttentionLayernorm),
            .output_norm = nullptr,
            .first = first,
            .first_bias = nullptr,
            .second = second,
            .second_bias = nullptr,
            .inner_channels = second->stored.spec.input_channels,
            .inner = [act = config_.hidden_act, &threads = threads_](
                         MatrixView gate_up, ConstMatrixView /*gates*/, MatrixView output) {
              Activate(threads, act, gate_up, output);
            }};
  }

  const ModelConfig& config_;
  const ThreadPool& threads_;
  size_t window_tokens_;
  size_t layer_;
  FilePlan& plan_;
};

}  // namespace

void Mixture::Join() {
  JoinExperts(first, *all_first);
  JoinExperts(second, *all_second);
}

Result<LayerBlocks> MakeLayerBlocks(const ModelConfig& config, const ThreadPool& threads,
                                    size_t window_tokens, size_t layer, FilePlan& plan) {
  const BlockMaker maker(config, threads, window_tokens, layer, plan);
  LayerBlocks made;
  CRIA_ASSIGN_OR_RETURN(Block mixer, maker.Mixer());
  made.blocks.push_back(std::move(mixer));
  if (config.is_mixture(layer)) {
    CRIA_ASSIGN_OR_RETURN(made.mixture, maker.Experts());
  } else {
    made.blocks.push_back(maker.DenseFeedForward());
  }
  return made;
}

double WeightsPerToken(const ModelConfig& config, const TensorSpec& spec) {
  const double weights = static_cast<double>(spec.output_channels) * spec.input_channels;
  return spec.num_parts == 1 ? weights : weights * config.num_experts_per_tok / config.num_experts;
}

}  // namespace cria
