#include "reference/reference_layer.h"

#include <format>
#include <stdexcept>

#include "reference/reference_rope.h"

namespace cria::reference {
namespace {

// The model's own name of a tensor that has this one in Llama's class.
std::string OwnName(const ReferenceConfig& config, const std::string& name) {
  for (const auto& [llama, own] : config.modules) {
    const std::string module = "." + llama + ".";
    const size_t at = name.find(module);
    if (at == std::string::npos) continue;
    return name.substr(0, at + 1) + own + name.substr(at + module.size() - 1);
  }
  return name;
}

// post_attention_layernorm is the norm of what the feed-forward reads, but of what attention writes
// where both are normalized (Gemma 2) or only what is written (OLMo 2).
void NameNorms(const ReferenceModel& model, const std::string& prefix, ReferenceLayer& layer) {
  const auto norm = [&](const char* name) {
    return Weights(model, prefix + name + ".weight", {model.config.hidden_size});
  };
  const ReferenceNorms norms = model.config.norms;
  if (model.config.names != ReferenceNames::kLlama) {
    layer.attention_input_norm = norm("operator_norm");
    layer.mlp_input_norm = norm("ffn_norm");
    if (norms != ReferenceNorms::kBoth) return;
    layer.attention_output_norm = norm("post_operator_norm");
    layer.mlp_output_norm = norm("post_ffn_norm");
    return;
  }
  if (norms != ReferenceNorms::kAfter) layer.attention_input_norm = norm("input_layernorm");
  if (norms == ReferenceNorms::kBefore) {
    layer.mlp_input_norm = norm("post_attention_layernorm");
    return;
  }
  layer.attention_output_norm = norm("post_attention_layernorm");
  layer.mlp_output_norm = norm("post_feedforward_layernorm");
  if (norms == ReferenceNorms::kBoth) layer.mlp_input_norm = norm("pre_feedforward_layernorm");
  if (!model.config.experts.are_beside_mlp) return;
  layer.dense_output_norm = norm("post_feedforward_layernorm_1");
  layer.experts_norm = norm("pre_feedforward_layernorm_2");
  layer.experts_output_norm = norm("post_feedforward_layernorm_2");
}

void NameAttention(const ReferenceModel& model, const std::string& prefix, ReferenceLayer& layer) {
  const ReferenceConfig& c = model.config;
  const size_t head_dim = layer.attention.head_dim;
  const size_t queries = c.num_attention_heads * head_dim;
  const size_t keys = layer.attention.num_key_value_heads * head_dim;
  const bool has_keys = layer.attention.read_layer < 0;
  const auto matrix = [&](const char* name, size_t outputs, size_t inputs) {
    return Weights(model, prefix + name, {outputs, inputs});
  };
  const auto if_any = [&](bool is_there, const char* name, size_t size) {
    return is_there ? Weights(model, prefix + name, {size}) : nullptr;
  };
  layer.sinks = if_any(c.has_sinks, "self_attn.sinks", c.num_attention_heads);
  if (c.fused_projections && !c.split_queries) {  // Phi 3: the rows of one matrix after another.
    layer.q_proj = matrix("self_attn.qkv_proj.weight", queries + 2 * keys, c.hidden_size);
    layer.k_proj = layer.q_proj + queries * c.hidden_size;
    layer.v_proj = layer.k_proj + keys * c.hidden_size;
  } else {
    layer.q_proj =
        matrix("self_attn.q_proj.weight", (c.attn_output_gate ? 2 : 1) * queries, c.hidden_size);
    if (has_keys) {
      const bool has_values = !layer.attention.keys_are_values;
      layer.k_proj = matrix("self_attn.k_proj.weight", keys, c.hidden_size);
      layer.v_proj =
          has_values ? matrix("self_attn.v_proj.weight", keys, c.hidden_size) : layer.k_proj;
    }
  }
  const bool is_lfm2 = c.names == ReferenceNames::kLfm2;
  layer.o_proj = matrix(is_lfm2 ? "self_attn.out_proj.weight" : "self_attn.o_proj.weight",
                        c.hidden_size, queries);
  layer.q_bias = if_any(c.qkv_bias, "self_attn.q_proj.bias", queries);
  layer.k_bias = if_any(c.qkv_bias && has_keys, "self_attn.k_proj.bias", keys);
  layer.v_bias = layer.attention.keys_are_values
                     ? layer.k_bias
                     : if_any(c.qkv_bias && has_keys, "self_attn.v_proj.bias", keys);
  layer.o_bias = if_any(c.o_bias, "self_attn.o_proj.bias", c.hidden_size);
  const bool has_qk_norm = c.qk_norm || c.joint_qk_norm;
  layer.q_norm =
      if_any(has_qk_norm, is_lfm2 ? "self_attn.q_layernorm.weight" : "self_attn.q_norm.weight",
             c.qk_norm ? head_dim : queries);
  layer.k_norm = if_any(has_qk_norm && has_keys,
                        is_lfm2 ? "self_attn.k_layernorm.weight" : "self_attn.k_norm.weight",
                        c.qk_norm ? head_dim : keys);
  if (c.use_attention_gate) {
    layer.gate = matrix("self_attn.g_proj.weight", c.num_attention_heads, c.hidden_size);
  }
}

void NameFeedForward(const ReferenceModel& model, const std::string& prefix, size_t index,
                     ReferenceLayer& layer) {
  const ReferenceConfig& c = model.config;
  const auto find = [&](const std::string& tensor, const auto& shape) {
    return Weights(model, tensor, shape);
  };
  if (c.HasExperts(index) && c.experts.names == ReferenceExpertNames::kGptOss) {
    layer.gpt_oss.emplace(c, prefix, find);
    return;
  }
  if (c.HasExperts(index)) {
    layer.mixture.emplace(c, prefix, find);
    if (!c.experts.are_beside_mlp) return;
  }
  const size_t width = (layer.attention.has_wide_mlp ? 2 : 1) * c.intermediate_size;
  if (c.names != ReferenceNames::kLlama) {
    layer.gate_proj = Weights(model, prefix + "feed_forward.w1.weight", {width, c.hidden_size});
    layer.up_proj = Weights(model, prefix + "feed_forward.w3.weight", {width, c.hidden_size});
    layer.down_proj = Weights(model, prefix + "feed_forward.w2.weight", {c.hidden_size, width});
    return;
  }
  const std::string module = prefix + "mlp.";
  if (!c.has_gate) {
    layer.up_proj = Weights(model, module + "up_proj.weight", {width, c.hidden_size});
    if (c.activation == ReferenceActivation::kXielu) {
      layer.alpha_p = Weights(model, module + "act_fn.alpha_p", {1});
      layer.alpha_n = Weights(model, module + "act_fn.alpha_n", {1});
      layer.beta = Weights(model, module + "act_fn.beta", {});
      layer.eps = Weights(model, module + "act_fn.eps", {});
    }
  } else if (c.fused_projections) {
    layer.gate_proj = Weights(model, module + "gate_up_proj.weight", {2 * width, c.hidden_size});
    layer.up_proj = layer.gate_proj + width * c.hidden_size;
  } else {
    layer.gate_proj = Weights(model, module + "gate_proj.weight", {width, c.hidden_size});
    layer.up_proj = Weights(model, module + "up_proj.weight", {width, c.hidden_size});
  }
  layer.down_proj = Weights(model, module + "down_proj.weight", {c.hidden_size, width});
  if (!c.mlp_bias) return;
  if (c.has_gate) layer.gate_bias = Weights(model, module + "gate_proj.bias", {width});
  layer.up_bias = Weights(model, module + "up_proj.bias", {width});
  layer.down_bias = Weights(model, module + "down_proj.bias", {c.hidden_size});
}

}  // namespace

const float* Weights(const ReferenceModel& model, const std::string& name,
                     const std::vector<size_t>& shape) {
  const auto found = model.tensors.find(OwnName(model.config, name));
  if (found == model.tensors.end()) throw std::runtime_error("no tensor " + name);
  size_t count = 1;
  for (size_t extent : shape) count *= extent;
  if (found->second.shape != shape || found->second.values.size() != count) {
    throw std::runtime_error("wrong shape of tensor " + name);
  }
  return found->second.values.data();
}

ReferenceLayer MakeLayer(const ReferenceModel& model, const std::string& prefix, size_t index,
                         size_t context) {
  const ReferenceConfig& c = model.config;
  ReferenceLayer layer = {};
  layer.attention = c.AttentionOf(index);
  NameNorms(model, prefix, layer);
  NameFeedForward(model, prefix, index, layer);
  if (c.has_layer_scalars) layer.layer_scalar = Weights(model, prefix + "layer_scalar", {1});
  const auto find = [&](const std::string& tensor, const auto& shape) {
    return Weights(model, tensor, shape);
  };
  if (layer.attention.short_conv) {
    layer.short_conv.emplace(c, prefix, find);
    return layer;
  }
  if (layer.attention.linear_attention) {
    layer.delta_net.emplace(c, prefix, find);
    return layer;
  }
  if (layer.attention.mamba) {
    layer.mamba.emplace(c, prefix, find);
    return layer;
  }
  NameAttention(model, prefix, layer);
  layer.rope_frequencies = RopeFrequencies(c, context, index);
  return layer;
}

}  // namespace cria::reference
