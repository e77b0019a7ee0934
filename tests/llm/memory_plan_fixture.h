#pragma once

// A small model, and what is planned for it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "llm/memory_plan.h"

namespace cria {

inline constexpr platform::MemoryUsage kProgram = {.private_bytes = 700'000,
                                                   .file_mapped_bytes = 5'000'000,
                                                   .peak_resident_bytes = 6'000'000,
                                                   .virtual_bytes = 30'000'000};

// The model with this configuration.
inline ModelOutline OutlineOfConfig(ModelConfig config, Scheme scheme) {
  ModelOutline model;
  model.config = std::move(config);
  for (const TensorSpec& tensor : ExpectedTensors(model.config)) {
    if (tensor.is_vector()) continue;
    if (tensor.role == TensorRole::kEmbedTokens) {
      model.embedding = MakeTensorLayout(tensor, Scheme::kQc8w, 32);
      continue;
    }
    const bool is_head = tensor.role == TensorRole::kLmHead;
    const Scheme stored = tensor.is_always_f32() ? Scheme::kF32 : is_head ? Scheme::kQc8w : scheme;
    model.matrices.push_back(MakeTensorLayout(tensor, stored, 32));
  }
  model.metadata_bytes = 60'000;
  model.file_bytes = 3'000'000;
  return model;
}

inline ModelOutline Outline(Scheme scheme = Scheme::kQb4w) {
  return OutlineOfConfig({.architecture = "LlamaForCausalLM",
                          .hidden_size = 256,
                          .intermediate_size = 704,
                          .num_hidden_layers = 4,
                          .num_attention_heads = 8,
                          .num_key_value_heads = 4,
                          .head_dim = 32,
                          .vocab_size = 4096,
                          .max_position_embeddings = 4096,
                          .rms_norm_eps = 1e-5f,
                          .layer_kinds = {{.rope_theta = 10000.0f}}},
                         scheme);
}

// Keys and values of 4 layers, 4 heads and 32 channels.
inline constexpr uint64_t kKvValuesPerToken = 2 * 4 * 4 * 32;

inline MemoryPlan Plan(const ModelOutline& model, const MemoryPlanOptions& options,
                       const platform::MemoryUsage& program = kProgram) {
  return PlanMemory(model, options, program).value();
}

inline uint64_t LineBytes(const MemoryPlan& plan, MemoryPart part) {
  if (!std::ranges::contains(plan.lines, part, &MemoryLine::part)) {
    throw std::runtime_error("no line " + std::string(MemoryPartName(part)));
  }
  return plan.BytesOf(part);
}

inline MemoryPlanOptions Options(size_t context, KvType kv_type, size_t threads = 2,
                                 size_t chunk = 128) {
  return {.decoder = {.context_tokens = context, .chunk_tokens = chunk, .kv_type = kv_type},
          .num_threads = threads};
}

}  // namespace cria
