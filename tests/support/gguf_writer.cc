#include "support/gguf_writer.h"

#include <array>
#include <cmath>
#include <format>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <optional>
#include <stdexcept>

#include "support/files.h"
#include "support/interleaved_rows.h"
#include "support/q4_0_blocks.h"

namespace cria::support {
namespace {

using reference::ReferenceAttention;
using reference::ReferenceConfig;
using reference::ReferenceModel;
using reference::ReferenceRopeScaling;
using reference::ReferenceTensor;

constexpr size_t kAlignment = 32;

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

template <typename T>
std::string ArrayOf(uint32_t type, const std::vector<T>& values) {
  std::string bytes = GgufWriter::Bytes(type) + GgufWriter::Bytes<uint64_t>(values.size());
  for (const T& value : values) {
    if constexpr (std::is_same_v<T, std::string>) {
      bytes += GgufWriter::Text(value);
    } else {
      bytes += GgufWriter::Bytes(value);
    }
  }
  return bytes;
}

uint32_t TypeNumber(StorageType type) {
  switch (type) {
    case StorageType::kF32:
      return 0;
    case StorageType::kF16:
      return 1;
    case StorageType::kBf16:
      return 30;
    case StorageType::kU8:
      break;
  }
  throw std::runtime_error("unknown storage type");
}

// The bytes of values of ggml's type with this number.
std::string EncodeAs(uint32_t type, const std::vector<float>& values) {
  if (type == kQ4_0Number) return EncodeQ4_0(values);
  for (const StorageType stored : {StorageType::kF32, StorageType::kF16, StorageType::kBf16}) {
    if (TypeNumber(stored) == type) return Encode(stored, values);
  }
  throw std::runtime_error("unknown type of values");
}

bool HasBlocksOfWeights(std::string_view name, const std::vector<size_t>& shape) {
  return shape.size() > 1 && shape.back() % kQ4_0Weights == 0 && name.ends_with(".weight") &&
         !name.ends_with("norm.weight") && !name.ends_with(".ffn_gate_inp.weight");
}

// An architecture's name, and whether its queries and keys are interleaved.
struct Architecture {
  std::string_view hugging_face;
  std::string_view ggml;
  bool is_interleaved;
};
const Architecture& ArchitectureOf(const ReferenceConfig& config) {
  static constexpr std::array<Architecture, 5> kArchitectures = {{
      {"LlamaForCausalLM", "llama", true},
      {"MistralForCausalLM", "llama", true},
      {"MinistralForCausalLM", "llama", true},
      {"Qwen2ForCausalLM", "qwen2", false},
      {"Qwen3ForCausalLM", "qwen3", false},
  }};
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.hugging_face == config.architecture) return architecture;
  }
  throw std::runtime_error("no architecture of GGUF: " + config.architecture);
}

// The attention of layers with and without a window; nothing if there are none.
struct Layers {
  std::optional<ReferenceAttention> full;
  std::optional<ReferenceAttention> sliding;
  std::vector<bool> have_window;
};
Layers LayersOf(const ReferenceConfig& config) {
  Layers layers;
  for (size_t i = 0; i < config.num_hidden_layers; ++i) {
    const ReferenceAttention attention = config.AttentionOf(i);
    const bool has_window = attention.sliding_window != 0;
    layers.have_window.push_back(has_window);
    (has_window ? layers.sliding : layers.full) = attention;
  }
  return layers;
}

// Without attention_factor: llama.cpp's keys have other factors, which multiply the default.
void AddYarn(const ReferenceRopeScaling& scaling, const auto& add) {
  add("rope.scaling.type", "yarn");
  add("rope.scaling.factor", static_cast<float>(scaling.factor));
  add("rope.scaling.original_context_length",
      static_cast<uint32_t>(scaling.original_max_position_embeddings));
  add("rope.scaling.yarn_beta_fast", static_cast<float>(scaling.beta_fast));
  add("rope.scaling.yarn_beta_slow", static_cast<float>(scaling.beta_slow));
}

bool IsRotary(std::string_view name) {
  return name.contains(".q_proj.") || name.contains(".k_proj.");
}

}  // namespace

void GgufWriter::Add(std::string_view key, const std::vector<std::string>& values) {
  AddRaw(key, kArray, ArrayOf(kString, values));
}
void GgufWriter::Add(std::string_view key, const std::vector<float>& values) {
  AddRaw(key, kArray, ArrayOf(kFloat32, values));
}
void GgufWriter::Add(std::string_view key, const std::vector<int32_t>& values) {
  AddRaw(key, kArray, ArrayOf(kInt32, values));
}

void GgufWriter::Add(std::string_view key, const std::vector<bool>& values) {
  AddRaw(key, kArray, ArrayOf(kBool, std::vector<uint8_t>(values.begin(), values.end())));
}

void GgufWriter::AddRaw(std::string_view key, uint32_t type, std::string_view value) {
  ++num_keys_;
  keys_ += Text(key) + Bytes(type);
  keys_ += value;
}

void GgufWriter::AddTensor(std::string_view name, const std::vector<size_t>& shape, uint32_t type,
                           std::string data) {
  tensors_.push_back({std::string(name), shape, type, std::move(data)});
}

void GgufWriter::AddTensor(const std::string& name, const std::vector<size_t>& shape,
                           StorageType type, const std::vector<float>& values) {
  const bool is_rounded = rounds_matrices && HasBlocksOfWeights(name, shape);
  const uint32_t number = is_rounded ? kQ4_0Number : TypeNumber(type);
  AddTensor(name, shape, number, EncodeAs(number, values));
}

void GgufWriter::Append(const std::vector<float>& values) {
  Tensor& tensor = tensors_.back();
  tensor.data += EncodeAs(tensor.type, values);
}

std::string GgufWriter::Header() const {
  std::string file = "GGUF" + Bytes(version) + Bytes<uint64_t>(tensors_.size() + extra_tensors) +
                     Bytes<uint64_t>(num_keys_ + extra_keys) + keys_;
  uint64_t next = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    file += Text(tensor.name) + Bytes(static_cast<uint32_t>(tensor.shape.size()));
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent) {
      file += Bytes<uint64_t>(*extent);
    }
    uint64_t offset = next;
    for (const auto& [index, moved] : moved_tensors) {
      if (index == i) offset = moved;
    }
    file += Bytes(tensor.type) + Bytes<uint64_t>(offset);
    next = Aligned(next + tensor.data.size());
  }
  file.resize(Aligned(file.size()), '\0');
  return file;
}

std::string GgufWriter::File() const {
  std::string file = Header();
  for (const Tensor& tensor : tensors_) {
    file += tensor.data;
    file.resize(Aligned(file.size()), '\0');
  }
  return file;
}

void GgufWriter::Write(const std::filesystem::path& path) const {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  const auto write = [&](std::string_view bytes) {
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  };
  write(Header());
  for (const Tensor& tensor : tensors_) {
    write(tensor.data);
    write(std::string(Aligned(tensor.data.size()) - tensor.data.size(), '\0'));
  }
  stream.close();
  if (!stream) throw std::runtime_error("cannot write " + path.string());
}

void AddTokenizer(const ByteLevelTokenizer& tokenizer, ChatTemplateText chat_template,
                  GgufWriter& writer, std::string_view pre_tokenizer) {
  std::vector<std::string> tokens;
  for (const std::string& piece : tokenizer.pieces) tokens.push_back(InByteAlphabet(piece));
  std::vector<std::string> merges;
  for (const auto& [left, right] : tokenizer.merges) {
    merges.push_back(tokens[left] + " " + tokens[right]);
  }
  std::vector<int32_t> types(tokens.size(), 1);
  for (const std::string& token : tokenizer.special_tokens) {
    tokens.push_back(token);
    types.push_back(3);
  }
  writer.Add("tokenizer.ggml.model", "gpt2");
  writer.Add("tokenizer.ggml.pre", pre_tokenizer);
  writer.Add("tokenizer.ggml.tokens", tokens);
  writer.Add("tokenizer.ggml.token_type", types);
  writer.Add("tokenizer.ggml.merges", merges);
  writer.Add("tokenizer.ggml.bos_token_id", tokenizer.SpecialTokenId("<|begin_of_text|>"));
  const auto settings = nlohmann::json::parse(TokenizerConfigJson(chat_template));
  writer.Add("tokenizer.ggml.eos_token_id",
             tokenizer.SpecialTokenId(settings["eos_token"].get<std::string>()));
  // Some writers write this for a token that does not exist.
  writer.Add("tokenizer.ggml.padding_token_id", ~uint32_t{0});
  if (settings.contains("chat_template")) {
    writer.Add("tokenizer.chat_template", settings["chat_template"].get<std::string>());
  }
}

void AddModelMetadata(const ReferenceModel& model, ChatTemplateText chat_template,
                      GgufWriter& writer) {
  const ReferenceConfig& c = model.config;
  const std::string_view architecture = ArchitectureOf(c).ggml;
  const auto add = [&](std::string_view key, auto value) {
    writer.Add(std::format("{}.{}", architecture, key), value);
  };
  const auto number = [](size_t value) { return static_cast<uint32_t>(value); };
  writer.Add("general.architecture", architecture);
  add("embedding_length", number(c.hidden_size));
  add("feed_forward_length", number(c.intermediate_size));
  add("block_count", number(c.num_hidden_layers));
  add("attention.head_count", number(c.num_attention_heads));
  add("attention.head_count_kv", number(c.num_key_value_heads));
  add("attention.key_length", number(c.head_dim));
  add("attention.value_length", number(c.head_dim));
  add("rope.dimension_count", number(c.head_dim));
  add("context_length", number(c.max_position_embeddings));
  add("attention.layer_norm_rms_epsilon", static_cast<float>(c.rms_norm_eps));
  const Layers layers = LayersOf(c);
  const ReferenceAttention& base = layers.full ? *layers.full : *layers.sliding;
  add("rope.freq_base", static_cast<float>(base.rope_theta));
  if (base.rope_scaling.type == ReferenceRopeScaling::Type::kLinear) {
    add("rope.scaling.type", "linear");
    add("rope.scaling.factor", static_cast<float>(base.rope_scaling.factor));
  }
  if (base.rope_scaling.type == ReferenceRopeScaling::Type::kYarn) AddYarn(base.rope_scaling, add);
  if (layers.sliding) add("attention.sliding_window", number(layers.sliding->sliding_window));
  if (layers.sliding && layers.full) {
    add("attention.sliding_window_pattern", layers.have_window);
    if (layers.sliding->rope_theta != base.rope_theta) {
      add("rope.freq_base_swa", static_cast<float>(layers.sliding->rope_theta));
    }
  }
  AddTokenizer(MakeByteLevelTokenizer(c.vocab_size), chat_template, writer);
}

std::string GgmlName(std::string_view name) {
  // Without ".weight" or ".bias".
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kNames = {{
      {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm"},
      {"lm_head", "output"},
      {"input_layernorm", "attn_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"},
      {"self_attn.o_proj", "attn_output"},
      {"post_attention_layernorm", "ffn_norm"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
  }};
  std::string prefix;
  constexpr std::string_view kLayers = "model.layers.";
  if (name.starts_with(kLayers)) {
    name.remove_prefix(kLayers.size());
    const size_t dot = name.find('.');
    prefix = std::format("blk.{}.", name.substr(0, dot));
    name.remove_prefix(dot + 1);
  }
  const size_t suffix = name.rfind('.');
  for (const auto& [hugging_face, ggml] : kNames) {
    if (name.substr(0, suffix) != hugging_face) continue;
    return prefix + std::string(ggml) + std::string(name.substr(suffix));
  }
  throw std::runtime_error("no such tensor: " + std::string(name));
}

void AddModelTensor(const ReferenceModel& model, const std::string& name, StorageType type,
                    GgufWriter& writer) {
  const ReferenceTensor& tensor = model.tensors.at(name);
  const bool is_vector = tensor.shape.size() == 1;
  const bool is_interleaved = ArchitectureOf(model.config).is_interleaved && IsRotary(name);
  writer.AddTensor(GgmlName(name), tensor.shape, is_vector ? StorageType::kF32 : type,
                   is_interleaved ? InterleaveRows(tensor, model.config.head_dim) : tensor.values);
}

std::vector<float> Llama3Factors(const ReferenceConfig& config) {
  const ReferenceRopeScaling& scaling = config.rope_scaling;
  // transformers' formula, which compares wavelengths with the original context.
  const auto positions = static_cast<double>(scaling.original_max_position_embeddings);
  std::vector<float> factors;
  for (size_t i = 0; i < config.head_dim / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim);
    const double wavelength = 2.0 * std::numbers::pi * std::pow(config.rope_theta, exponent);
    double factor = 1.0;
    if (wavelength > positions / scaling.low_freq_factor) {
      factor = scaling.factor;
    } else if (wavelength > positions / scaling.high_freq_factor) {
      const double smooth = (positions / wavelength - scaling.low_freq_factor) /
                            (scaling.high_freq_factor - scaling.low_freq_factor);
      factor = 1.0 / ((1.0 - smooth) / scaling.factor + smooth);
    }
    factors.push_back(static_cast<float>(factor));
  }
  return factors;
}

std::filesystem::path WriteGguf(const ReferenceModel& model, StorageType type,
                                const std::filesystem::path& path, size_t parts,
                                ChatTemplateText chat_template) {
  std::vector<GgufWriter> writers(parts);
  AddModelMetadata(model, chat_template, writers[0]);
  for (size_t part = 0; part < parts && parts > 1; ++part) {
    writers[part].Add("split.no", static_cast<uint32_t>(part));
    writers[part].Add("split.count", static_cast<uint32_t>(parts));
    writers[part].Add("split.tensors.count", static_cast<uint32_t>(model.tensors.size()));
  }
  size_t index = 0;
  for (const auto& [name, tensor] : model.tensors) {
    AddModelTensor(model, name, type, writers[index++ * parts / model.tensors.size()]);
  }
  if (model.config.rope_scaling.type == ReferenceRopeScaling::Type::kLlama3) {
    const std::vector<float> factors = Llama3Factors(model.config);
    writers[0].AddTensor("rope_freqs.weight", {factors.size()}, StorageType::kF32, factors);
  }
  if (parts == 1) {
    writers[0].Write(path);
    return path;
  }
  const auto part_path = [&](size_t part) {
    return path.parent_path() /
           std::format("{}-{:05}-of-{:05}.gguf", path.stem().string(), part + 1, parts);
  };
  for (size_t part = 0; part < parts; ++part) writers[part].Write(part_path(part));
  return part_path(0);
}

}  // namespace cria::support
