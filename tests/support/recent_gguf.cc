#include "support/recent_gguf.h"

#include <cmath>
#include <format>
#include <string_view>
#include <utility>
#include <vector>

namespace cria::support {
namespace {

using nlohmann::json;

// A module of an architecture's layers, and ggml's name of it.
struct RecentModule {
  std::string_view architecture;
  std::string_view hugging_face;
  std::string_view ggml;
};
constexpr RecentModule kModules[] = {
    {"exaone4", "post_attention_layernorm", "post_attention_norm"},
    {"exaone4", "post_feedforward_layernorm", "post_ffw_norm"},
    {"seed_oss", "post_attention_layernorm", "post_attention_norm"},
    {"hunyuan-dense", "self_attn.query_layernorm", "attn_q_norm"},
    {"hunyuan-dense", "self_attn.key_layernorm", "attn_k_norm"},
    {"apertus", "attention_layernorm", "attn_norm"},
    {"apertus", "feedforward_layernorm", "ffn_norm"},
    {"glm4", "post_self_attn_layernorm", "post_attention_norm"},
    {"glm4", "post_attention_layernorm", "ffn_norm"},
    {"glm4", "post_mlp_layernorm", "post_ffw_norm"},
    {"glm4", "mlp.gate_up_proj", "ffn_up"},
    {"gpt-oss", "post_attention_layernorm", "post_attention_norm"},
    {"gpt-oss", "mlp.router", "ffn_gate_inp"},
    {"granitehybrid", "mamba.in_proj", "ssm_in"},
    {"granitehybrid", "mamba.conv1d", "ssm_conv1d"},
    {"granitehybrid", "mamba.norm", "ssm_norm"},
    {"granitehybrid", "mamba.out_proj", "ssm_out"},
};

void AddYarn(const std::string& architecture, const json& rope, GgufWriter& writer) {
  const auto key = [&](std::string_view name) {
    return std::format("{}.rope.scaling.{}", architecture, name);
  };
  writer.Add(key("type"), "yarn");
  writer.Add(key("factor"), rope.at("factor").get<float>());
  writer.Add(key("original_context_length"),
             rope.at("original_max_position_embeddings").get<uint32_t>());
  if (rope.contains("beta_fast")) {
    writer.Add(key("yarn_beta_fast"), rope.at("beta_fast").get<float>());
    writer.Add(key("yarn_beta_slow"), rope.at("beta_slow").get<float>());
  }
  if (rope.contains("mscale_all_dim")) {
    writer.Add(key("yarn_log_multiplier"), rope.at("mscale_all_dim").get<float>());
  }
}

// A layer of Mamba has no heads of keys and values.
void AddMambaKeys(const json& config, GgufWriter& writer) {
  const auto size = [&](const char* field) { return config.at(field).get<uint32_t>(); };
  std::vector<int32_t> heads;
  for (const json& type : config.at("layer_types")) {
    heads.push_back(type == "mamba" ? 0 : config.at("num_key_value_heads").get<int32_t>());
  }
  writer.Add("granitehybrid.attention.head_count_kv", heads);
  if (!config.contains("mamba_n_heads")) return;
  writer.Add("granitehybrid.ssm.conv_kernel", size("mamba_d_conv"));
  writer.Add("granitehybrid.ssm.state_size", size("mamba_d_state"));
  writer.Add("granitehybrid.ssm.group_count", size("mamba_n_groups"));
  writer.Add("granitehybrid.ssm.time_step_rank", size("mamba_n_heads"));
  writer.Add("granitehybrid.ssm.inner_size", size("mamba_n_heads") * size("mamba_d_head"));
}

}  // namespace

void AddRecentKeys(const std::string& architecture, const json& config, GgufWriter& writer) {
  const auto key = [&](std::string_view name) { return std::format("{}.{}", architecture, name); };
  const json rope = config.value("rope_parameters", json::object());
  if (rope.contains("rope_theta")) {
    writer.Add(key("rope.freq_base"), rope.at("rope_theta").get<float>());
  }
  if (rope.value("rope_type", "") == "yarn") AddYarn(architecture, rope, writer);
  if (rope.contains("llama_4_scaling_beta")) {
    writer.Add(key("attention.temperature_scale"), rope.at("llama_4_scaling_beta").get<float>());
  }
  if (architecture == "hunyuan-dense") {
    const json& scaling = config.at("rope_scaling");
    const auto channels = config.at("head_dim").get<double>();
    const double base = scaling.at("rope_theta").get<double>() *
                        std::pow(scaling.at("alpha").get<double>(), channels / (channels - 2.0));
    writer.Add(key("rope.freq_base"), static_cast<float>(base));
    writer.Add(key("rope.scaling.type"), "none");
    writer.Add(key("rope.scaling.factor"), 1.0f);
  }
  if (architecture == "granitehybrid") {
    AddMambaKeys(config, writer);
    writer.Add(key("rope.scaling.finetuned"), config.at("position_embedding_type") == "rope");
  }
  if (architecture == "glm4") {
    writer.Add(key("rope.dimension_count"),
               static_cast<uint32_t>(config.at("head_dim").get<double>() *
                                     config.at("partial_rotary_factor").get<double>()));
  }
}

void ChangeRecentTensor(const std::string& architecture, const json& config, std::string_view name,
                        reference::ReferenceTensor& tensor) {
  if (architecture != "granitehybrid" || !name.contains(".mamba.")) return;
  if (name.ends_with(".conv1d.weight")) tensor.shape.erase(tensor.shape.begin() + 1);
  if (name.ends_with(".A_log")) {
    for (float& value : tensor.values) value = -std::exp(value);
  }
  if (name.ends_with(".A_log") || name.ends_with(".D")) tensor.shape.push_back(1);
  if (!name.ends_with(".norm.weight")) return;
  const auto groups = config.at("mamba_n_groups").get<size_t>();
  tensor.shape = {groups, tensor.values.size() / groups};
}

std::string RecentGgmlName(const std::string& architecture, const std::string& name) {
  constexpr std::string_view kLayers = "model.layers.";
  for (const auto& [own, ggml] :
       {std::pair{".mamba.dt_bias", "ssm_dt.bias"}, std::pair{".mamba.A_log", "ssm_a"},
        std::pair{".mamba.D", "ssm_d"}}) {
    const size_t at = name.find(own);
    if (architecture != "granitehybrid" || at == std::string::npos) continue;
    return std::format("blk.{}.{}", name.substr(kLayers.size(), at - kLayers.size()), ggml);
  }
  if (const size_t at = name.find(".self_attn.sinks"); at != std::string::npos) {
    return std::format("blk.{}.attn_sinks.weight",
                       name.substr(kLayers.size(), at - kLayers.size()));
  }
  for (const RecentModule& module : kModules) {
    const std::string own = std::format(".{}.", module.hugging_face);
    const size_t at = name.find(own);
    if (architecture != module.architecture || at == std::string::npos) continue;
    return std::format("blk.{}.{}.{}", name.substr(kLayers.size(), at - kLayers.size()),
                       module.ggml, name.substr(at + own.size()));
  }
  return "";
}

bool IsRecentAndInterleaved(const std::string& architecture) {
  return architecture == "mistral3" || architecture == "granitehybrid" || architecture == "arcee";
}

}  // namespace cria::support
