#include "converter/gguf/gguf_checkpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/checkpoint/expert_tensors.h"
#include "converter/checkpoint/fold_weights.h"
#include "converter/checkpoint/fused_tensors.h"
#include "converter/checkpoint/gemma4_tensors.h"
#include "converter/checkpoint/layer_kinds.h"
#include "converter/checkpoint/lfm2_tensors.h"
#include "converter/checkpoint/linear_attention_tensors.h"
#include "converter/checkpoint/taps.h"
#include "converter/gguf/gguf_config.h"
#include "converter/gguf/gguf_file.h"
#include "converter/gguf/gguf_gemma4.h"
#include "converter/gguf/gguf_reranking.h"
#include "converter/gguf/gguf_rope_factors.h"
#include "converter/gguf/gguf_tokenizer.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

constexpr std::string_view kSplitCount = "split.count";
constexpr char kDescribedBy[] = "its metadata or another tensor";

struct TensorName {
  std::string_view ggml;
  std::string_view hugging_face;
};
// Without a suffix; and with one that the other name does not have.
constexpr std::string_view kGgmlDecayRate = "ssm_a";
constexpr std::string_view kGgmlDirect = "ssm_d";
constexpr std::string_view kGgmlDtBias = "ssm_dt";
constexpr std::string_view kGgmlStateNorm = "ssm_norm";
constexpr std::string_view kGgmlSinks = "attn_sinks";

constexpr std::array kModelNames = {
    TensorName{"token_embd", "model.embed_tokens"},
    TensorName{"output_norm", "model.norm"},
    TensorName{"output", "lm_head"},
};
// After "blk.N." and "model.layers.N.".
constexpr std::array kLayerNames = {
    TensorName{"attn_norm", "input_layernorm"},
    TensorName{"attn_q", "self_attn.q_proj"},
    TensorName{"attn_k", "self_attn.k_proj"},
    TensorName{"attn_v", "self_attn.v_proj"},
    TensorName{"attn_q_norm", "self_attn.q_norm"},
    TensorName{"attn_k_norm", "self_attn.k_norm"},
    TensorName{"attn_output", "self_attn.o_proj"},
    TensorName{"ffn_norm", "post_attention_layernorm"},
    // Another name of the same, Seed-OSS's.
    TensorName{"post_attention_norm", "post_attention_layernorm"},
    TensorName{"ffn_gate", "mlp.gate_proj"},
    TensorName{"ffn_up", "mlp.up_proj"},
    TensorName{"ffn_down", "mlp.down_proj"},
    TensorName{"ffn_gate_inp", "mlp.gate"},
    TensorName{"ffn_gate_exps", "mlp.experts.gate_proj"},
    TensorName{"ffn_up_exps", "mlp.experts.up_proj"},
    TensorName{"ffn_down_exps", "mlp.experts.down_proj"},
    TensorName{"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    TensorName{"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    TensorName{"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    TensorName{"ffn_down_shexp", "mlp.shared_expert.down_proj"},
};
// These names replace others for architectures that normalize what attention and the feed-forward
// add.
constexpr std::array kOutputNormNames = {
    TensorName{"post_attention_norm", "post_attention_layernorm"},
    TensorName{"ffn_norm", "pre_feedforward_layernorm"},
    TensorName{"post_ffw_norm", "post_feedforward_layernorm"},
};
// This name is added for gpt-oss.
constexpr std::array kGptOssNames = {TensorName{kGgmlSinks, "self_attn.sinks"}};
// These names are added for architectures with short convolutions.
constexpr std::array kShortConvNames = {
    TensorName{"shortconv.in_proj", "conv.in_proj"},
    TensorName{"shortconv.conv", "conv.conv"},
    TensorName{"shortconv.out_proj", "conv.out_proj"},
    TensorName{"exp_probs_b", "mlp.expert_bias"},
};
// These names are added for architectures with linear attention.
constexpr std::array kLinearAttentionNames = {
    TensorName{"post_attention_norm", "post_attention_layernorm"},
    TensorName{"attn_qkv", "linear_attn.in_proj_qkv"},
    TensorName{"attn_gate", "linear_attn.in_proj_z"},
    TensorName{"ssm_in", "linear_attn.in_proj_qkvz"},
    TensorName{"ssm_beta", "linear_attn.in_proj_b"},
    TensorName{"ssm_alpha", "linear_attn.in_proj_a"},
    TensorName{"ssm_ba", "linear_attn.in_proj_ba"},
    TensorName{"ssm_conv1d", "linear_attn.conv1d"},
    TensorName{kGgmlStateNorm, "linear_attn.norm"},
    TensorName{"ssm_out", "linear_attn.out_proj"},
    TensorName{kGgmlDecayRate, "linear_attn.A_log"},
    TensorName{kGgmlDtBias, "linear_attn.dt_bias"},
    // These are in the block that guesses tokens.
    TensorName{"nextn.eh_proj", "mtp.fc"},
    TensorName{"nextn.enorm", "mtp.embedding_norm"},
    TensorName{"nextn.hnorm", "mtp.hidden_norm"},
    TensorName{"nextn.shared_head_norm", "mtp.norm"},
};
// Whole names of Gemma 4's tensors, of the model and in layers.
constexpr std::array kGemma4ModelNames = {
    TensorName{"per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight"},
    TensorName{"per_layer_model_proj.weight", "model.per_layer_model_projection.weight"},
    TensorName{"per_layer_proj_norm.weight", "model.per_layer_projection_norm.weight"},
};
constexpr std::array kGemma4Names = {
    TensorName{"inp_gate.weight", "per_layer_input_gate.weight"},
    TensorName{"proj.weight", "per_layer_projection.weight"},
    TensorName{"post_norm.weight", "post_per_layer_input_norm.weight"},
    TensorName{"layer_output_scale.weight", "layer_scalar"},
    TensorName{"ffn_gate_inp.scale", "router.scale"},
    TensorName{"ffn_gate_up_exps.weight", "mlp.experts.gate_up_proj"},
    TensorName{"ffn_down_exps.scale", "router.per_expert_scale"},
    TensorName{"post_ffw_norm_1.weight", "post_feedforward_layernorm_1.weight"},
    TensorName{"pre_ffw_norm_2.weight", "pre_feedforward_layernorm_2.weight"},
    TensorName{"post_ffw_norm_2.weight", "post_feedforward_layernorm_2.weight"},
};
// These names are added for architectures with Mamba.
constexpr std::array kMambaNames = {
    TensorName{"ssm_in", "mamba.in_proj"},     TensorName{"ssm_conv1d", "mamba.conv1d"},
    TensorName{kGgmlDecayRate, "mamba.A_log"}, TensorName{kGgmlDirect, "mamba.D"},
    TensorName{kGgmlDtBias, "mamba.dt_bias"},  TensorName{kGgmlStateNorm, "mamba.norm"},
    TensorName{"ssm_out", "mamba.out_proj"},
};
// This name outside layers is the last norm's, not that of one behind the embedding.
constexpr std::array kShortConvModelNames = {TensorName{"token_embd_norm", "model.norm"}};
// These names replace others for architectures with fused projections.
constexpr std::array kFusedNames = {
    TensorName{"attn_qkv", "self_attn.qkv_proj"},
    TensorName{"ffn_up", "mlp.gate_up_proj"},
};

// Vectors that Mamba's files have as matrices, of one column or a row for each group.
bool IsOfStates(std::string_view module) {
  return module == kGgmlDecayRate || module == kGgmlDirect || module == kGgmlStateNorm;
}

bool IsInterleaved(std::string_view module) { return module == "attn_q" || module == "attn_k"; }

// Empty if the name is not known.
std::string_view RenameModule(std::string_view module, bool is_of_layer,
                              const GgufArchitecture& architecture) {
  const auto find = [&](std::span<const TensorName> names) -> std::string_view {
    const auto found = std::ranges::find(names, module, &TensorName::ggml);
    return found == names.end() ? std::string_view() : found->hugging_face;
  };
  if (!is_of_layer) {
    const std::string_view other =
        architecture.has_short_conv ? find(kShortConvModelNames) : std::string_view();
    return other.empty() ? find(kModelNames) : other;
  }
  std::string_view renamed;
  if (architecture.norm_placement != NormPlacement::kBefore) renamed = find(kOutputNormNames);
  if (renamed.empty() && architecture.has_fused_projections) renamed = find(kFusedNames);
  if (renamed.empty() && architecture.has_short_conv) renamed = find(kShortConvNames);
  if (renamed.empty() && architecture.has_linear_attention) renamed = find(kLinearAttentionNames);
  if (renamed.empty() && architecture.has_mamba) renamed = find(kMambaNames);
  if (renamed.empty() && architecture.is_gpt_oss) renamed = find(kGptOssNames);
  return renamed.empty() ? find(kLayerNames) : renamed;
}

// Hugging Face's name of a tensor, and ggml's name of its module; unknown names do not change.
struct RenamedTensor {
  std::string name;
  std::string_view module;
};
RenamedTensor Rename(std::string_view name, const GgufArchitecture& architecture) {
  // ".weight" or ".bias"
  const bool has_none =
      name.ends_with(Format(".{}", kGgmlDecayRate)) || name.ends_with(Format(".{}", kGgmlDirect));
  const size_t suffix = has_none ? name.size() : name.rfind('.');
  if (suffix == std::string_view::npos) return {std::string(name), ""};
  std::string_view module = name.substr(0, suffix);
  std::string prefix;
  const bool is_of_layer = module.starts_with("blk.");
  if (is_of_layer) {
    const size_t end = module.find('.', 4);
    if (end == std::string_view::npos) return {std::string(name), ""};
    prefix = Format("model.layers.{}.", module.substr(4, end - 4));
    module.remove_prefix(end + 1);
  }
  if (architecture.is_gemma4) {
    const std::string_view whole =
        is_of_layer ? name.substr(static_cast<size_t>(module.data() - name.data())) : name;
    const auto names = is_of_layer ? std::span<const TensorName>(kGemma4Names) : kGemma4ModelNames;
    const auto found = std::ranges::find(names, whole, &TensorName::ggml);
    if (found != names.end()) return {prefix + std::string(found->hugging_face), module};
  }
  const std::string_view renamed = RenameModule(module, is_of_layer, architecture);
  if (renamed.empty()) return {std::string(name), ""};
  // A bias without a matrix is a tensor of its own name, and so are sinks.
  if (module == "exp_probs_b" || module == kGgmlDtBias || module == kGgmlSinks) {
    return {prefix + std::string(renamed), module};
  }
  return {prefix + std::string(renamed) + std::string(name.substr(suffix)), module};
}

// The path of part `number`, which counts from 1, in the same folder as a part that is named as
// llama.cpp names parts: "...-00002-of-00003.gguf".
std::optional<std::filesystem::path> PathOfPart(const std::filesystem::path& path, uint32_t number,
                                                uint32_t count) {
  constexpr size_t kSuffixBytes = std::string_view("-00001-of-00003.gguf").size();
  const std::string name = path.filename().string();
  if (name.size() < kSuffixBytes || !name.ends_with(Format("-of-{:05}.gguf", count))) {
    return std::nullopt;
  }
  return path.parent_path() / Format("{}-{:05}-of-{:05}.gguf",
                                     name.substr(0, name.size() - kSuffixBytes), number, count);
}

Result<uint32_t> ReadPartNumber(const GgufMetadata& metadata, uint32_t count) {
  CRIA_ASSIGN_OR_RETURN(const uint32_t number, metadata.Integer("split.no"));
  CRIA_ASSIGN_OR_RETURN(const uint32_t stated, metadata.Integer(kSplitCount));
  if (number < count && stated == count) return number;
  return metadata.Bad("split.no", Format("is {} of {}, but part {} belongs to {} parts", number,
                                         stated, number, count));
}

// The metadata of the first file, and the tensors of all files.
Result<GgufFile> ReadAllParts(const std::filesystem::path& path) {
  constexpr uint32_t kMaxParts = 10000;
  CRIA_ASSIGN_OR_RETURN(GgufFile given, ReadGgufFile(path));
  CRIA_ASSIGN_OR_RETURN(const uint32_t count, given.metadata.Integer(kSplitCount, 1));
  if (count <= 1) return given;
  CRIA_ASSIGN_OR_RETURN(const uint32_t given_number, ReadPartNumber(given.metadata, count));
  if (count > kMaxParts || !PathOfPart(path, 1, count)) {
    return given.metadata.Bad(
        kSplitCount, Format("is {}, but the name of the file does not end in "
                            "-{:05}-of-{:05}.gguf, which is needed to find the other parts",
                            count, given_number + 1, count));
  }
  std::optional<GgufFile> whole;
  for (uint32_t i = 0; i < count; ++i) {
    const std::filesystem::path part_path = *PathOfPart(path, i + 1, count);
    // NOLINTNEXTLINE(bugprone-use-after-move): it is moved only once, for one value of i.
    Result<GgufFile> part = i == given_number ? std::move(given) : ReadGgufFile(part_path);
    if (!part) return part;
    CRIA_ASSIGN_OR_RETURN(const uint32_t number, ReadPartNumber(part->metadata, count));
    if (number != i) {
      return part->metadata.Bad("split.no", Format("is {} instead of {}", number, i));
    }
    if (!whole) {
      whole = std::move(*part);
    } else {
      std::ranges::move(part->tensors, std::back_inserter(whole->tensors));
    }
  }
  CRIA_ASSIGN_OR_RETURN(
      const uint32_t num_tensors,
      whole->metadata.Integer("split.tensors.count", static_cast<uint32_t>(whole->tensors.size())));
  if (num_tensors != whole->tensors.size()) {
    return whole->metadata.Bad("split.tensors.count", Format("is {}, but the parts have {}",
                                                             num_tensors, whole->tensors.size()));
  }
  return std::move(*whole);
}

// llama.cpp's enum llama_pooling_type.
Result<std::optional<Pooling>> ReadPooling(const GgufMetadata& metadata) {
  CRIA_ASSIGN_OR_RETURN(const std::string architecture,
                        metadata.String("general.architecture", ""));
  const std::string key = architecture + ".pooling_type";
  CRIA_ASSIGN_OR_RETURN(const uint32_t type, metadata.Integer(key, 0));
  switch (type) {
    case 0:
      return std::nullopt;
    case 1:
      return Pooling::kMean;
    case 3:
      return Pooling::kLast;
    case 4:  // See TakeGgufReranking.
      return std::nullopt;
    default:
      return metadata.Bad(
          key,
          Format("is {}{}, which this version does not support", type, type == 2 ? " (cls)" : ""),
          ErrorCode::kUnsupported);
  }
}

// The name of the file without its extension and its part numbers.
std::string NameOf(const std::filesystem::path& path) {
  std::string name = path.stem().string();
  constexpr size_t kPartBytes = std::string_view("-00001-of-00003").size();
  const size_t of = name.rfind("-of-");
  if (of != std::string::npos && of + 9 == name.size() && of > 6 && name[of - 6] == '-') {
    name.resize(name.size() - kPartBytes);
  }
  return name;
}

// Whether a tensor, under either name, is of a block behind the model's layers.
bool IsOfLaterBlock(std::string_view name, uint32_t num_layers) {
  constexpr std::string_view kLayers = "model.layers.";
  constexpr std::string_view kBlocks = "blk.";
  const std::string_view prefix = name.starts_with(kBlocks) ? kBlocks : kLayers;
  if (!name.starts_with(prefix)) return false;
  uint32_t index = 0;
  const char* const begin = name.data() + prefix.size();
  const auto parsed = std::from_chars(begin, name.data() + name.size(), index);
  return parsed.ec == std::errc() && index >= num_layers;
}

// Leaves out the blocks behind the model's layers unless they are one that guesses tokens, with all
// that it needs and without an embedding and a head of its own.
void LeaveOutLaterBlocks(Checkpoint& checkpoint) {
  ModelConfig& config = checkpoint.config;
  const std::string layer = Format("model.layers.{}.", config.num_hidden_layers);
  const auto has = [&](std::string_view name) {
    return checkpoint.tensors.contains(Format("{}{}.weight", layer, name));
  };
  const bool is_whole = has("mtp.fc") && has("mtp.embedding_norm") && has("mtp.hidden_norm") &&
                        has("mtp.norm") && has("input_layernorm");
  const bool has_others = std::ranges::any_of(checkpoint.tensors, [](const auto& tensor) {
    return tensor.first.contains(".nextn.");  // A name that is not known.
  });
  if (config.mtp_num_hidden_layers != 0 && is_whole && !has_others) return;
  config.mtp_num_hidden_layers = 0;
  const size_t num_left_out = std::erase_if(checkpoint.tensors, [&](const auto& tensor) {
    return IsOfLaterBlock(tensor.first, config.num_hidden_layers);
  });
  if (num_left_out == 0) return;
  checkpoint.notes.push_back(
      Format("the part of the file that drafts tokens ({} tensors) is left out: this version knows "
             "only a single layer without an embedding and a head of its own",
             num_left_out));
}

Status CheckConfig(const Checkpoint& checkpoint) {
  const Status valid = ValidateConfig(checkpoint.config);
  if (valid) return {};
  return Fail(valid.error().code(),
              Format("{}: {}", checkpoint.folder.string(), valid.error().message()));
}

// Reads the configuration's fields for which the metadata has no keys. One layer with a tensor
// decides for all layers: MapTensors fails if another layer does not have it.
void ReadWhatTensorsTell(Checkpoint& checkpoint) {
  const auto has = [&](std::string_view name) { return checkpoint.tensors.contains(name); };
  ModelConfig& config = checkpoint.config;
  config.tie_word_embeddings = !has("lm_head.weight");
  config.layer_scalar = has("model.layers.0.layer_scalar");
  const auto is_attention = [&](size_t i) { return config.layer_kind(i).has_attention(); };
  size_t attention = 0;
  size_t mamba = 0;
  const size_t num_layers = std::min(config.num_hidden_layers, kMaxHiddenLayers);
  while (attention + 1 < num_layers && !is_attention(attention)) ++attention;
  while (mamba + 1 < num_layers && is_attention(mamba)) ++mamba;
  const std::string mixer = Format("model.layers.{}.self_attn.", attention);
  if (has(mixer + "q_proj.bias")) config.qkv_bias = true;
  config.o_bias = has(mixer + "o_proj.bias");
  config.mamba_conv_bias = has(Format("model.layers.{}.mamba.conv1d.bias", mamba));
  config.mlp_bias = has("model.layers.0.mlp.up_proj.bias");
  if (config.num_experts == 0) return;
  std::vector<LayerKind> layers;
  for (size_t i = 0; i < std::min(config.num_hidden_layers, kMaxHiddenLayers); ++i) {
    layers.push_back(config.layer_kind(i));
    layers.back().dense_mlp = !has(Format("model.layers.{}.mlp.gate.weight", i));
    if (has(Format("model.layers.{}.mlp.expert_bias", i))) config.use_expert_bias = true;
  }
  SetLayerKinds(std::move(layers), config);
}

}  // namespace

Result<Checkpoint> OpenGgufCheckpoint(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(GgufFile file, ReadAllParts(path));
  CRIA_ASSIGN_OR_RETURN(const GgufArchitecture architecture, ReadGgufArchitecture(file.metadata));
  Checkpoint checkpoint = {.name = NameOf(path), .folder = path, .described_by = kDescribedBy};
  CRIA_ASSIGN_OR_RETURN(checkpoint.pooling, ReadPooling(file.metadata));
  CRIA_ASSIGN_OR_RETURN(checkpoint.reranking, TakeGgufReranking(file.metadata, file.tensors));
  CRIA_ASSIGN_OR_RETURN(checkpoint.tokenizer, ReadGgufTokenizer(file.metadata));

  const auto embedding = std::ranges::find(file.tensors, "token_embd.weight", &TensorSource::name);
  if (embedding == file.tensors.end()) {
    return Fail(ErrorCode::kNotFound,
                Format("{}: tensor \"token_embd.weight\" is missing", path.string()),
                RemedyKind::kConvertVocabulary);
  }
  const auto vocab_size =
      std::min<uint64_t>(embedding->shape.front(), std::numeric_limits<uint32_t>::max());
  CRIA_ASSIGN_OR_RETURN(checkpoint.config, ReadGgufConfig(file.metadata, architecture,
                                                          static_cast<uint32_t>(vocab_size)));
  for (TensorSource& tensor : file.tensors) {
    const RenamedTensor renamed = Rename(tensor.name, architecture);
    // The model's is positive.
    if (renamed.module == kGgmlDecayRate) tensor.factor = -1.0f;
    if (architecture.is_interleaved && IsInterleaved(renamed.module)) {
      tensor.interleaved_head_dim = checkpoint.config.head_dim;
      tensor.interleaved_channels = checkpoint.config.rotary_dim;
    }
    if (architecture.has_mamba && IsOfStates(renamed.module))
      tensor.shape = {tensor.num_elements()};
    // It is one row of a matrix elsewhere.
    if (renamed.module == "ffn_gate_inp_shexp" && tensor.shape.size() == 1) {
      tensor.shape.insert(tensor.shape.begin(), 1);
    }
    if (!checkpoint.tensors.emplace(renamed.name, std::move(tensor)).second) {
      return Fail(ErrorCode::kInvalidFile,
                  Format("{}: tensor \"{}\" appears twice", path.string(), Quotable(renamed.name)));
    }
  }
  if (architecture.has_linear_attention) LeaveOutLaterBlocks(checkpoint);
  if (architecture.has_fused_projections) CRIA_RETURN_IF_ERROR(SplitFusedTensors(checkpoint));
  if (architecture.has_linear_attention || architecture.has_mamba) {
    CRIA_RETURN_IF_ERROR(CheckConfig(checkpoint));
    CRIA_RETURN_IF_ERROR(SplitLinearAttention(checkpoint));
  }
  CRIA_RETURN_IF_ERROR(TransposeTaps(checkpoint));
  CRIA_RETURN_IF_ERROR(NormalizeExpertTensors(checkpoint));
  ReadWhatTensorsTell(checkpoint);
  if (architecture.is_gemma4) {
    CRIA_RETURN_IF_ERROR(ApplyGgufGemma4Factors(checkpoint));
    CRIA_RETURN_IF_ERROR(CheckConfig(checkpoint));
    CRIA_RETURN_IF_ERROR(FitGemma4Tensors(checkpoint, KeysAsValues::kWhereMissing));
  } else {
    CRIA_RETURN_IF_ERROR(
        ApplyGgufRopeFactors(file.metadata, architecture, checkpoint.tensors, checkpoint.config));
  }
  CRIA_ASSIGN_OR_RETURN(checkpoint.folding,
                        ReadGgufFolding(file.metadata, architecture, checkpoint.config));
  MoveAttentionFactor(checkpoint.config, checkpoint.folding);
  CRIA_RETURN_IF_ERROR(CheckConfig(checkpoint));
  return checkpoint;
}

Result<CheckpointVocabulary> OpenGgufVocabulary(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(const GgufFile file, ReadGgufFile(path));
  CheckpointVocabulary vocabulary = {.name = NameOf(path)};
  CRIA_ASSIGN_OR_RETURN(vocabulary.tokenizer, ReadGgufTokenizer(file.metadata));
  return vocabulary;
}

}  // namespace cria
