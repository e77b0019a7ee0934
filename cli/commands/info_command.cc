#include <charconv>
#include <concepts>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/flags/options.h"
#include "cli/report.h"
#include "cli/terminal/printable.h"
#include "core/format.h"
#include "llm/engine.h"
#include "model/features.h"
#include "model/model_file.h"
#include "model/packed_file.h"
#include "ops/kv_cache_view.h"

namespace cria::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InfoOptions {
  std::string model_path;
  bool json = false;
  bool check = false;
};

const char* RopeScalingName(RopeScaling::Type type) {
  switch (type) {
    case RopeScaling::Type::kNone:
      return "none";
    case RopeScaling::Type::kLinear:
      return "linear";
    case RopeScaling::Type::kLlama3:
      return "llama3";
    case RopeScaling::Type::kDynamic:
      return "dynamic";
    case RopeScaling::Type::kYarn:
      return "yarn";
    case RopeScaling::Type::kLongrope:
      return "longrope";
    case RopeScaling::Type::kProportional:
      return "proportional";
  }
  return "unknown";
}

const char* HiddenActName(HiddenAct act) {
  switch (act) {
    case HiddenAct::kSilu:
      return "silu";
    case HiddenAct::kGeluTanh:
      return "gelu_tanh";
    case HiddenAct::kGelu:
      return "gelu";
    case HiddenAct::kRelu2:
      return "relu2";
    case HiddenAct::kXielu:
      return "xielu";
  }
  return "unknown";
}

const char* NormPlacementName(NormPlacement placement) {
  switch (placement) {
    case NormPlacement::kBefore:
      return "before";
    case NormPlacement::kAfter:
      return "after";
    case NormPlacement::kBeforeAndAfter:
      return "before_and_after";
  }
  return "unknown";
}

const char* ScoringFuncName(ScoringFunc function) {
  switch (function) {
    case ScoringFunc::kSoftmax:
      return "softmax";
    case ScoringFunc::kSigmoid:
      return "sigmoid";
  }
  return "unknown";
}

// A float as the shortest decimal that is read as the same float, not as the nearest double.
Json Decimal(float value) {
  const std::string text = Format("{}", value);
  double decimal = value;
  std::from_chars(text.data(), text.data() + text.size(), decimal);
  return decimal;
}

Json FieldJson(float value) { return Decimal(value); }
Json FieldJson(const RopeScaling& scaling) { return RopeScalingName(scaling.type); }
Json FieldJson(HiddenAct act) { return HiddenActName(act); }
Json FieldJson(NormPlacement placement) { return NormPlacementName(placement); }
Json FieldJson(ScoringFunc function) { return ScoringFuncName(function); }
Json FieldJson(const std::vector<float>& values) {
  Json list = Json::array();
  for (const float value : values) list.push_back(Decimal(value));
  return list;
}
template <typename T>
Json FieldJson(const T& value) {
  return value;
}

void AddRopeScaling(const RopeScaling& scaling, Json& json) {
  ForEachField(kRopeScalingFields, [&](const auto& field) {
    if (!IsOfType(field.rope_types, scaling.type)) return;
    const bool is_factor = field.name == "factor";
    json[is_factor ? "rope_scaling_factor" : field.name] = FieldJson(scaling.*field.member);
  });
}

// Each kind of layers with the list of its layers.
Json LayerKindsJson(const ModelConfig& config) {
  Json kinds = Json::array();
  for (size_t i = 0; i < config.layer_kinds.size(); ++i) {
    const LayerKind& kind = config.layer_kinds[i];
    Json layers = Json::array();
    for (size_t layer = 0; layer < config.kind_of_layer.size(); ++layer) {
      if (config.kind_of_layer[layer] == i) layers.push_back(layer);
    }
    Json json = {{"layers", layers}};
    ForEachField(kLayerKindFields, [&]<typename Value>(const ConfigField<LayerKind, Value>& field) {
      if constexpr (std::integral<Value>) {
        if (field.is_feature && kind.*field.member == 0) return;
      }
      json[field.name] = FieldJson(kind.*field.member);
    });
    AddRopeScaling(kind.rope_scaling, json);
    kinds.push_back(json);
  }
  return kinds;
}

Json ConfigJson(const ModelConfig& config) {
  const bool are_alike = config.layer_kinds.size() == 1;
  Json json;
  ForEachField(kModelConfigFields, [&]<typename Owner, typename Value>(
                                       const ConfigField<Owner, Value>& field) {
    if (std::same_as<Owner, LayerKind> && !are_alike) return;  // Shown with the kinds.
    if (field.is_feature && !NeedsFeature(field, config)) return;
    if constexpr (std::same_as<Value, std::vector<LayerKind>>) {
      json[field.name] = LayerKindsJson(config);
    } else if constexpr (!std::same_as<Value, std::vector<uint8_t>>) {  // Also shown with them.
      json[field.name] = FieldJson(ValueOf(field, config));
    }
  });
  if (are_alike) AddRopeScaling(config.layer_kinds.front().rope_scaling, json);
  return json;
}

std::string PieceText(const Vocabulary& vocabulary, int32_t id) {
  return id < 0 ? "none" : Format("{} {}", id, vocabulary.piece(static_cast<size_t>(id)));
}

Json TokenizerJson(const ModelFile& file) {
  const Vocabulary& vocabulary = file.vocabulary();
  Json stops = Json::array();
  for (const int32_t id : file.stop_token_ids()) stops.push_back(PieceText(vocabulary, id));
  Json rstrips = Json::array();
  for (const uint32_t id : vocabulary.rstrip_ids) {
    rstrips.push_back(PieceText(vocabulary, static_cast<int32_t>(id)));
  }
  Json json = {
      {"family", vocabulary.family == TokenizerFamily::kByteLevelBpe ? "byte-level BPE"
                                                                     : "SentencePiece BPE"},
      {"pieces", vocabulary.size()},
      {"merges", vocabulary.merges.size()},
      {"split_patterns", vocabulary.split_patterns},
      {"normalize_nfc", vocabulary.normalize_nfc},
      {"ignore_merges", vocabulary.ignore_merges},
      {"add_dummy_prefix", vocabulary.add_dummy_prefix},
      {"dummy_prefix_after_special", vocabulary.dummy_prefix_after_special},
      {"dummy_prefix_unless_space", vocabulary.dummy_prefix_unless_space},
      {"remove_extra_whitespaces", vocabulary.remove_extra_whitespaces},
      {"byte_fallback", vocabulary.byte_fallback},
      {"add_bos_token", vocabulary.add_bos_token},
      {"bos_token", PieceText(vocabulary, vocabulary.bos_token_id)},
      {"unk_token", PieceText(vocabulary, vocabulary.unk_token_id)},
      {"eos_token", PieceText(vocabulary, vocabulary.eos_token_id)},
      {"stop_tokens", stops},
      {"chat_template", file.chat_template_source()}};
  if (!rstrips.empty()) json["rstrip_tokens"] = rstrips;
  return json;
}

Json TensorJson(const StoredTensor& tensor) {
  Json json = {{"name", tensor.spec.Name()},
               {"scheme", SchemeName(tensor.layout.scheme)},
               {"shape", {tensor.layout.output_channels, tensor.layout.input_channels}},
               {"bytes", tensor.data.bytes + tensor.scales.bytes},
               {"offset", tensor.data.offset},
               {"scales_offset", tensor.scales.offset},
               {"checksum", Format("{:016x}", tensor.checksum)}};
  if (tensor.layout.scheme == Scheme::kQb4w) json["block_size"] = tensor.layout.block_size;
  // The rows of a matrix may be several tensors.
  if (tensor.first_row != 0) json["first_row"] = tensor.first_row;
  if (tensor.layout.factor != 1.0f) json["factor"] = tensor.layout.factor;
  if (tensor.layout.padded_input_channels != tensor.layout.input_channels) {
    json["padded_input_channels"] = tensor.layout.padded_input_channels;
  }
  return json;
}

Json DescribeFile(const ModelFile& file) {
  uint64_t parameters = 0;
  Json tensors = Json::array();
  for (const StoredTensor& tensor : file.tensors()) {
    // A tied head that is stored separately is not counted, because it is the embedding again.
    const bool is_repeated =
        tensor.spec.role == TensorRole::kLmHead && file.config().tie_word_embeddings;
    if (!is_repeated) parameters += tensor.layout.output_channels * tensor.layout.input_channels;
    tensors.push_back(TensorJson(tensor));
  }
  return {{"name", file.name()},
          {"producer", file.producer()},
          {"digest", DigestText(file.digest())},
          {"file_bytes", file.size_bytes()},
          {"metadata_bytes", file.metadata_bytes()},
          {"parameters", parameters},
          {"default_kv_type", KvTypeName(DefaultKvType(file.prefers_f16_cache()))},
          {"config", ConfigJson(file.config())},
          {"tokenizer", TokenizerJson(file)},
          {"tensors", tensors}};
}

std::string ValueText(const Json& value) {
  const bool is_line = value.is_string() && !value.get_ref<const std::string&>().contains('\n');
  // Pieces are bytes and need not be UTF-8; they and names come from files.
  return Printable(is_line ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// "0-4, 6" for numbers that rise.
std::string RangesText(const Json& numbers) {
  std::string text;
  for (size_t first = 0, end; first < numbers.size(); first = end) {
    const auto number = numbers[first].get<size_t>();
    end = first + 1;
    while (end < numbers.size() && numbers[end].get<size_t>() == number + end - first) ++end;
    text += Format("{}{}", first == 0 ? "" : ", ", number);
    if (end - first > 1) text += Format("-{}", number + end - first - 1);
  }
  return text;
}

void PrintLayerKinds(const Json& kinds) {
  for (size_t i = 0; i < kinds.size(); ++i) {
    std::string text = "layers " + RangesText(kinds[i]["layers"]);
    for (const auto& [field, value] : kinds[i].items()) {
      if (field != "layers") text += Format(", {} {}", field, ValueText(value));
    }
    std::printf("  %-32s %s\n", Format("layer_kinds[{}]", i).c_str(), text.c_str());
  }
}

void PrintForPeople(const Json& json) {
  for (const auto& [key, value] : json.items()) {
    if (key == "tensors") continue;
    if (!value.is_object()) {
      std::printf("%-26s %s\n", key.c_str(), ValueText(value).c_str());
      continue;
    }
    std::printf("%s\n", key.c_str());
    for (const auto& [field, content] : value.items()) {
      if (field == "layer_kinds") {
        PrintLayerKinds(content);
      } else {
        std::printf("  %-32s %s\n", field.c_str(), ValueText(content).c_str());
      }
    }
  }
  std::printf("tensors\n");
  for (const Json& tensor : json["tensors"]) {
    std::string more;
    if (const auto block = tensor.value("block_size", size_t{0}); block != 0) {
      more = Format("  blocks of {}", block);
    }
    if (const auto row = tensor.value("first_row", size_t{0}); row != 0) {
      more += Format("  from row {}", row);
    }
    std::printf("  %-36s %-6s %-14s %10s%s\n", ValueText(tensor["name"]).c_str(),
                ValueText(tensor["scheme"]).c_str(), tensor["shape"].dump().c_str(),
                FormatBytes(tensor["bytes"].get<uint64_t>()).c_str(), more.c_str());
  }
}

Status Info(const InfoOptions& options) {
  CRIA_ASSIGN_OR_RETURN(const ModelFile file, ModelFile::Open(options.model_path));
  const Json json = DescribeFile(file);
  if (options.json) {
    std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    PrintForPeople(json);
  }
  if (options.check) {
    CRIA_RETURN_IF_ERROR(file.VerifyPayload());
    if (file.packed_offset() != 0) {
      CRIA_ASSIGN_OR_RETURN(const PackedFile packed,
                            PackedFile::Open(options.model_path, file.packed_offset()));
      CRIA_RETURN_IF_ERROR(packed.VerifyPayload());
    }
    std::fprintf(stderr, "%s: every checksum matches\n", Printable(options.model_path).c_str());
  }
  return {};
}

}  // namespace

void AddInfoCommand(CommandLine& program) {
  auto options = std::make_shared<InfoOptions>();
  CommandLine& command = program.AddCommand("info", "Show everything in a model file");
  AddModelOption(command, options->model_path);
  command.AddFlag("--json", options->json, "Print JSON");
  command.AddFlag("--check", options->check, "Read all weights and compare their checksums");
  command.SetAction([options] { return Info(*options); });
}

}  // namespace cria::cli
