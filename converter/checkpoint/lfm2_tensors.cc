#include "converter/checkpoint/lfm2_tensors.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "core/format.h"

namespace cria {
namespace {

struct Lfm2Name {
  std::string_view lfm2;
  std::string_view llama;
};
// The names stand behind "model.layers.N.".
constexpr std::array kLfm2Names = {
    Lfm2Name{"operator_norm.weight", "input_layernorm.weight"},
    // LFM3's norms of outputs.
    Lfm2Name{"post_operator_norm.weight", "post_attention_layernorm.weight"},
    Lfm2Name{"post_ffn_norm.weight", "post_feedforward_layernorm.weight"},
    Lfm2Name{"self_attn.gate_proj.weight", "self_attn.g_proj.weight"},
    Lfm2Name{"self_attn.q_layernorm.weight", "self_attn.q_norm.weight"},
    Lfm2Name{"self_attn.k_layernorm.weight", "self_attn.k_norm.weight"},
    Lfm2Name{"self_attn.out_proj.weight", "self_attn.o_proj.weight"},
    Lfm2Name{"feed_forward.w1.weight", "mlp.gate_proj.weight"},
    Lfm2Name{"feed_forward.w3.weight", "mlp.up_proj.weight"},
    Lfm2Name{"feed_forward.w2.weight", "mlp.down_proj.weight"},
    Lfm2Name{"feed_forward.gate.weight", "mlp.gate.weight"},
    Lfm2Name{"feed_forward.expert_bias", "mlp.expert_bias"},
    // All experts in one tensor, as transformers has them in memory.
    Lfm2Name{"feed_forward.experts.gate_up_proj", "mlp.experts.gate_up_proj"},
    Lfm2Name{"feed_forward.experts.down_proj", "mlp.experts.down_proj"},
};

// The names stand behind "model.layers.N.feed_forward.experts.E.".
constexpr std::array kLfm2Matrices = {Lfm2Name{"w1.weight", "gate_proj.weight"},
                                      Lfm2Name{"w3.weight", "up_proj.weight"},
                                      Lfm2Name{"w2.weight", "down_proj.weight"}};

std::string RenameInLayer(std::string_view rest, bool has_output_norms) {
  constexpr std::string_view kExperts = "feed_forward.experts.";
  if (rest == "ffn_norm.weight") {
    return has_output_norms ? "pre_feedforward_layernorm.weight"
                            : "post_attention_layernorm.weight";
  }
  for (const Lfm2Name& name : kLfm2Names) {
    if (rest == name.lfm2) return std::string(name.llama);
  }
  if (!rest.starts_with(kExperts)) return std::string(rest);
  const size_t dot = rest.find('.', kExperts.size());
  for (const Lfm2Name& name : kLfm2Matrices) {
    if (dot == std::string_view::npos || rest.substr(dot + 1) != name.lfm2) continue;
    return Format("mlp.experts.{}.{}", rest.substr(kExperts.size(), dot - kExperts.size()),
                  name.llama);
  }
  return std::string(rest);
}

std::string RenameLfm2(const std::string& name, bool has_output_norms) {
  constexpr std::string_view kLayers = "model.layers.";
  if (name == "model.embedding_norm.weight") return "model.norm.weight";
  if (!name.starts_with(kLayers)) return name;
  const size_t dot = name.find('.', kLayers.size());
  if (dot == std::string::npos) return name;
  return name.substr(0, dot + 1) +
         RenameInLayer(std::string_view(name).substr(dot + 1), has_output_norms);
}

}  // namespace

Status RenameLfm2Tensors(Checkpoint& checkpoint) {
  for (auto& [name, source] : std::exchange(checkpoint.tensors, {})) {
    CRIA_RETURN_IF_ERROR(AddTensor(RenameLfm2(name, checkpoint.config.has_norms_after()),
                                   std::move(source), checkpoint));
  }
  return {};
}

}  // namespace cria
