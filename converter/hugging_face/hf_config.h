#pragma once

#include <filesystem>
#include <span>

#include "converter/checkpoint/checkpoint.h"
#include "converter/hugging_face/hf_families.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// What a config.json says about the tensors beside it.
struct HfModel {
  ModelConfig config = {};
  WeightFolding folding = {};
  bool has_fused_projections = false;
  bool has_lfm2_names = false;
  bool has_gpt_oss_names = false;
  bool has_mxfp4 = false;  // Matrices may be in MXFP4, as JoinMxfp4Tensors says.
  bool has_mtp = false;    // There may be tensors of layers that guess later tokens.
  bool has_interleaved_rope = false;
  bool keys_are_values = false;  // In layers without a window, as FitGemma4Tensors says.
  std::span<const LayerModule> layer_modules = {};  // With other names than a Llama's.
  // The tensors are those of a text model within a model that sees pictures, too.
  bool has_vision = false;
  // Nothing says that the head is tied but the class, which uses a head of its own if there is one.
  bool may_have_head = false;
};

// Reads Hugging Face's config.json. If a field that changes the computation is not supported, fails
// and names the field; fields that only concern training or generation are ignored.
Result<HfModel> ReadHfModel(const std::filesystem::path& path);

}  // namespace cria
