#pragma once

#include <memory>
#include <string>
#include <vector>

#include "llm/engine.h"
#include "llm/tiny_engine.h"
#include "support/tiny_checkpoint.h"

namespace cria {

// The engine that the fuzzer of session files loads them into, and that makes its seeds: of one
// layer, with a context of two pages.
inline std::unique_ptr<TinyEngine> LoadSessionModel() {
  support::CheckpointSpec spec = support::SpecGqa();
  spec.config.hidden_size = 8;
  spec.config.intermediate_size = 32;
  spec.config.num_hidden_layers = 1;
  spec.config.num_attention_heads = 2;
  spec.config.num_key_value_heads = 1;
  spec.config.head_dim = 4;
  // The file is removed, but stays open.
  return TinyModelFile(spec, 128).Load(KvType::kInt8, 80);
}

}  // namespace cria
