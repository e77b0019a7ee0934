#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/file_layout.h"
#include "model/model_file.h"

namespace cria {

// The contents of a model file for a test. They may be invalid, and enumerations may have values
// without a name.
struct TestModelFile {
  std::string producer = "a test";
  std::string name = "tiny";
  std::vector<std::string> required_features;
  ModelConfig config;             // Only the first kind of layers is written, in the oldest fields.
  uint8_t rope_scaling_type = 0;  // As in the schema, and in place of the first kind's type.
  bool rope_scaling_is_absent = false;  // Its table is there, but none of its fields.
  // The fields of these names, which are written if they are not empty.
  std::vector<LayerKind> layer_kinds;
  std::vector<uint8_t> kind_of_layer;

  uint8_t tokenizer_family = 0;
  std::string piece_bytes;
  std::vector<uint32_t> piece_offsets;
  std::vector<uint8_t> piece_types;
  std::vector<uint32_t> sorted_ids;
  std::vector<uint32_t> merge_offsets;
  std::vector<Merge> merges;
  std::vector<std::string> split_patterns;
  bool add_bos_token = true;
  int32_t bos_token_id = 1;
  int32_t unk_token_id = 0;
  int32_t eos_token_id = 2;
  bool normalize_nfc = false;
  bool dummy_prefix_unless_space = false;
  std::vector<uint32_t> rstrip_ids;

  std::string chat_template_source;
  std::vector<int32_t> stop_token_ids = {2};
  // Written if the prompt is not empty.
  std::string reranking_prompt;
  std::vector<float> reranking_weight;
  std::vector<FileRange> sections;
  std::vector<StoredTensor> tensors;

  // Bytes of tensors by their offset from the start of the file.
  struct Piece {
    uint64_t offset;
    std::vector<std::byte> bytes;
  };
  std::vector<Piece> payload;
  uint64_t file_bytes = 0;

  StoredTensor& Find(TensorRole role, int layer = kNoLayer);
};

struct TestModelOptions {
  uint32_t hidden_size = 8;
  bool tied = true;
  Scheme matrices = Scheme::kF32;
  Scheme embedding = Scheme::kQc8w;
  // A tied head is stored only if this differs from the embedding's scheme.
  Scheme head = Scheme::kQc8w;
  size_t block_size = 32;
  bool biases_and_norms = false;  // Whether there are all kinds of them.
};

// A valid model with two layers, eight pieces and random weights.
TestModelFile MakeTestModelFile(const TestModelOptions& options = {});

// The file's bytes, with correct digest and checksum.
std::vector<std::byte> Serialize(const TestModelFile& file);

// Corrects the metadata digest and the preamble's checksum after bytes were changed.
void Reseal(std::vector<std::byte>& file);

FilePreamble PreambleOf(const std::vector<std::byte>& file);
void SetPreamble(std::vector<std::byte>& file, const FilePreamble& preamble);

}  // namespace cria
