#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/reference_model.h"
#include "support/checkpoint_writer.h"

namespace cria::support {

// A checkpoint of random weights. They are drawn so that, as in a trained model, every activation
// is of order 1: matrices with deviation 1 / sqrt(inputs), norms around 1, biases around 0. The
// same spec gives the same bytes on every machine. bos_token_id and eos_token_ids of the config are
// those of the tokenizer.
struct CheckpointSpec {
  reference::ReferenceConfig config;
  CheckpointFormat format;
  uint64_t seed = 1;
};

// The model in memory, its weights rounded to the spec's storage type.
reference::ReferenceModel MakeModel(const CheckpointSpec& spec);

// Writes the same model to disk. For weights of any size, it needs a few megabytes of memory, and
// memory for the whole tokenizer (about 40 MB for 128,000 pieces).
void WriteRandomCheckpoint(const CheckpointSpec& spec, const std::filesystem::path& directory);

// Sets the token ids of the config to those of the tokenizer of the format.
void SetTokenIds(CheckpointSpec& spec);

// Small shapes for tests: hidden size 64, two layers, four heads of 16, vocabulary 300, context
// 128, untied, f32, unless the name says otherwise.
CheckpointSpec SpecMha();
CheckpointSpec SpecGqa();  // Two key-value heads, as in the next ones unless they say otherwise.
CheckpointSpec SpecMqa();  // One key-value head.
CheckpointSpec SpecTied();
CheckpointSpec SpecOddHeadDim();  // Heads of 10, which is not hidden_size / heads.
CheckpointSpec SpecLinearRope();
// Some of its frequencies are kept, one is blended, and some are stretched.
CheckpointSpec SpecLlama3Rope();
CheckpointSpec SpecDynamicRope();  // Trained for 32 tokens, for up to 128.
CheckpointSpec SpecYarnRope();     // The same, with an attention factor.
CheckpointSpec SpecBiases();       // A Llama with biases everywhere.
CheckpointSpec SpecMistral();      // Heads of 24, and a window of 12 tokens.
// Four layers, of which the first and the third have a window of 12 tokens.
CheckpointSpec SpecMinistral();
// Three layers, of which the first two have a window of 12 tokens. The third has frequencies of its
// own, and an attention factor.
CheckpointSpec SpecTwoRopes();
CheckpointSpec SpecQwen2();        // Tied, as in the small models of the family.
CheckpointSpec SpecQwen2Window();  // The same, with a window of 12 tokens.
CheckpointSpec SpecQwen3();        // Tied, with heads of 32.
CheckpointSpec SpecQwen3Biases();  // Untied, with attention_bias.
CheckpointSpec SpecQwen3Window();  // The second of two layers has a window of 12 tokens.
CheckpointSpec SpecPadded();       // 80 and 172 channels, which are not multiples of 32.

// All of these, under the names of their functions: "Qwen3".
struct NamedSpec {
  const char* name;
  CheckpointSpec (*make)();
};
std::span<const NamedSpec> TinySpecs();

// Shapes for measurements, in bf16: "llama-3.2-1b", "llama-draft", "qwen2.5-0.5b", "qwen3-0.6b",
// "stories15m", "stories1m"; or one of TinySpecs. Throws std::runtime_error for another name.
CheckpointSpec SpecNamed(std::string_view name);
std::vector<std::string> SpecNames();

}  // namespace cria::support
