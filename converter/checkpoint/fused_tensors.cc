#include "converter/checkpoint/fused_tensors.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

struct FusedPart {
  std::string_view name;
  uint64_t num_rows;
};

// Splits the tensor that `fused` ends the name of.
Status Split(const std::string& name, std::string_view fused, std::span<const FusedPart> parts,
             Checkpoint& checkpoint) {
  const TensorSource source = std::move(checkpoint.tensors.extract(name).mapped());
  const std::string layer = name.substr(0, name.size() - fused.size());
  uint64_t num_rows = 0;
  for (const FusedPart& part : parts) num_rows += part.num_rows;
  if (source.shape.size() != 2 || source.shape.front() != num_rows || num_rows == 0) {
    return Fail(
        ErrorCode::kInvalidFile,
        Format("{}: tensor \"{}\" has shape {}, but {} calls for {} rows", source.file->path(),
               Quotable(source.name), source.ShapeText(), checkpoint.described_by, num_rows));
  }
  uint64_t first_row = 0;
  for (const FusedPart& part : parts) {
    const std::string part_name = layer + std::string(part.name);
    if (!checkpoint.tensors.emplace(part_name, RowsOf(source, first_row, part.num_rows)).second) {
      return Fail(ErrorCode::kInvalidFile,
                  Format("{}: tensors \"{}\" and \"{}\" are both there; one of them is wrong",
                         source.file->path(), Quotable(name), Quotable(part_name)));
    }
    first_row += part.num_rows;
  }
  return {};
}

}  // namespace

Status SplitFusedTensors(Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config;
  const FusedPart qkv[] = {{"self_attn.q_proj.weight", config.query_channels()},
                           {"self_attn.k_proj.weight", config.key_value_channels()},
                           {"self_attn.v_proj.weight", config.key_value_channels()}};
  const FusedPart gate_up[] = {{"mlp.gate_proj.weight", config.intermediate_size},
                               {"mlp.up_proj.weight", config.intermediate_size}};
  constexpr std::string_view kQkv = "self_attn.qkv_proj.weight";
  constexpr std::string_view kGateUp = "mlp.gate_up_proj.weight";
  std::vector<std::string> names;
  for (const auto& [name, source] : checkpoint.tensors) {
    if (name.ends_with(kQkv) || name.ends_with(kGateUp)) names.push_back(name);
  }
  for (const std::string& name : names) {
    CRIA_RETURN_IF_ERROR(name.ends_with(kQkv) ? Split(name, kQkv, qkv, checkpoint)
                                              : Split(name, kGateUp, gate_up, checkpoint));
  }
  return {};
}

}  // namespace cria
