#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "converter/quantize/row_quantizer.h"
#include "converter/write/scratch_file.h"
#include "converter/write/tensor_map.h"
#include "model/model_file.h"
#include "model/tensor_table.h"

namespace cria {

// The parts of a model file's payload, in their order in the file; the same as in schema/model.fbs.
enum class FileSection : uint8_t {
  kConstants,  // Norms.
  kEmbedding,  // The embedding table, which is also a tied head of the same scheme.
  kWeights,    // Every other matrix.
};
inline constexpr int kNumFileSections = 3;

// Schemes of the three kinds of matrices; norms are always f32.
struct TensorSchemes {
  Scheme weights = Scheme::kQb4w;
  Scheme embedding = Scheme::kQc8w;
  Scheme head = Scheme::kQc8w;
  size_t block_size = 32;  // The maximum; see MakeTensorLayout.
  // Matrices whose codes can be kept (CanKeepCodes) are stored as they are in the checkpoint,
  // instead of in the schemes above.
  bool keeps_weights = false;
  bool keeps_embedding = false;
  bool keeps_head = false;
};

// A tensor that is in its scheme already: its data and its scales in a scratch file.
struct EncodedTensor {
  std::shared_ptr<ScratchFile> file;
  uint64_t data_offset = 0;
  uint64_t scale_offset = 0;
  QuantizationError error = {};
};

// A tensor with its source and its place in the file.
struct PlannedTensor {
  StoredTensor stored;
  FileSection section;
  std::vector<MappedPart> parts;
  // Whether the outputs are rotated (RotateColumns), after the factors of the only part, or of
  // each expert's. Such a matrix must be encoded before it is written.
  bool rotates_outputs = false;
  bool keeps_codes = false;  // The blocks of the checkpoint are stored as they are.
  std::optional<EncodedTensor> encoded = {};  // Absent: it is quantized when it is written.
};

struct FilePlan {
  std::vector<PlannedTensor> tensors;         // In the order of ExpectedTensors.
  FileRange sections[kNumFileSections] = {};  // By FileSection.
  uint64_t file_bytes = 0;
};

// Chooses a layout for every tensor, or for each piece of it (StoredTensor::first_row), and leaves
// out a tied head that would be the same as the embedding. The tensors have no place in the file
// yet.
FilePlan PlanTensors(std::vector<MappedTensor> tensors, const ModelConfig& config,
                     const TensorSchemes& schemes);

// Sets a matrix's layout in the plan.
void Apply(const TensorLayout& layout, PlannedTensor& tensor);

// Room behind the metadata for fields that are known only when the tensors are written.
inline constexpr uint64_t kMetadataRoom = 64;

// Gives every tensor its place after metadata of this size and kMetadataRoom.
void PlaceTensors(uint64_t metadata_bytes, FilePlan& plan);

// A place in a scratch file for a tensor's codes, the scales behind the data.
EncodedTensor ReserveCodes(const std::shared_ptr<ScratchFile>& file, const TensorLayout& layout);

// Null if the plan has none. The layer is kNoLayer for a tensor outside the layers.
PlannedTensor* FindTensor(FilePlan& plan, TensorRole role, int layer);

// The output head: the embedding table if they are one.
PlannedTensor& HeadOf(FilePlan& plan);

}  // namespace cria
