#include "support/family_gguf.h"

#include <array>
#include <cmath>
#include <format>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "support/files.h"
#include "support/interleaved_rows.h"

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

std::string NameIn(const std::string& architecture, const std::string& name) {
  const bool has_output_norms =
      architecture == "gemma2" || architecture == "gemma3" || architecture == "olmo2";
  const auto replace = [&](const ModuleName& module) {
    const size_t at = name.find(module.first);
    if (at == std::string::npos) return std::string();
    const size_t index = std::string_view("model.layers.").size();
    return std::format("blk.{}{}{}", name.substr(index, at - index), module.second,
                       name.substr(at + module.first.size()));
  };
  for (const ModuleName& module : kOutputNorms) {
    if (const std::string replaced = replace(module); has_output_norms && !replaced.empty()) {
      return replaced;
    }
  }
  for (const ModuleName& module : kFused) {
    if (const std::string replaced = replace(module); !replaced.empty()) return replaced;
  }
  return GgmlName(name);
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
  size("embedding_length", "hidden_size");
  size("feed_forward_length", "intermediate_size");
  size("block_count", "num_hidden_layers");
  size("attention.head_count", "num_attention_heads");
  size("attention.head_count_kv", "num_key_value_heads");
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
  writer_.Add(key("attention.layer_norm_rms_epsilon"), config.value("rms_norm_eps", 1e-6f));
  const json rope = config.value("rope_scaling", json());
  if (rope.is_object() && rope.contains("factor")) {
    writer_.Add(key("rope.scaling.type"), "linear");
    writer_.Add(key("rope.scaling.factor"), rope["factor"].get<float>());
  }
  head_dim_ = config.value("head_dim", config.at("hidden_size").get<size_t>() /
                                           config.at("num_attention_heads").get<size_t>());
  if (architecture == "phi3") AddPhi3(config, head_dim_, writer_);
  AddTokenizer(MakeByteLevelTokenizer(config.at("vocab_size").get<size_t>()),
               ChatTemplateText::kNone, writer_);
}

void FamilyGgufWriter::Add(reference::ReferenceTensor tensor, const std::string& name) {
  if (architecture_.starts_with("gemma") && name.ends_with("norm.weight")) {
    for (float& value : tensor.values) value += 1.0f;
  }
  const bool is_interleaved = architecture_ == "granite" || architecture_ == "smollm3";
  if (is_interleaved && (name.contains(".q_proj.") || name.contains(".k_proj."))) {
    tensor.values = InterleaveRows(tensor, head_dim_);
  }
  writer_.AddTensor(NameIn(architecture_, name), tensor.shape, StorageType::kF32, tensor.values);
}

void FamilyGgufWriter::Write(const std::filesystem::path& path) { WriteFile(path, writer_.File()); }

}  // namespace cria::support
