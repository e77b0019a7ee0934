#include "support/family_gguf.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "support/gemma4_gguf.h"
#include "support/interleaved_rows.h"
#include "support/recent_gguf.h"

namespace cria::support {
namespace {

using nlohmann::json;

// The names that other architectures do not have, of modules in a layer.
using ModuleName = std::pair<std::string_view, std::string_view>;
constexpr std::array<ModuleName, 3> kOutputNorms = {
    {{"post_attention_layernorm", "post_attention_norm"},
     {"pre_feedforward_layernorm", "ffn_norm"},
     {"post_feedforward_layernorm", "post_ffw_norm"}}};
constexpr std::array<ModuleName, 2> kFused = {
    {{"self_attn.qkv_proj", "attn_qkv"}, {"mlp.gate_up_proj", "ffn_up"}}};
// The longer of two names that begin alike comes first.
constexpr std::array<ModuleName, 7> kMixtures = {
    {{"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
     {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
     {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
     {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
     {"mlp.gate.", "ffn_gate_inp."},
     {"block_sparse_moe.gate.", "ffn_gate_inp."},
     {"block_sparse_moe.router.layer.", "ffn_gate_inp."}}};
constexpr std::array<ModuleName, 16> kLfm2 = {{{"operator_norm", "attn_norm"},
                                               {"ffn_norm", "ffn_norm"},
                                               {"self_attn.q_proj", "attn_q"},
                                               {"self_attn.k_proj", "attn_k"},
                                               {"self_attn.v_proj", "attn_v"},
                                               {"self_attn.out_proj", "attn_output"},
                                               {"self_attn.q_layernorm", "attn_q_norm"},
                                               {"self_attn.k_layernorm", "attn_k_norm"},
                                               {"feed_forward.w1", "ffn_gate"},
                                               {"feed_forward.w2", "ffn_down"},
                                               {"feed_forward.w3", "ffn_up"},
                                               {"feed_forward.gate.", "ffn_gate_inp."},
                                               {"feed_forward.expert_bias", "exp_probs_b.bias"},
                                               {"conv.in_proj", "shortconv.in_proj"},
                                               {"conv.out_proj", "shortconv.out_proj"},
                                               {"conv.conv", "shortconv.conv"}}};
constexpr std::array<ModuleName, 10> kLinearAttention = {
    {{"post_attention_layernorm", "post_attention_norm"},
     {"linear_attn.in_proj_qkv.", "attn_qkv."},
     {"linear_attn.in_proj_z.", "attn_gate."},
     {"linear_attn.in_proj_ba.", "ssm_ba."},
     {"linear_attn.in_proj_b.", "ssm_beta."},
     {"linear_attn.in_proj_a.", "ssm_alpha."},
     {"linear_attn.conv1d", "ssm_conv1d"},
     {"linear_attn.dt_bias", "ssm_dt.bias"},
     {"linear_attn.A_log", "ssm_a"},
     {"linear_attn.norm", "ssm_norm"}}};
// The matrices of an expert, which are parts of one tensor for all experts.
constexpr std::array<ModuleName, 6> kExperts = {{{"gate_proj", "ffn_gate_exps"},
                                                 {"up_proj", "ffn_up_exps"},
                                                 {"down_proj", "ffn_down_exps"},
                                                 {"w1", "ffn_gate_exps"},
                                                 {"w3", "ffn_up_exps"},
                                                 {"w2", "ffn_down_exps"}}};

constexpr std::array<ModuleName, 4> kMtp = {{{"mtp.fc", "nextn.eh_proj"},
                                             {"mtp.pre_fc_norm_embedding", "nextn.enorm"},
                                             {"mtp.pre_fc_norm_hidden", "nextn.hnorm"},
                                             {"mtp.norm", "nextn.shared_head_norm"}}};

bool HasLinearAttention(std::string_view architecture) {
  return architecture.starts_with("qwen35") || architecture == "qwen3next";
}

std::string NameIn(const std::string& architecture, const std::string& name) {
  if (const std::string recent = RecentGgmlName(architecture, name); !recent.empty()) return recent;
  const bool has_output_norms =
      architecture == "gemma2" || architecture == "gemma3" || architecture == "olmo2";
  const auto replace = [&](const ModuleName& module) {
    const size_t at = name.find(module.first);
    if (at == std::string::npos) return std::string();
    const size_t index = std::string_view("model.layers.").size();
    return std::format("blk.{}{}{}", name.substr(index, at - index), module.second,
                       name.substr(at + module.first.size()));
  };
  if (architecture.starts_with("lfm2")) {
    if (name == "model.embedding_norm.weight") return "token_embd_norm.weight";
    for (const ModuleName& module : kLfm2) {
      if (const std::string replaced = replace(module); !replaced.empty()) return replaced;
    }
    return GgmlName(name);
  }
  if (HasLinearAttention(architecture)) {
    for (const ModuleName& module : kLinearAttention) {
      if (const std::string replaced = replace(module); !replaced.empty()) return replaced;
    }
    if (const std::string replaced = replace({"linear_attn.out_proj", "ssm_out"});
        !replaced.empty()) {
      return replaced;
    }
    for (const ModuleName& module : kMtp) {
      if (const std::string replaced = replace(module); !replaced.empty()) return replaced;
    }
  }
  for (const ModuleName& module : kOutputNorms) {
    if (const std::string replaced = replace(module); has_output_norms && !replaced.empty()) {
      return replaced;
    }
  }
  for (const ModuleName& module : kFused) {
    if (const std::string replaced = replace(module); !replaced.empty()) return replaced;
  }
  for (const ModuleName& module : kMixtures) {
    if (const std::string replaced = replace(module); !replaced.empty()) return replaced;
  }
  return GgmlName(name);
}

// Adds the fields of LFM2: no layer with a convolution has heads of keys and values.
void AddShortConv(const std::string& architecture, const json& config, GgufWriter& writer) {
  std::vector<int32_t> heads;
  for (const json& type : config.at("layer_types")) {
    heads.push_back(type == "conv" ? 0 : config.at("num_key_value_heads").get<int32_t>());
  }
  writer.Add(std::format("{}.attention.head_count_kv", architecture), heads);
  writer.Add(std::format("{}.shortconv.l_cache", architecture),
             config.at("conv_L_cache").get<uint32_t>());
  if (!config.contains("num_experts")) return;
  writer.Add(std::format("{}.expert_gating_func", architecture), 2u);
  writer.Add(std::format("{}.leading_dense_block_count", architecture),
             config.at("num_dense_layers").get<uint32_t>());
  writer.Add(std::format("{}.expert_weights_scale", architecture),
             config.at("routed_scaling_factor").get<float>());
  writer.Add(std::format("{}.expert_weights_norm", architecture),
             config.at("norm_topk_prob").get<bool>());
}

// Adds `field` of config.json as a number, if it is there and not null.
template <typename Number>
void AddField(const std::string& key, const json& config, const char* field, GgufWriter& writer) {
  const auto found = config.find(field);
  if (found != config.end() && !found->is_null()) writer.Add(key, found->get<Number>());
}

// Phi 3's keys and tensors for rope.
void AddPhi3(const json& config, size_t head_dim, GgufWriter& writer) {
  const double original = config.value("original_max_position_embeddings", 4096.0);
  const double factor = config.at("max_position_embeddings").get<double>() / original;
  writer.Add("phi3.rope.scaling.original_context_length", static_cast<uint32_t>(original));
  writer.Add("phi3.rope.dimension_count",
             static_cast<uint32_t>(config.value("partial_rotary_factor", 1.0) *
                                   static_cast<double>(head_dim)));
  if (!config.contains("rope_scaling") || config["rope_scaling"].is_null()) return;
  writer.Add("phi3.rope.scaling.attn_factor",
             static_cast<float>(std::sqrt(1.0 + std::log(factor) / std::log(original))));
  for (const auto& [field, tensor] : {std::pair{"short_factor", "rope_factors_short.weight"},
                                      std::pair{"long_factor", "rope_factors_long.weight"}}) {
    const auto values = config["rope_scaling"].at(field).get<std::vector<float>>();
    writer.AddTensor(tensor, {values.size()}, StorageType::kF32, values);
  }
}

// The keys of Qwen3.5 and Qwen3-Next.
void AddLinearAttention(const std::string& architecture, const json& config, size_t head_dim,
                        GgufWriter& writer) {
  const auto key = [&](std::string_view name) { return std::format("{}.{}", architecture, name); };
  const auto size = [&](const char* field) { return config.at(field).get<uint32_t>(); };
  writer.Add(key("ssm.conv_kernel"), size("linear_conv_kernel_dim"));
  writer.Add(key("ssm.state_size"), size("linear_key_head_dim"));
  writer.Add(key("ssm.group_count"), size("linear_num_key_heads"));
  writer.Add(key("ssm.time_step_rank"), size("linear_num_value_heads"));
  writer.Add(key("ssm.inner_size"), size("linear_num_value_heads") * size("linear_value_head_dim"));
  writer.Add(key("full_attention_interval"), size("full_attention_interval"));
  const double rotated = config.at("rope_parameters").at("partial_rotary_factor").get<double>() *
                         static_cast<double>(head_dim);
  writer.Add(key("rope.dimension_count"), static_cast<uint32_t>(rotated));
  // As llama.cpp's converter writes them for text, too.
  writer.Add(key("rope.dimension_sections"), std::vector<int32_t>{1, 1, 0, 0});
}

// The keys of mixtures, whichever of the fields there are.
void AddMixture(const std::string& architecture, const json& config, GgufWriter& writer) {
  const auto size = [&](std::string_view name, const char* field) {
    AddField<uint32_t>(std::format("{}.{}", architecture, name), config, field, writer);
  };
  size("expert_count", "num_experts");
  size("expert_count", "num_local_experts");
  size("expert_used_count", "num_experts_per_tok");
  size("expert_feed_forward_length", "moe_intermediate_size");
  size("expert_shared_feed_forward_length", "shared_expert_intermediate_size");
  size("expert_shared_feed_forward_length", "shared_intermediate_size");
}

// "blk.N." of a name in layer N, or "".
std::string BlockOf(const std::string& name) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!name.starts_with(kLayers)) return "";
  return std::format("blk.{}.",
                     name.substr(kLayers.size(), name.find('.', kLayers.size()) - kLayers.size()));
}

// One of `num_parts` equal parts of the rows of a matrix, or of each expert of [experts, rows,
// columns].
reference::ReferenceTensor RowsOfEach(const reference::ReferenceTensor& tensor, size_t part,
                                      size_t num_parts) {
  reference::ReferenceTensor result = {.shape = tensor.shape, .values = {}};
  size_t& rows = result.shape[tensor.shape.size() - 2];
  rows /= num_parts;
  const size_t part_elements = rows * tensor.shape.back();
  for (size_t i = part * part_elements; i < tensor.values.size(); i += num_parts * part_elements) {
    const auto begin = tensor.values.begin() + static_cast<std::ptrdiff_t>(i);
    result.values.insert(result.values.end(), begin,
                         begin + static_cast<std::ptrdiff_t>(part_elements));
  }
  return result;
}

}  // namespace

FamilyGgufWriter::FamilyGgufWriter(const std::string& architecture, const std::string& config_json)
    : architecture_(architecture) {
  const json config = json::parse(config_json);
  const auto key = [&](std::string_view name) { return std::format("{}.{}", architecture, name); };
  const auto size = [&](const char* name, const char* field) {
    AddField<uint32_t>(key(name), config, field, writer_);
  };
  const auto real = [&](const char* name, const char* field) {
    AddField<float>(key(name), config, field, writer_);
  };
  writer_.Add("general.architecture", architecture);
  if (architecture == "gemma4") {
    AddGemma4(config, writer_);
    AddTokenizer(MakeByteLevelTokenizer(config.at("vocab_size").get<size_t>()),
                 ChatTemplateText::kNone, writer_);
    return;
  }
  size("embedding_length", "hidden_size");
  const bool is_dense_granite =
      architecture == "granitehybrid" && config.at("num_local_experts") == 0;
  size("feed_forward_length", is_dense_granite ? "shared_intermediate_size" : "intermediate_size");
  const auto guessing = config.value("mtp_num_hidden_layers", 0u);
  writer_.Add(key("block_count"), config.at("num_hidden_layers").get<uint32_t>() + guessing);
  if (guessing != 0) writer_.Add(key("nextn_predict_layers"), guessing);
  size("attention.head_count", "num_attention_heads");
  const bool is_lfm2 = architecture.starts_with("lfm2");
  if (is_lfm2) {
    AddShortConv(architecture, config, writer_);
  } else if (architecture != "granitehybrid") {
    size("attention.head_count_kv", "num_key_value_heads");
  }
  size("attention.key_length", "head_dim");
  size("attention.value_length", "head_dim");
  size("context_length", "max_position_embeddings");
  size("attention.sliding_window", "sliding_window");
  size("attention.sliding_window_pattern", "sliding_window_pattern");
  real("attn_logit_softcapping", "attn_logit_softcapping");
  real("final_logit_softcapping", "final_logit_softcapping");
  real("attention.scale", "attention_multiplier");
  real("embedding_scale", "embedding_multiplier");
  real("residual_scale", "residual_multiplier");
  real("logit_scale", "logits_scaling");
  real("rope.freq_base", "rope_theta");
  writer_.Add(key("attention.layer_norm_rms_epsilon"),
              config.value(is_lfm2 ? "norm_eps" : "rms_norm_eps", 1e-6f));
  const json rope = config.value("rope_scaling", json());
  if (rope.is_object() && rope.contains("factor") && !rope.contains("alpha")) {
    writer_.Add(key("rope.scaling.type"), "linear");
    writer_.Add(key("rope.scaling.factor"), rope["factor"].get<float>());
  }
  is_dense_granite_ = is_dense_granite;
  config_ = config_json;
  head_dim_ = config.value("head_dim", config.at("hidden_size").get<size_t>() /
                                           config.at("num_attention_heads").get<size_t>());
  AddMixture(architecture, config, writer_);
  if (HasLinearAttention(architecture)) {
    AddLinearAttention(architecture, config, head_dim_, writer_);
    value_heads_ = {.num_key_heads = config.at("linear_num_key_heads").get<size_t>(),
                    .num_value_heads = config.at("linear_num_value_heads").get<size_t>(),
                    .key_dim = config.at("linear_key_head_dim").get<size_t>(),
                    .value_dim = config.at("linear_value_head_dim").get<size_t>()};
  }
  AddRecentKeys(architecture, config, writer_);
  if (architecture == "phi3") AddPhi3(config, head_dim_, writer_);
  AddTokenizer(MakeByteLevelTokenizer(config.at("vocab_size").get<size_t>()),
               ChatTemplateText::kNone, writer_);
}

void FamilyGgufWriter::Add(reference::ReferenceTensor tensor, const std::string& own_name) {
  const std::string name = NameOfBlock(own_name);
  if (architecture_ == "gemma4") {
    writer_.AddTensor(Gemma4GgmlName(name), tensor.shape, StorageType::kF32, tensor.values);
    return;
  }
  const std::string block = BlockOf(name);
  if (architecture_ == "gpt-oss") {
    constexpr std::string_view kExpertsOfLayer = ".mlp.experts.";
    const size_t at = name.find(kExpertsOfLayer);
    if (at != std::string::npos) {
      return gpt_oss_.Add(name.substr(at + kExpertsOfLayer.size()), block, std::move(tensor),
                          writer_);
    }
  }
  if (const size_t experts = name.find(".experts."); experts != std::string::npos) {
    AddExpert(tensor, block, name.substr(experts));
    return;
  }
  const auto add_part = [&](const char* module, size_t part, size_t num_parts) {
    const reference::ReferenceTensor rows = RowsOfEach(tensor, part, num_parts);
    writer_.AddTensor(std::format("{}{}.weight", block, module), rows.shape, StorageType::kF32,
                      rows.values);
  };
  if (is_dense_granite_ && name.contains("_linear.weight")) {
    if (name.contains(".output_linear.")) {
      add_part("ffn_down", 0, 1);
    } else {
      add_part("ffn_gate", 0, 2);
      add_part("ffn_up", 1, 2);
    }
    return;
  }
  if (const size_t number = name.find(".act_fn."); number != std::string::npos) {
    xielu_[name.substr(number + 8)].push_back(tensor.values.at(0));
    return;
  }
  if (name.contains("_linear.weight")) {
    const bool is_shared = name.contains(".shared_mlp.");
    if (name.contains(".output_linear.")) {
      add_part(is_shared ? "ffn_down_shexp" : "ffn_down_exps", 0, 1);
    } else {
      add_part(is_shared ? "ffn_gate_shexp" : "ffn_gate_exps", 0, 2);
      add_part(is_shared ? "ffn_up_shexp" : "ffn_up_exps", 1, 2);
    }
    return;
  }
  if (HasLinearAttention(architecture_)) {
    if (name.ends_with(".in_proj_qkvz.weight")) return AddHeads(tensor, block);
    ChangeLinearAttention(name, tensor);
  }
  if (architecture_.starts_with("gemma") && name.ends_with("norm.weight")) {
    for (float& value : tensor.values) value += 1.0f;
  }
  ChangeRecentTensor(architecture_, json::parse(config_), name, tensor);
  // Without the 1 of Hugging Face's [hidden_size, 1, taps].
  if (name.ends_with(".conv.conv.weight")) tensor.shape.erase(tensor.shape.begin() + 1);
  if (name.contains(".shared_expert_gate.")) tensor.shape = {tensor.shape.back()};
  const bool is_interleaved = architecture_ == "granite" || architecture_ == "smollm3" ||
                              architecture_ == "granitemoe" || architecture_ == "llama" ||
                              IsRecentAndInterleaved(architecture_);
  if (is_interleaved && (name.contains(".q_proj.") || name.contains(".k_proj."))) {
    tensor.values = InterleaveRows(tensor, head_dim_);
  }
  writer_.AddTensor(NameIn(architecture_, name), tensor.shape, StorageType::kF32, tensor.values);
}

// The layer that guesses tokens is a block behind the others.
std::string FamilyGgufWriter::NameOfBlock(const std::string& name) const {
  if (!name.starts_with("mtp.")) return name;
  constexpr std::string_view kLayer = "mtp.layers.0.";
  const std::string prefix =
      std::format("model.layers.{}.", json::parse(config_).at("num_hidden_layers").get<size_t>());
  return name.starts_with(kLayer) ? prefix + name.substr(kLayer.size()) : prefix + name;
}

// The rows of Qwen3-Next's matrix alternate by heads of keys.
void FamilyGgufWriter::AddHeads(const reference::ReferenceTensor& tensor,
                                const std::string& block) {
  const size_t columns = tensor.shape.at(1);
  const size_t keys = value_heads_.key_dim;
  const size_t values =
      value_heads_.num_value_heads / value_heads_.num_key_heads * value_heads_.value_dim;
  reference::ReferenceTensor qkv = {.shape = {0, columns}, .values = {}};
  reference::ReferenceTensor gates = qkv;
  size_t first = 0;
  for (const size_t rows : {keys, keys, values, values}) {
    reference::ReferenceTensor& target = first == 2 * keys + values ? gates : qkv;
    for (size_t group = 0; group < value_heads_.num_key_heads; ++group) {
      const size_t row = group * 2 * (keys + values) + first;
      const auto begin = tensor.values.begin() + static_cast<std::ptrdiff_t>(row * columns);
      target.values.insert(target.values.end(), begin,
                           begin + static_cast<std::ptrdiff_t>(rows * columns));
      target.shape[0] += rows;
    }
    first += rows;
  }
  writer_.AddTensor(block + "attn_qkv.weight", qkv.shape, StorageType::kF32, qkv.values);
  writer_.AddTensor(block + "attn_gate.weight", gates.shape, StorageType::kF32, gates.values);
}

void FamilyGgufWriter::ChangeLinearAttention(std::string_view name,
                                             reference::ReferenceTensor& tensor) const {
  const bool is_norm = name.ends_with("norm.weight") || name.contains(".mtp.pre_fc_norm_");
  if (is_norm && !name.ends_with("linear_attn.norm.weight")) {
    for (float& value : tensor.values) value += 1.0f;
  }
  if (name.ends_with(".A_log")) {
    for (float& value : tensor.values) value = -std::exp(value);
  }
  ChangeRecentTensor(architecture_, json::parse(config_), name, tensor);
  // Without the 1 of Hugging Face's [channels, 1, taps].
  if (name.ends_with(".conv1d.weight")) tensor.shape.erase(tensor.shape.begin() + 1);
  if (architecture_ == "qwen3next" || !name.contains(".linear_attn.") ||
      name.ends_with(".norm.weight")) {
    return;
  }
  // Heads of values of one key head are next to each other in Hugging Face's order, and here those
  // with the same place among these.
  const auto& [key_heads, heads, key_dim, value_dim] = value_heads_;
  const size_t columns = tensor.shape.size() == 1 ? 1 : tensor.shape.at(1);
  const bool is_out_proj = name.ends_with(".out_proj.weight");
  const size_t rows = is_out_proj ? 1 : tensor.shape.at(0);
  const bool has_keys = name.contains(".in_proj_qkv.") || name.contains(".conv1d.");
  const size_t first = has_keys ? 2 * key_heads * key_dim : 0;
  const size_t head_elements =
      is_out_proj ? value_dim : (rows - first) / heads * (tensor.shape.size() == 1 ? 1 : columns);
  const size_t num_lines = is_out_proj ? tensor.shape.at(0) : 1;
  const std::vector<float> before = tensor.values;
  for (size_t line = 0; line < num_lines; ++line) {
    const size_t begin = line * columns + first * columns;
    for (size_t head = 0; head < heads; ++head) {
      const size_t source = head % key_heads * (heads / key_heads) + head / key_heads;
      std::copy_n(
          before.begin() + static_cast<std::ptrdiff_t>(begin + source * head_elements),
          head_elements,
          tensor.values.begin() + static_cast<std::ptrdiff_t>(begin + head * head_elements));
    }
  }
}

void FamilyGgufWriter::AddExpert(const reference::ReferenceTensor& tensor, const std::string& block,
                                 std::string_view name) {
  for (const ModuleName& module : kExperts) {
    if (!name.ends_with(std::format(".{}.weight", module.first))) continue;
    reference::ReferenceTensor& all = experts_[std::format("{}{}.weight", block, module.second)];
    if (all.shape.empty()) all.shape = {0, tensor.shape.at(0), tensor.shape.at(1)};
    ++all.shape[0];
    all.values.insert(all.values.end(), tensor.values.begin(), tensor.values.end());
  }
}

void FamilyGgufWriter::Write(const std::filesystem::path& path) {
  for (const auto& [name, tensor] : experts_) {
    writer_.AddTensor(name, tensor.shape, StorageType::kF32, tensor.values);
  }
  for (const auto& [name, numbers] : xielu_) writer_.Add("xielu." + name, numbers);
  writer_.Write(path);
}

}  // namespace cria::support
