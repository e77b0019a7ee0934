#include "converter/meta/meta_checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/input/json_fields.h"
#include "converter/input/json_file.h"
#include "converter/input/whole_file.h"
#include "converter/tokenizer/sentencepiece_model.h"
#include "converter/tokenizer/tiktoken_ranks.h"
#include "converter/tokenizer/tokenizer_file.h"
#include "converter/torch/torch_archive.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

constexpr uint64_t kMaxParamsBytes = 1 << 20;
constexpr size_t kMaxShards = 64;

// How a tensor was split: every shard has all of it, a part of its rows, or a part of its columns.
// Embedding tables were split by columns until Llama 3, which splits them by rows.
enum class Split : uint8_t { kNone, kRows, kColumns, kByShape };

struct TensorName {
  std::string_view meta;
  std::string_view hugging_face;
  Split split;
};
constexpr std::array kModelNames = {
    TensorName{"tok_embeddings.weight", "model.embed_tokens.weight", Split::kByShape},
    TensorName{"norm.weight", "model.norm.weight", Split::kNone},
    TensorName{"output.weight", "lm_head.weight", Split::kRows},
};
// After "layers.N." and "model.layers.N.".
constexpr std::array kLayerNames = {
    TensorName{"attention_norm.weight", "input_layernorm.weight", Split::kNone},
    TensorName{"attention.wq.weight", "self_attn.q_proj.weight", Split::kRows},
    TensorName{"attention.wk.weight", "self_attn.k_proj.weight", Split::kRows},
    TensorName{"attention.wv.weight", "self_attn.v_proj.weight", Split::kRows},
    TensorName{"attention.wo.weight", "self_attn.o_proj.weight", Split::kColumns},
    TensorName{"ffn_norm.weight", "post_attention_layernorm.weight", Split::kNone},
    TensorName{"feed_forward.w1.weight", "mlp.gate_proj.weight", Split::kRows},
    TensorName{"feed_forward.w2.weight", "mlp.down_proj.weight", Split::kColumns},
    TensorName{"feed_forward.w3.weight", "mlp.up_proj.weight", Split::kRows},
};
// Ignored, because it is computed from the configuration.
constexpr std::string_view kFrequencies = "rope.freqs";

struct RenamedTensor {
  std::string name;
  const TensorName* row;
};
std::optional<RenamedTensor> Rename(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  std::string prefix;
  std::span<const TensorName> names = kModelNames;
  if (name.starts_with(kLayers)) {
    const size_t end = name.find('.', kLayers.size());
    if (end == std::string_view::npos) return std::nullopt;
    prefix = Format("model.{}", name.substr(0, end + 1));
    name.remove_prefix(end + 1);
    names = kLayerNames;
  }
  const auto row = std::ranges::find(names, name, &TensorName::meta);
  if (row == names.end()) return std::nullopt;
  return RenamedTensor{prefix + std::string(row->hugging_face), &*row};
}

Result<std::vector<TensorSources>> ReadShards(const std::filesystem::path& folder) {
  std::vector<TensorSources> shards;
  for (size_t i = 0;; ++i) {
    const auto path = folder / Format("consolidated.{:02}.pth", i);
    CRIA_ASSIGN_OR_RETURN(const bool exists, FileExists(path));
    if (!exists) break;
    if (i == kMaxShards) {
      return Fail(ErrorCode::kUnsupported,
                  Format("{}: is one shard more than the {} that are supported", path.string(),
                         kMaxShards));
    }
    CRIA_ASSIGN_OR_RETURN(TensorSources tensors, ReadTorchArchive(path));
    shards.push_back(std::move(tensors));
  }
  if (!shards.empty()) return shards;
  return Fail(ErrorCode::kNotFound, Format("{}: has no consolidated.00.pth", folder.string()));
}

class Joiner {
 public:
  Joiner(std::vector<TensorSources> shards, const ModelConfig& config)
      : shards_(std::move(shards)), config_(config) {}

  Result<TensorSources> Join() {
    TensorSources joined;
    for (const auto& [name, first] : shards_[0]) {
      if (name == kFrequencies) continue;
      const auto renamed = Rename(name);
      if (!renamed) {
        return Bad(first, "is not part of a Llama model", ErrorCode::kUnsupported);
      }
      CRIA_ASSIGN_OR_RETURN(TensorSource tensor, JoinOne(first, renamed->row->split));
      if (renamed->row->meta.ends_with(".wq.weight") ||
          renamed->row->meta.ends_with(".wk.weight")) {
        tensor.interleaved_head_dim = config_.head_dim;
      }
      joined.emplace(renamed->name, std::move(tensor));
    }
    for (const TensorSources& shard : shards_) {
      if (shard.size() == shards_[0].size()) continue;
      const TensorSource& any = shard.empty() ? shards_[0].begin()->second : shard.begin()->second;
      return Bad(any,
                 Format("is one of {}, but other shards have {}", shard.size(), shards_[0].size()));
    }
    return joined;
  }

 private:
  static std::unexpected<Error> Bad(const TensorSource& tensor, std::string_view what,
                                    ErrorCode code = ErrorCode::kInvalidFile) {
    return Fail(code,
                Format("{}: tensor \"{}\" {}", tensor.file->path(), Quotable(tensor.name), what));
  }

  Result<TensorSource> JoinOne(const TensorSource& first, Split split) const {
    TensorSource joined = first;
    if (split == Split::kNone || shards_.size() == 1) return joined;
    if (first.shape.size() != 2) {
      return Bad(first, Format("has shape {}, which is not a matrix", first.ShapeText()));
    }
    if (split == Split::kByShape) {
      split = first.shape[1] == config_.hidden_size ? Split::kRows : Split::kColumns;
    }
    joined.is_split_by_columns = split == Split::kColumns;
    joined.shape[joined.is_split_by_columns ? 1 : 0] *= shards_.size();
    for (size_t i = 1; i < shards_.size(); ++i) {
      const auto found = shards_[i].find(first.name);
      if (found == shards_[i].end()) {
        return Bad(first, Format("is not in shard {} as well", i), ErrorCode::kNotFound);
      }
      const TensorSource& part = found->second;
      if (part.shape != first.shape || part.type != first.type) {
        return Bad(part,
                   Format("has another shape or type than in shard 0, {}", first.ShapeText()));
      }
      joined.other_shards.push_back({part.file, part.offset});
    }
    return joined;
  }

  std::vector<TensorSources> shards_;
  const ModelConfig& config_;
};

// Meta's FeedForward: two thirds of 4 * dim, times a factor, rounded up.
Result<uint32_t> ReadIntermediateSize(const JsonFields& fields, uint32_t hidden_size) {
  CRIA_ASSIGN_OR_RETURN(const uint32_t multiple, fields.Integer("multiple_of"));
  CRIA_ASSIGN_OR_RETURN(const float factor, fields.Number("ffn_dim_multiplier", 1.0f));
  constexpr double kMax = 1 << 30;
  const uint64_t two_thirds = uint64_t{2} * 4 * hidden_size / 3;
  // Python reads the field as a double; as a float, 1.3 * 21,845 would become smaller.
  const nlohmann::json* exact = fields.Find("ffn_dim_multiplier");
  const double size =
      static_cast<double>(two_thirds) * (exact != nullptr ? exact->get<double>() : double{factor});
  if (multiple == 0 || !(size >= 1.0 && size < kMax)) {
    return fields.Bad(ErrorCode::kInvalidFile, "multiple_of",
                      "and ffn_dim_multiplier give no size");
  }
  const auto whole = static_cast<uint64_t>(size);
  return static_cast<uint32_t>(
      std::min<uint64_t>((whole + multiple - 1) / multiple * multiple, uint64_t{1} << 31));
}

Status ReadRope(const JsonFields& fields, bool has_ranks, ModelConfig& config) {
  constexpr float kFirstTheta = 10000.0f;
  LayerKind& kind = config.layer_kinds.front();
  CRIA_ASSIGN_OR_RETURN(kind.rope_theta, fields.Number("rope_theta", kFirstTheta));
  CRIA_ASSIGN_OR_RETURN(const bool is_scaled, fields.Bool("use_scaled_rope", false));
  const bool is_first = std::abs(config.rms_norm_eps - 1e-6f) < 1e-8f;
  const uint32_t otherwise = is_scaled                        ? 131072
                             : has_ranks                      ? 8192
                             : kind.rope_theta != kFirstTheta ? 16384
                             : is_first                       ? 2048
                                                              : 4096;
  CRIA_ASSIGN_OR_RETURN(config.max_position_embeddings, fields.Integer("max_seq_len", otherwise));
  if (!is_scaled) return {};
  constexpr uint32_t kMinOfFactor8 = 4096;
  kind.rope_scaling = {.type = RopeScaling::Type::kLlama3,
                       .factor = config.hidden_size < kMinOfFactor8 ? 32.0f : 8.0f,
                       .low_freq_factor = 1.0f,
                       .high_freq_factor = 4.0f,
                       .original_max_position_embeddings = 8192};
  CRIA_ASSIGN_OR_RETURN(kind.rope_scaling.factor,
                        fields.Number("rope_scaling_factor", kind.rope_scaling.factor));
  return {};
}

// Reads every field except the vocabulary's size.
Result<ModelConfig> ReadParams(const JsonFields& fields, bool has_ranks) {
  ModelConfig config = {.architecture = "LlamaForCausalLM"};
  for (const std::string_view name : {"moe", "moe_args", "vision_chunk_size", "lora_args",
                                      "quantization_args", "sliding_window"}) {
    if (fields.Find(name) == nullptr) continue;
    return fields.Bad(ErrorCode::kUnsupported, name, "is set, which is not supported");
  }
  CRIA_ASSIGN_OR_RETURN(config.hidden_size, fields.Integer("dim"));
  CRIA_ASSIGN_OR_RETURN(config.num_hidden_layers, fields.Integer("n_layers"));
  CRIA_ASSIGN_OR_RETURN(config.num_attention_heads, fields.Integer("n_heads"));
  CRIA_ASSIGN_OR_RETURN(config.num_key_value_heads,
                        fields.Integer("n_kv_heads", config.num_attention_heads));
  CRIA_ASSIGN_OR_RETURN(config.rms_norm_eps, fields.Number("norm_eps"));
  if (config.num_attention_heads == 0 || config.hidden_size % config.num_attention_heads != 0) {
    return fields.Bad(ErrorCode::kInvalidFile, "n_heads",
                      Format("is {}, which does not divide dim {}", config.num_attention_heads,
                             config.hidden_size));
  }
  config.head_dim = config.hidden_size / config.num_attention_heads;
  CRIA_ASSIGN_OR_RETURN(config.intermediate_size, ReadIntermediateSize(fields, config.hidden_size));
  CRIA_RETURN_IF_ERROR(ReadRope(fields, has_ranks, config));
  return config;
}

constexpr uint32_t kNumLlama3SpecialTokens = 256;

// Llama 3's special tokens, with ids after the ranks. They are in Meta's program and not in a
// file.
std::vector<AddedToken> Llama3SpecialTokens(uint32_t first_id) {
  struct Named {
    uint32_t place;
    std::string_view text;
  };
  constexpr std::array kNamed = {Named{0, "<|begin_of_text|>"},
                                 Named{1, "<|end_of_text|>"},
                                 Named{4, "<|finetune_right_pad_id|>"},
                                 Named{6, "<|start_header_id|>"},
                                 Named{7, "<|end_header_id|>"},
                                 Named{8, "<|eom_id|>"},
                                 Named{9, "<|eot_id|>"},
                                 Named{10, "<|python_tag|>"}};
  std::vector<AddedToken> tokens;
  uint32_t reserved = 0;
  for (uint32_t place = 0; place < kNumLlama3SpecialTokens; ++place) {
    const auto* named = std::ranges::find(kNamed, place, &Named::place);
    tokens.push_back({first_id + place,
                      named != kNamed.end() ? std::string(named->text)
                                            : Format("<|reserved_special_token_{}|>", reserved++),
                      true});
  }
  return tokens;
}

struct MetaTokenizer {
  TokenizerMaterial material;
  bool has_ranks;  // It has tiktoken's ranks; otherwise it is SentencePiece's.
};

// Fails if there are fewer ranks than the model has, because the ids of the special tokens, which
// follow, would be wrong. More are an error of BuildVocabulary.
Status CheckNumRanks(const MetaTokenizer& tokenizer, size_t vocab_size) {
  const size_t num_tokens = tokenizer.material.draft.pieces.size();
  if (!tokenizer.has_ranks || num_tokens >= vocab_size) return {};
  return Fail(ErrorCode::kInvalidFile,
              Format("{}: has {} ranks, which with {} special tokens are {} tokens, but the "
                     "model has {}; the file may have been cut short, or belong to other weights: "
                     "copy it again",
                     tokenizer.material.where, num_tokens - kNumLlama3SpecialTokens,
                     kNumLlama3SpecialTokens, num_tokens, vocab_size));
}

Result<MetaTokenizer> ReadMetaTokenizer(const std::filesystem::path& folder) {
  // Some distributions of Llama 3 have it beside the folder of weights. It is not searched for
  // there: the user has to copy it.
  const auto path = folder / "tokenizer.model";
  CRIA_ASSIGN_OR_RETURN(const std::string file, ReadTokenizerFile(path));
  if (IsSentencePieceModel(file)) {
    CRIA_ASSIGN_OR_RETURN(TokenizerMaterial material, ReadTokenizer(folder));
    return MetaTokenizer{std::move(material), false};
  }
  const auto num_lines = static_cast<uint32_t>(std::min<ptrdiff_t>(
      std::ranges::count(file, '\n') + (file.ends_with('\n') ? 0 : 1), kMaxDraftPieces - 1024));
  MetaTokenizer tokenizer = {.material = {.where = path.string()}, .has_ranks = true};
  CRIA_ASSIGN_OR_RETURN(tokenizer.material.draft,
                        ReadTiktokenRanks(file, Llama3SpecialTokens(num_lines), path.string()));
  return tokenizer;
}

}  // namespace

Result<Checkpoint> OpenMetaCheckpoint(const std::filesystem::path& folder) {
  const auto params_path = folder / "params.json";
  CRIA_ASSIGN_OR_RETURN(const auto params, ReadJsonFile(params_path, kMaxParamsBytes));
  const JsonFields fields(params, params_path.string());
  CRIA_ASSIGN_OR_RETURN(MetaTokenizer tokenizer, ReadMetaTokenizer(folder));
  Checkpoint checkpoint = {
      .name = FolderName(folder), .folder = folder, .described_by = "params.json"};
  CRIA_ASSIGN_OR_RETURN(checkpoint.config, ReadParams(fields, tokenizer.has_ranks));
  CRIA_ASSIGN_OR_RETURN(std::vector<TensorSources> shards, ReadShards(folder));
  CRIA_ASSIGN_OR_RETURN(checkpoint.tensors, Joiner(std::move(shards), checkpoint.config).Join());
  const auto embedding = checkpoint.tensors.find("model.embed_tokens.weight");
  if (embedding == checkpoint.tensors.end()) {
    return Fail(ErrorCode::kNotFound,
                Format("{}: tensor \"tok_embeddings.weight\" is missing", folder.string()));
  }
  if (embedding->second.shape.empty()) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: tensor \"tok_embeddings.weight\" has no rows", folder.string()));
  }
  // params.json may have -1.
  checkpoint.config.vocab_size =
      static_cast<uint32_t>(std::min<uint64_t>(embedding->second.shape.front(), 1u << 31));
  CRIA_RETURN_IF_ERROR(CheckNumRanks(tokenizer, checkpoint.config.vocab_size));
  checkpoint.tokenizer = std::move(tokenizer.material);
  const auto head = checkpoint.tensors.find("lm_head.weight");
  checkpoint.config.tie_word_embeddings =
      head == checkpoint.tensors.end() || (head->second.file == embedding->second.file &&
                                           head->second.offset == embedding->second.offset);
  if (const Status valid = ValidateConfig(checkpoint.config); !valid) {
    return Fail(valid.error().code(),
                Format("{}: {}", params_path.string(), valid.error().message()));
  }
  return checkpoint;
}

Result<CheckpointVocabulary> OpenMetaVocabulary(const std::filesystem::path& folder) {
  CRIA_ASSIGN_OR_RETURN(MetaTokenizer tokenizer, ReadMetaTokenizer(folder));
  CRIA_ASSIGN_OR_RETURN(const auto params, ReadJsonFile(folder / "params.json", kMaxParamsBytes));
  // Some files have -1, and the weights, which say how many, may be missing.
  const auto vocab_size = params.find("vocab_size");
  if (vocab_size != params.end() && vocab_size->is_number_unsigned()) {
    CRIA_RETURN_IF_ERROR(CheckNumRanks(tokenizer, vocab_size->get<uint64_t>()));
  }
  return CheckpointVocabulary{FolderName(folder), std::move(tokenizer.material)};
}

}  // namespace cria
