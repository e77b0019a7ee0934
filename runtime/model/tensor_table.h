#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/tensor_roles.h"
#include "weights/block_format.h"
#include "weights/scheme.h"

namespace cria {

std::string_view TensorRoleName(TensorRole role);

inline constexpr int kNoLayer = -1;

// A tensor of a configuration: its role, layer and logical shape.
struct TensorSpec {
  TensorRole role;
  int layer;               // kNoLayer outside the layers.
  size_t output_channels;  // Rows; 1 for a vector.
  size_t input_channels;   // Columns.
  // The experts of a mixture, whose rows follow one another; 1 for other tensors.
  size_t num_parts = 1;
  // It belongs to the layer that guesses tokens, which is not one of the model's own.
  bool is_of_mtp = false;

  // "layers.3.qkv_proj", for messages and tables.
  std::string Name() const;
  bool is_of_own_layer() const { return layer != kNoLayer && !is_of_mtp; }
  TensorForm form() const { return RowOf(role).form; }
  bool is_vector() const { return form() == TensorForm::kVector; }
  // Whether no scheme but f32 is possible.
  bool is_always_f32() const { return is_vector() || is_plain(); }
  bool is_plain() const { return form() == TensorForm::kPlainMatrix; }
  bool is_table() const { return form() == TensorForm::kTable; }
  // Whether products use the matrix: all but tables. False for the embedding table, even if it is
  // the tied output head.
  bool is_multiplied() const { return !is_vector() && !is_table(); }
  // How many matrices of a checkpoint the rows come from, each of which may be stored as a tensor
  // of its own (StoredTensor::first_row): 4 for q/k/v and gates, 2 for gate/up and for
  // linear_in_proj, otherwise 1.
  size_t max_pieces() const;
};

// Every tensor of a model with this configuration, in the order in which a forward pass uses them.
// A tied output head is listed, too; a file stores it separately only if its scheme differs from
// the embedding's.
std::vector<TensorSpec> ExpectedTensors(const ModelConfig& config);

// The number of elements of all vectors together.
uint64_t VectorElements(const ModelConfig& config);

// How a matrix with the given logical columns is stored in a scheme.
struct TensorLayout {
  Scheme scheme = Scheme::kF32;
  size_t output_channels = 0;
  size_t input_channels = 0;
  size_t padded_input_channels = 0;  // A multiple of block_size for kQb4w, of whole blocks.
  size_t block_size = 0;             // kQb4w only.
  float factor = 1.0f;  // All weights of a BlockFormat are multiplied by it; otherwise 1.
  // Each of so many equal parts is packed by itself, because products use one of them at a time.
  size_t num_parts = 1;
  // Packed parts follow one another without unused bytes up to the next page: a page may have bytes
  // of two parts, so that reading one part from the disk also reads some of another.
  bool parts_share_pages = false;
  // The rows are used as they are: packing does not rearrange them.
  bool is_plain = false;

  // The layout of one part.
  TensorLayout Part() const {
    TensorLayout part = *this;
    part.output_channels /= num_parts;
    part.num_parts = 1;
    return part;
  }
  uint64_t row_bytes() const;
  uint64_t data_bytes() const { return output_channels * row_bytes(); }
  size_t scales_per_row() const;
  uint64_t row_scale_bytes() const;
  uint64_t scale_bytes() const { return output_channels * row_scale_bytes(); }
  // Null for XNNPACK's schemes.
  const BlockFormat* block_format() const { return FindBlockFormat(scheme); }

  bool operator==(const TensorLayout&) const = default;
};

// Added to every kQb4w weight when it is stored.
inline constexpr uint8_t kQb4wZeroPoint = 8;

// Possible numbers of input channels that share a scale in kQb4w.
inline constexpr std::array<size_t, 4> kBlockSizes = {32, 64, 128, 256};

// Rows are padded to blocks of this size at most.
inline constexpr size_t kMaxPaddedBlock = 64;

// The layout of `spec` in `scheme`. `block_size` (one of kBlockSizes; kQb4w only) is the maximum:
// the largest block size up to it that divides the inputs is used, or 32 with padding if none does.
// The inputs of a BlockFormat are padded to whole blocks if these are small, and otherwise must be
// whole blocks.
TensorLayout MakeTensorLayout(const TensorSpec& spec, Scheme scheme, size_t block_size);

}  // namespace cria
