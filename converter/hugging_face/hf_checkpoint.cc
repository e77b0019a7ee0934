#include "converter/hugging_face/hf_checkpoint.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "converter/checkpoint/expert_tensors.h"
#include "converter/checkpoint/fused_tensors.h"
#include "converter/checkpoint/gemma4_tensors.h"
#include "converter/checkpoint/gpt_oss_tensors.h"
#include "converter/checkpoint/lfm2_tensors.h"
#include "converter/checkpoint/linear_attention_tensors.h"
#include "converter/checkpoint/mxfp4_tensors.h"
#include "converter/checkpoint/taps.h"
#include "converter/hugging_face/hf_config.h"
#include "converter/hugging_face/hf_pooling.h"
#include "converter/hugging_face/hf_reranking.h"
#include "converter/hugging_face/hf_xielu.h"
#include "converter/hugging_face/safetensors.h"
#include "converter/input/json_file.h"
#include "converter/input/whole_file.h"
#include "converter/torch/torch_archive.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

constexpr uint64_t kMaxIndexBytes = 100'000'000;

// A format of weights: one file with all tensors, or several with an index.
struct WeightsFormat {
  const char* single_file;
  const char* index_file;
  Result<TensorSources> (*read)(const std::filesystem::path& path);
};
// In the order in which transformers looks for them.
constexpr std::array kFormats = {
    WeightsFormat{"model.safetensors", "model.safetensors.index.json", ReadSafetensors},
    WeightsFormat{"pytorch_model.bin", "pytorch_model.bin.index.json", ReadTorchArchive}};

// A shard must be a file in the folder itself; an index must not refer to other folders.
bool IsPlainName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && !name.contains('/') &&
         !name.contains('\\') && !name.contains('\0');
}

Result<TensorSources> ReadShards(const std::filesystem::path& folder, const WeightsFormat& format) {
  const std::filesystem::path index_path = folder / format.index_file;
  CRIA_ASSIGN_OR_RETURN(const auto index, ReadJsonFile(index_path, kMaxIndexBytes));
  const auto bad = [&](const std::string& what) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: {}", index_path.string(), what));
  };
  const auto weight_map = index.find("weight_map");
  if (weight_map == index.end() || !weight_map->is_object()) {
    return bad("weight_map is missing or not an object");
  }
  std::map<std::string, TensorSources, std::less<>> shards;
  TensorSources tensors;
  for (const auto& [tensor, shard] : weight_map->items()) {
    if (!shard.is_string() || !IsPlainName(shard.get_ref<const std::string&>())) {
      return bad(
          Format("weight_map.{} is not the name of a file in the same folder", Quotable(tensor)));
    }
    const auto& file_name = shard.get_ref<const std::string&>();
    auto found = shards.find(file_name);
    if (found == shards.end()) {
      CRIA_ASSIGN_OR_RETURN(TensorSources sources, format.read(folder / file_name));
      found = shards.emplace(file_name, std::move(sources)).first;
    }
    auto node = found->second.extract(tensor);
    if (node.empty()) {
      return bad(Format("says that {} has tensor \"{}\", but it does not", Quotable(file_name),
                        Quotable(tensor)));
    }
    tensors.insert(std::move(node));
  }
  return tensors;
}

Result<TensorSources> ReadTensors(const std::filesystem::path& folder) {
  for (const WeightsFormat& format : kFormats) {
    CRIA_ASSIGN_OR_RETURN(const bool is_single, FileExists(folder / format.single_file));
    if (is_single) return format.read(folder / format.single_file);
    CRIA_ASSIGN_OR_RETURN(const bool has_index, FileExists(folder / format.index_file));
    if (has_index) return ReadShards(folder, format);
  }
  return Fail(ErrorCode::kNotFound,
              Format("{}: has neither {} nor {}; for GGUF and llama2.c, give the file itself",
                     folder.string(), kFormats[0].single_file, kFormats[0].index_file));
}

// Where the parts of a model that sees pictures begin, in the names of newer and older files.
struct PartPrefix {
  std::string_view prefix;
  std::string_view replacement;
};
constexpr std::array kTextPrefixes = {PartPrefix{"model.language_model.", "model."},
                                      PartPrefix{"model.text_model.", "model."},
                                      PartPrefix{"language_model.model.", "model."},
                                      PartPrefix{"language_model.lm_head.", "lm_head."}};
constexpr std::array<std::string_view, 12> kVisionPrefixes = {
    "model.vision_tower.", "model.multi_modal_projector.",
    "vision_tower.",       "multi_modal_projector.",
    "model.vision_model.", "model.connector.",
    "model.image_newline", "image_newline",
    "model.visual.",       "model.embed_vision.",
    "model.audio_tower.",  "model.embed_audio."};

bool IsOfVision(std::string_view name) {
  return std::ranges::any_of(kVisionPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// Bytes that are not part of MXFP4 are codes of a way to quantize that is not read.
Status RefuseBytes(const Checkpoint& checkpoint) {
  for (const auto& [name, source] : checkpoint.tensors) {
    if (source.type == ElementType::kU8) return UnsupportedDtype(source.file->path(), name, "U8");
  }
  return {};
}

// The names of the layer that guesses tokens, and what they are in a layer behind the others.
constexpr std::array kMtpNames = {PartPrefix{"mtp.layers.0.", ""}, PartPrefix{"mtp.fc.", "mtp.fc."},
                                  PartPrefix{"mtp.norm.", "mtp.norm."},
                                  PartPrefix{"mtp.pre_fc_norm_embedding.", "mtp.embedding_norm."},
                                  PartPrefix{"mtp.pre_fc_norm_hidden.", "mtp.hidden_norm."}};

const PartPrefix* FindMtpName(std::string_view name) {
  const auto found = std::ranges::find_if(
      kMtpNames, [&](const PartPrefix& part) { return name.starts_with(part.prefix); });
  return found == kMtpNames.end() ? nullptr : &*found;
}

// Makes the layer that guesses tokens one behind the model's own. Leaves it out if it has several
// layers, or an embedding or a head of its own.
Status TakeMtp(Checkpoint& checkpoint) {
  TensorSources tensors;
  for (auto& [name, source] : checkpoint.tensors) {
    if (name.starts_with("mtp.")) tensors.emplace(name, std::move(source));
  }
  if (tensors.empty()) return {};
  std::erase_if(checkpoint.tensors,
                [](const auto& tensor) { return tensor.first.starts_with("mtp."); });
  const bool is_known = std::ranges::all_of(
      tensors, [](const auto& tensor) { return FindMtpName(tensor.first) != nullptr; });
  const bool is_whole = std::ranges::all_of(kMtpNames, [&](const PartPrefix& part) {
    return std::ranges::any_of(
        tensors, [&](const auto& tensor) { return tensor.first.starts_with(part.prefix); });
  });
  if (!is_known || !is_whole) {
    checkpoint.notes.push_back(
        Format("the part of the checkpoint that drafts tokens (mtp, {} tensors) is left out: this "
               "version knows only a single layer without an embedding and a head of its own",
               tensors.size()));
    return {};
  }
  ModelConfig& config = checkpoint.config;
  for (auto& [name, source] : tensors) {
    const PartPrefix& part = *FindMtpName(name);
    std::string renamed = Format("model.layers.{}.{}{}", config.num_hidden_layers, part.replacement,
                                 name.substr(part.prefix.size()));
    CRIA_RETURN_IF_ERROR(AddTensor(std::move(renamed), std::move(source), checkpoint));
  }
  config.mtp_num_hidden_layers = 1;
  return {};
}

// The model's element is exp(A_log).
void MakeDecayRates(Checkpoint& checkpoint) {
  for (auto& [name, source] : checkpoint.tensors) {
    if (name.ends_with(".linear_attn.A_log") || name.ends_with(".mamba.A_log")) {
      source.is_logarithm = true;
    }
  }
}

// Keeps the text model's tensors, under the names of a model that is only that.
Status LeaveOutVision(Checkpoint& checkpoint) {
  size_t num_left_out = 0;
  for (auto& [name, source] : std::exchange(checkpoint.tensors, {})) {
    if (IsOfVision(name)) {
      ++num_left_out;
      continue;
    }
    std::string renamed = name;
    for (const auto& [prefix, replacement] : kTextPrefixes) {
      if (!name.starts_with(prefix)) continue;
      renamed = std::string(replacement) + name.substr(prefix.size());
      break;
    }
    CRIA_RETURN_IF_ERROR(AddTensor(std::move(renamed), std::move(source), checkpoint));
  }
  if (num_left_out == 0) return {};
  checkpoint.notes.push_back(Format(
      "the vision part of the checkpoint ({} tensors) is left out: the model reads and writes "
      "text only",
      num_left_out));
  return {};
}

// "model.layers.N.", and what comes after it; both are empty for a tensor that is of no layer.
std::pair<std::string_view, std::string_view> SplitAtLayer(std::string_view name) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!name.starts_with(kLayers)) return {};
  const size_t dot = name.find('.', kLayers.size());
  if (dot == std::string_view::npos) return {};
  return {name.substr(0, dot + 1), name.substr(dot + 1)};
}

// Gives modules of layers the names that a Llama has for them.
Status RenameModules(std::span<const LayerModule> modules, Checkpoint& checkpoint) {
  if (modules.empty()) return {};
  for (auto& [name, source] : std::exchange(checkpoint.tensors, {})) {
    const auto [layer, rest] = SplitAtLayer(name);
    std::string renamed = name;
    for (const LayerModule& module : modules) {
      if (!rest.starts_with(module.name) || !rest.substr(module.name.size()).starts_with('.')) {
        continue;
      }
      renamed = Format("{}{}{}", layer, module.llama_name, rest.substr(module.name.size()));
    }
    CRIA_RETURN_IF_ERROR(AddTensor(std::move(renamed), std::move(source), checkpoint));
  }
  return {};
}

// Checkpoints of models without a head may have names that begin behind "model.".
Status AddModelPrefix(Checkpoint& checkpoint) {
  if (!checkpoint.tensors.contains("embed_tokens.weight")) return {};
  for (auto& [name, source] : std::exchange(checkpoint.tensors, {})) {
    const bool is_whole = name.starts_with("model.") || name.starts_with("lm_head.");
    CRIA_RETURN_IF_ERROR(
        AddTensor(is_whole ? name : "model." + name, std::move(source), checkpoint));
  }
  return {};
}

void MarkInterleaved(Checkpoint& checkpoint) {
  for (auto& [name, source] : checkpoint.tensors) {
    if (!name.contains(".self_attn.q_proj.") && !name.contains(".self_attn.k_proj.")) continue;
    source.interleaved_head_dim = checkpoint.config.head_dim;
    source.interleaved_channels = checkpoint.config.rotary_dim;
  }
}

}  // namespace

Result<Checkpoint> OpenHfCheckpoint(const std::filesystem::path& folder) {
  Checkpoint checkpoint = {.name = FolderName(folder), .folder = folder};
  CRIA_ASSIGN_OR_RETURN(const HfModel model, ReadHfModel(folder / "config.json"));
  checkpoint.config = model.config;
  checkpoint.folding = model.folding;
  CRIA_ASSIGN_OR_RETURN(const bool is_reranker, IsQwen3Reranker(folder));
  if (is_reranker) {
    checkpoint.reranking = {.prompt = kQwen3RerankerPrompt};
  } else {
    CRIA_ASSIGN_OR_RETURN(checkpoint.pooling, ReadHfPooling(folder));
  }
  CRIA_ASSIGN_OR_RETURN(checkpoint.tensors, ReadTensors(folder));
  CRIA_RETURN_IF_ERROR(AddModelPrefix(checkpoint));
  if (model.has_mxfp4) CRIA_RETURN_IF_ERROR(JoinMxfp4Tensors(checkpoint));
  CRIA_RETURN_IF_ERROR(RefuseBytes(checkpoint));
  if (model.has_mtp) CRIA_RETURN_IF_ERROR(TakeMtp(checkpoint));
  if (model.has_vision) CRIA_RETURN_IF_ERROR(LeaveOutVision(checkpoint));
  if (model.may_have_head && checkpoint.tensors.contains("lm_head.weight")) {
    checkpoint.config.tie_word_embeddings = false;
  }
  // Embeddings need no head.
  if (checkpoint.pooling && !checkpoint.tensors.contains("lm_head.weight")) {
    checkpoint.config.tie_word_embeddings = true;
  }
  CRIA_RETURN_IF_ERROR(RenameModules(model.layer_modules, checkpoint));
  CRIA_RETURN_IF_ERROR(ReadHfXielu(checkpoint));
  if (model.has_interleaved_rope) MarkInterleaved(checkpoint);
  if (model.has_fused_projections) CRIA_RETURN_IF_ERROR(SplitFusedTensors(checkpoint));
  if (model.has_lfm2_names) CRIA_RETURN_IF_ERROR(RenameLfm2Tensors(checkpoint));
  if (model.has_gpt_oss_names) CRIA_RETURN_IF_ERROR(SplitGptOssTensors(checkpoint));
  CRIA_RETURN_IF_ERROR(SplitLinearAttention(checkpoint));
  MakeDecayRates(checkpoint);
  CRIA_RETURN_IF_ERROR(TransposeTaps(checkpoint));
  CRIA_RETURN_IF_ERROR(NormalizeExpertTensors(checkpoint));
  CRIA_RETURN_IF_ERROR(FitGemma4Tensors(
      checkpoint, model.keys_are_values ? KeysAsValues::kWithoutWindow : KeysAsValues::kNone));
  return checkpoint;
}

Result<bool> IsHfConfigWithoutWeights(const std::filesystem::path& folder) {
  CRIA_ASSIGN_OR_RETURN(const bool has_config, FileExists(folder / "config.json"));
  if (!has_config) return false;
  for (const WeightsFormat& format : kFormats) {
    for (const char* const name : {format.single_file, format.index_file}) {
      CRIA_ASSIGN_OR_RETURN(const bool has_weights, FileExists(folder / name));
      if (has_weights) return false;
    }
  }
  return true;
}

Result<CheckpointVocabulary> OpenHfVocabulary(const std::filesystem::path& folder) {
  CheckpointVocabulary vocabulary = {.name = FolderName(folder)};
  CRIA_ASSIGN_OR_RETURN(vocabulary.tokenizer, ReadTokenizer(folder));
  return vocabulary;
}

}  // namespace cria
