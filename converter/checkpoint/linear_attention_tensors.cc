#include "converter/checkpoint/linear_attention_tensors.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

// A matrix of a fused one: so many consecutive rows of each group.
struct Part {
  std::string_view name;
  uint32_t num_rows;
};

// A matrix that consists of `num_groups` groups of rows, each with rows of all parts.
struct Fused {
  std::string_view name;
  uint32_t num_groups;
  std::vector<Part> parts;
};

std::vector<Fused> FusedMatrices(const ModelConfig& config) {
  std::vector<Fused> fused;
  if (config.attn_output_gate) {
    fused.push_back({"self_attn.q_proj.weight",
                     config.num_attention_heads,
                     {{"self_attn.q_proj.weight", config.head_dim},
                      {"self_attn.gate_proj.weight", config.head_dim}}});
  }
  if (config.has_mamba()) {
    fused.push_back({"mamba.in_proj.weight",
                     1,
                     {{"mamba.in_proj.weight", static_cast<uint32_t>(config.mamba_in_channels())},
                      {"mamba.dt_proj.weight", config.mamba_n_heads}}});
  }
  if (!config.has_linear_attention()) return fused;
  const auto keys = static_cast<uint32_t>(config.linear_key_channels());
  const auto values = static_cast<uint32_t>(config.linear_value_channels());
  const uint32_t heads = config.linear_num_value_heads;
  const uint32_t groups = config.linear_num_key_heads;
  fused.push_back({"linear_attn.in_proj_qkv.weight",
                   1,
                   {{"linear_attn.q_proj.weight", keys},
                    {"linear_attn.k_proj.weight", keys},
                    {"linear_attn.v_proj.weight", values}}});
  fused.push_back({"linear_attn.in_proj_z.weight", 1, {{"linear_attn.z_proj.weight", values}}});
  fused.push_back({"linear_attn.in_proj_b.weight", 1, {{"linear_attn.b_proj.weight", heads}}});
  fused.push_back({"linear_attn.in_proj_a.weight", 1, {{"linear_attn.a_proj.weight", heads}}});
  // Qwen3-Next's, by heads of keys.
  fused.push_back({"linear_attn.in_proj_qkvz.weight",
                   groups,
                   {{"linear_attn.q_proj.weight", config.linear_key_head_dim},
                    {"linear_attn.k_proj.weight", config.linear_key_head_dim},
                    {"linear_attn.v_proj.weight", values / groups},
                    {"linear_attn.z_proj.weight", values / groups}}});
  fused.push_back({"linear_attn.in_proj_ba.weight",
                   groups,
                   {{"linear_attn.b_proj.weight", heads / groups},
                    {"linear_attn.a_proj.weight", heads / groups}}});
  return fused;
}

// Null unless `name` is that of a fused matrix of a layer.
const Fused* FindFused(std::span<const Fused> all, std::string_view name) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!name.starts_with(kLayers)) return nullptr;
  const size_t dot = name.find('.', kLayers.size());
  if (dot == std::string_view::npos) return nullptr;
  for (const Fused& fused : all) {
    if (name.substr(dot + 1) == fused.name) return &fused;
  }
  return nullptr;
}

class Splitter {
 public:
  explicit Splitter(Checkpoint& checkpoint)
      : checkpoint_(checkpoint), fused_(FusedMatrices(checkpoint.config)) {}

  Status Split() {
    TensorSources before = std::exchange(checkpoint_.tensors, {});
    for (auto& [name, source] : before) {
      const Fused* const fused = FindFused(fused_, name);
      if (fused == nullptr) {
        CRIA_RETURN_IF_ERROR(AddTensor(name, std::move(source), checkpoint_));
      } else {
        CRIA_RETURN_IF_ERROR(SplitOne(name, *fused, source));
      }
    }
    return {};
  }

 private:
  Status SplitOne(const std::string& name, const Fused& fused, const TensorSource& source) {
    uint32_t period = 0;
    for (const Part& part : fused.parts) period += part.num_rows;
    const uint64_t num_rows = uint64_t{period} * fused.num_groups;
    if (source.shape.size() != 2 || source.shape.front() != num_rows) {
      return Fail(
          ErrorCode::kInvalidFile,
          Format("{}: tensor \"{}\" has shape {}, but {} calls for {} rows", source.file->path(),
                 Quotable(source.name), source.ShapeText(), checkpoint_.described_by, num_rows));
    }
    const std::string layer = name.substr(0, name.size() - fused.name.size());
    uint32_t first = 0;
    for (const Part& part : fused.parts) {
      TensorSource rows =
          fused.num_groups == 1
              ? RowsOf(source, first, part.num_rows)
              : ChooseRows(source, {.period = period, .first = first, .count = part.num_rows});
      CRIA_RETURN_IF_ERROR(AddTensor(layer + std::string(part.name), std::move(rows), checkpoint_));
      first += part.num_rows;
    }
    return {};
  }

  Checkpoint& checkpoint_;
  const std::vector<Fused> fused_;
};

}  // namespace

Status SplitLinearAttention(Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config;
  if (!config.attn_output_gate && !config.has_linear_attention() && !config.has_mamba()) return {};
  return Splitter(checkpoint).Split();
}

}  // namespace cria
