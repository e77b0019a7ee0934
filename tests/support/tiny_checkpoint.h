#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "reference/reference_model.h"
#include "support/checkpoint_writer.h"

namespace cria::support {

// A checkpoint of random weights. They are drawn so that, as in a trained model, every activation
// is of order 1: matrices with deviation 1 / sqrt(inputs), norms around 1. The same spec gives the
// same bytes on every machine. bos_token_id and eos_token_ids of the config are those of the
// tokenizer.
struct CheckpointSpec {
  reference::ReferenceConfig config;
  CheckpointFormat format;
  uint64_t seed = 1;
};

// The model in memory, its weights rounded to the spec's storage type.
reference::ReferenceModel MakeModel(const CheckpointSpec& spec);

// The same model straight to disk: the weights pass through a few megabytes of memory whatever
// their size, and only the tokenizer is held whole (some 40 MB at 128,000 pieces).
void WriteRandomCheckpoint(const CheckpointSpec& spec, const std::filesystem::path& directory);

// Sets the token ids of the config to those of the tokenizer that the format asks for.
void SetTokenIds(CheckpointSpec& spec);

// Small shapes for tests: hidden size 64, two layers, four heads of 16, vocabulary 300, context
// 128, untied, f32, unless the name says otherwise.
CheckpointSpec SpecMha();
CheckpointSpec SpecGqa();  // Two key-value heads; the rest have that too unless they say so.
CheckpointSpec SpecMqa();  // One key-value head.
CheckpointSpec SpecTied();
CheckpointSpec SpecOddHeadDim();  // Heads of 10, which is not hidden_size / heads.
CheckpointSpec SpecLinearRope();
CheckpointSpec
SpecLlama3Rope();  // Of its frequencies some stay, one is blended, some are stretched.
CheckpointSpec SpecSlidingWindow();  // Of 12 tokens.
CheckpointSpec SpecPadded();  // 80 and 172 channels, which no quantization block of 32 divides.

// Shapes for measurements, in bf16: "llama-3.2-1b", "stories15m", "stories1m". Throws
// std::runtime_error for another name.
CheckpointSpec SpecNamed(std::string_view name);

}  // namespace cria::support
