#include "support/plant_channels.h"

#include <format>
#include <random>
#include <string>
#include <vector>

namespace cria::support {
namespace {

using reference::ReferenceModel;
using reference::ReferenceTensor;

// Different numbers below `size`.
std::vector<size_t> SomeOf(size_t size, size_t count, std::mt19937_64& generator) {
  std::vector<size_t> all(size);
  for (size_t i = 0; i < size; ++i) all[i] = i;
  for (size_t i = 0; i < count; ++i) std::swap(all[i], all[i + generator() % (size - i)]);
  all.resize(count);
  return all;
}

void MultiplyRow(ReferenceTensor& tensor, size_t row, float factor) {
  const size_t columns = tensor.shape.size() == 1 ? 1 : tensor.shape[1];
  for (size_t j = 0; j < columns; ++j) tensor.values[row * columns + j] *= factor;
}

void DivideColumn(ReferenceTensor& tensor, size_t column, float divisor) {
  for (size_t i = column; i < tensor.values.size(); i += tensor.shape[1]) {
    tensor.values[i] /= divisor;
  }
}

void PlantInNorm(ReferenceModel& model, const std::string& norm,
                 const std::vector<std::string>& readers, std::mt19937_64& generator) {
  ReferenceTensor& gain = model.tensors.at(norm);
  for (const size_t channel : SomeOf(gain.values.size(), 3, generator)) {
    MultiplyRow(gain, channel, 40.0f);
    for (const std::string& reader : readers) {
      DivideColumn(model.tensors.at(reader), channel, 40.0f);
    }
  }
}

}  // namespace

void PlantChannels(ReferenceModel& model, uint64_t seed) {
  std::mt19937_64 generator(seed);
  const reference::ReferenceConfig& config = model.config;
  const size_t group = config.num_attention_heads / config.num_key_value_heads;
  const auto multiply_row = [&](const std::string& name, size_t row, float factor) {
    MultiplyRow(model.tensors.at(name + ".weight"), row, factor);
    if (const auto bias = model.tensors.find(name + ".bias"); bias != model.tensors.end()) {
      MultiplyRow(bias->second, row, factor);
    }
  };
  for (size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const std::string prefix = std::format("model.layers.{}.", layer);
    const std::string attention = prefix + "self_attn.";
    PlantInNorm(
        model, prefix + "input_layernorm.weight",
        {attention + "q_proj.weight", attention + "k_proj.weight", attention + "v_proj.weight"},
        generator);
    PlantInNorm(model, prefix + "post_attention_layernorm.weight",
                {prefix + "mlp.gate_proj.weight", prefix + "mlp.up_proj.weight"}, generator);
    for (const size_t row : SomeOf(config.intermediate_size, 4, generator)) {
      multiply_row(prefix + "mlp.up_proj", row, 50.0f);
      DivideColumn(model.tensors.at(prefix + "mlp.down_proj.weight"), row, 50.0f);
    }
    for (size_t head = 0; head < config.num_key_value_heads; ++head) {
      for (const size_t channel : SomeOf(config.head_dim, 2, generator)) {
        multiply_row(attention + "v_proj", head * config.head_dim + channel, 30.0f);
        for (size_t query = head * group; query < (head + 1) * group; ++query) {
          DivideColumn(model.tensors.at(attention + "o_proj.weight"),
                       query * config.head_dim + channel, 30.0f);
        }
      }
    }
  }
  if (!config.tie_word_embeddings) {
    PlantInNorm(model, "model.norm.weight", {"lm_head.weight"}, generator);
  }
}

void PlantSparseEmbeddings(ReferenceModel& model, uint64_t seed) {
  std::mt19937_64 generator(seed);
  const size_t size = model.config.hidden_size;
  for (auto& [name, tensor] : model.tensors) {
    if (name.contains("embed_tokens")) {
      for (size_t first = 0; first < tensor.values.size(); first += size) {
        for (const size_t channel : SomeOf(size, 2, generator)) {
          tensor.values[first + channel] *= 100.0f;
        }
      }
    }
  }
}

void PlantKeyBiases(ReferenceModel& model, float bias) {
  const reference::ReferenceConfig& config = model.config;
  const size_t half = config.head_dim / 2;
  for (size_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const std::string attention = std::format("model.layers.{}.self_attn.", layer);
    ReferenceTensor& key_bias = model.tensors.at(attention + "k_proj.bias");
    for (size_t row = half - 1; row < config.num_attention_heads * config.head_dim; row += half) {
      MultiplyRow(model.tensors.at(attention + "q_proj.weight"), row, 0.0f);
      MultiplyRow(model.tensors.at(attention + "q_proj.bias"), row, 0.0f);
    }
    for (size_t row = half - 1; row < key_bias.values.size(); row += half) {
      key_bias.values[row] = bias;
    }
  }
}

}  // namespace cria::support
