#include "reference/hugging_face_directory.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "reference/hugging_face_families.h"
#include "reference/hugging_face_gemma4.h"
#include "reference/hugging_face_linear.h"
#include "reference/hugging_face_mixtures.h"
#include "reference/hugging_face_mxfp4.h"
#include "reference/hugging_face_recent.h"
#include "reference/hugging_face_short_conv.h"
#include "reference/rope_fields.h"

namespace cria::reference {
namespace {

using nlohmann::json;

std::string ReadWhole(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot open " + path.string());
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Which biases, norms and windows there are differs from class to class.
void ReadWhatArchitecturesDifferIn(const json& fields, ReferenceConfig& config) {
  const std::string& architecture = config.architecture;
  const bool is_llama = architecture == "LlamaForCausalLM";
  const bool is_mistral =
      architecture == "MistralForCausalLM" || architecture == "MinistralForCausalLM";
  const bool is_qwen2 = architecture == "Qwen2ForCausalLM";
  config.qk_norm = architecture == "Qwen3ForCausalLM";
  if (!is_llama && !is_mistral && !is_qwen2 && !config.qk_norm) {
    throw std::runtime_error("unknown architecture " + architecture);
  }
  const bool attention_bias = FieldOr(fields, "attention_bias", false);
  config.qkv_bias = is_qwen2 || (attention_bias && !is_mistral);
  config.o_bias = attention_bias && (is_llama || config.qk_norm);
  config.mlp_bias = is_llama && FieldOr(fields, "mlp_bias", false);
  if (is_mistral || (!is_llama && FieldOr(fields, "use_sliding_window", false))) {
    config.sliding_window = FieldOr<size_t>(fields, "sliding_window", 0);
  }
}

// Whether a layer has the window: as layer_types says, or in Qwen's from max_window_layers on.
bool HasWindow(const json& fields, const ReferenceConfig& config, size_t layer) {
  if (config.sliding_window == 0) return false;
  const json types = FieldOr(fields, "layer_types", json());
  if (!types.is_null()) return types.at(layer) == "sliding_attention";
  const bool is_qwen = config.architecture.starts_with("Qwen");
  return !is_qwen || layer >= FieldOr<size_t>(fields, "max_window_layers", 28);
}

// Reads what layers may differ in. `config` has the fields for all of them.
void ReadLayers(const json& fields, ReferenceConfig& config) {
  const json parameters = FieldOr(fields, "rope_parameters", json());
  std::vector<ReferenceAttention> layers;
  size_t num_with_window = 0;
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    const bool has_window = HasWindow(fields, config, i);
    num_with_window += has_window ? 1 : 0;
    ReferenceAttention layer = {config.rope_theta, config.rope_scaling,
                                has_window ? config.sliding_window : 0};
    if (!parameters.is_null()) {
      const json& rope = parameters.at(has_window ? "sliding_attention" : "full_attention");
      layer.rope_theta = FieldOr(rope, "rope_theta", config.rope_theta);
      layer.rope_scaling = ReadRopeScaling(rope);
    }
    layers.push_back(layer);
  }
  if (num_with_window == 0 || num_with_window == layers.size()) {
    config.rope_theta = layers.at(0).rope_theta;
    config.rope_scaling = layers.at(0).rope_scaling;
    config.sliding_window = layers.at(0).sliding_window;
  } else {
    config.sliding_window = 0;
    config.layers = std::move(layers);
  }
}

// Defaults are those of Hugging Face's LlamaConfig.
ReferenceConfig ReadFields(const json& fields, const std::string& architecture) {
  ReferenceConfig config;
  config.architecture = architecture;
  config.hidden_size = fields.at("hidden_size").get<size_t>();
  config.intermediate_size = fields.at("intermediate_size").get<size_t>();
  config.num_hidden_layers = fields.at("num_hidden_layers").get<size_t>();
  config.num_attention_heads = fields.at("num_attention_heads").get<size_t>();
  config.num_key_value_heads = FieldOr(fields, "num_key_value_heads", config.num_attention_heads);
  config.head_dim = FieldOr(fields, "head_dim", config.hidden_size / config.num_attention_heads);
  config.vocab_size = fields.at("vocab_size").get<size_t>();
  config.max_position_embeddings = FieldOr<size_t>(fields, "max_position_embeddings", 2048);
  config.rms_norm_eps = FieldOr(fields, "rms_norm_eps", 1e-6);
  config.rope_theta = FieldOr(fields, "rope_theta", 10000.0);
  config.rope_scaling = ReadRopeScaling(FieldOr(fields, "rope_scaling", json()));
  config.tie_word_embeddings = FieldOr(fields, "tie_word_embeddings", false);
  if (!ReadGemma4(fields, config) && !ReadFamily(fields, config) && !ReadMixture(fields, config) &&
      !ReadShortConvFamily(fields, config) && !ReadLinearFamily(fields, config) &&
      !ReadRecentFamily(fields, config)) {
    ReadWhatArchitecturesDifferIn(fields, config);
    ReadLayers(fields, config);
  }
  config.bos_token_id = FieldOr(fields, "bos_token_id", -1);
  const json eos = FieldOr(fields, "eos_token_id", json::array());
  config.eos_token_ids = eos.is_array() ? eos.get<std::vector<int>>() : std::vector{eos.get<int>()};
  return config;
}

// A model of text and images has the fields and tensors of its text model in it.
ReferenceConfig ReadConfig(const json& fields) {
  const auto architecture = fields.at("architectures").at(0).get<std::string>();
  if (!architecture.ends_with("ForConditionalGeneration")) return ReadFields(fields, architecture);
  const json& text = fields.at("text_config");
  // Their fields are read by the name of the whole model.
  const bool is_named_by_model =
      architecture.starts_with("Gemma") || architecture.starts_with("Qwen3_5");
  ReferenceConfig config =
      ReadFields(text, is_named_by_model ? architecture : ArchitectureWithin(text));
  const bool is_smol_vlm = architecture == "SmolVLMForConditionalGeneration" ||
                           architecture == "Idefics3ForConditionalGeneration";
  config.prefix = is_smol_vlm ? "model.text_model." : "model.language_model.";
  if (!is_named_by_model)
    config.tie_word_embeddings = FieldOr(fields, "tie_word_embeddings", false);
  config.bos_token_id = FieldOr(fields, "bos_token_id", config.bos_token_id);
  return config;
}

// IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits.
float HalfToFloat(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const float fraction = static_cast<float>(bits & 1023);
  float magnitude;
  if (exponent == 31) {
    magnitude = fraction == 0.0f ? INFINITY : NAN;
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(1024.0f + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// The little-endian number in `size` bytes.
uint64_t LittleEndian(const char* bytes, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return value;
}

std::vector<float> DecodeValues(std::string_view bytes, const std::string& dtype) {
  const size_t size = dtype == "F32" ? 4 : dtype == "U8" ? 1 : 2;
  std::vector<float> values(bytes.size() / size);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto bits = static_cast<uint32_t>(LittleEndian(bytes.data() + i * size, size));
    if (dtype == "F32") {
      values[i] = std::bit_cast<float>(bits);
    } else if (dtype == "BF16") {
      values[i] = std::bit_cast<float>(bits << 16);
    } else if (dtype == "F16") {
      values[i] = HalfToFloat(static_cast<uint16_t>(bits));
    } else if (dtype == "U8") {
      values[i] = static_cast<float>(bits);
    } else {
      throw std::runtime_error("unknown tensor type " + dtype);
    }
  }
  return values;
}

// A safetensors file: the header's size in 8 bytes, a JSON header that gives each tensor's type,
// shape and byte range after the header, and the bytes.
void ReadSafetensors(const std::filesystem::path& path, ReferenceModel& model) {
  const std::string file = ReadWhole(path);
  const auto fail = [&path](const std::string& what) {
    throw std::runtime_error(path.string() + ": " + what);
  };
  if (file.size() < 8) fail("too short");
  const uint64_t header_bytes = LittleEndian(file.data(), 8);
  if (header_bytes > file.size() - 8) fail("the header ends after the file");
  const std::string_view data = std::string_view(file).substr(8 + header_bytes);
  const json header = json::parse(std::string_view(file).substr(8, header_bytes));
  for (const auto& [name, fields] : header.items()) {
    if (name == "__metadata__") continue;
    ReferenceTensor tensor;
    tensor.shape = fields.at("shape").get<std::vector<size_t>>();
    const auto [begin, end] = fields.at("data_offsets").get<std::pair<size_t, size_t>>();
    if (begin > end || end > data.size()) fail(name + " ends after the file");
    tensor.values =
        DecodeValues(data.substr(begin, end - begin), fields.at("dtype").get<std::string>());
    size_t count = 1;
    for (size_t extent : tensor.shape) count *= extent;
    if (count != tensor.values.size()) fail(name + " does not fill its shape");
    if (!model.tensors.emplace(name, std::move(tensor)).second) fail(name + " appears twice");
  }
}

}  // namespace

ReferenceModel ReadHuggingFaceDirectory(const std::filesystem::path& directory) {
  ReferenceModel model;
  model.config = ReadConfig(json::parse(ReadWhole(directory / "config.json")));
  const std::filesystem::path index_path = directory / "model.safetensors.index.json";
  if (!std::filesystem::exists(index_path)) {
    ReadSafetensors(directory / "model.safetensors", model);
    DequantizeMxfp4(model);
    return model;
  }
  std::set<std::string> shards;
  const json index = json::parse(ReadWhole(index_path));
  for (const auto& [name, shard] : index.at("weight_map").items()) {
    shards.insert(shard.get<std::string>());
  }
  for (const std::string& shard : shards) ReadSafetensors(directory / shard, model);
  DequantizeMxfp4(model);
  return model;
}

}  // namespace cria::reference
