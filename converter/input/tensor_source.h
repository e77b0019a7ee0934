#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/input/element_type.h"
#include "core/platform.h"
#include "cria/error.h"

namespace cria {

// Where elements are stored: row-major from `offset` on.
struct TensorShard {
  std::shared_ptr<const platform::File> file;
  uint64_t offset;  // From the start of the file.
};

// A tensor of a checkpoint and the place of its elements, which are row-major. They are read on
// demand instead of being mapped: so the resident memory is known, and a file that is truncated
// meanwhile, or a failing disk, causes an error instead of SIGBUS.
struct TensorSource {
  std::string name = {};  // The checkpoint's name.
  ElementType type = ElementType::kF32;
  std::vector<uint64_t> shape = {};  // The whole tensor's, outermost first.
  std::shared_ptr<const platform::File> file = {};
  uint64_t offset = 0;  // From the start of the file.

  // A tensor that was split for several processors has equal parts of its rows, or of its columns,
  // in `file` and in each of these.
  std::vector<TensorShard> other_shards = {};
  bool is_split_by_columns = false;

  // Not null: blocks of MXFP4 are stored as Hugging Face has them, in two tensors. Here are the
  // bytes of exponents, and at `offset` 16 bytes of codes for each block, with the codes of inputs
  // 2 * i and 2 * i + 1 in byte i, the first in its low bits. They are read as blocks of GGML.
  TensorShard exponents = {};

  // Not 0: in each head of this size, the rows that rope rotates together are stored next to each
  // other, 2 * i and 2 * i + 1. They are read in half-split order, i and i + head_dim / 2.
  uint32_t interleaved_head_dim = 0;
  // If rope rotates a part of each head: it rotates so many rows at its start; 0: all of them.
  uint32_t interleaved_channels = 0;

  // Only some of the stored rows are the tensor's: `count` of every `period` rows, from `first` on;
  // a period of 0 means all. Only for a tensor that is neither split nor interleaved.
  struct RowChoice {
    uint32_t period = 0;
    uint32_t first = 0;
    uint32_t count = 0;
  };
  RowChoice row_choice = {};

  // The elements are stored as [shape[1], shape[0]], where rows that are not chosen count, too;
  // reading any of them reads the whole tensor. Only for a small matrix that is neither split nor
  // interleaved.
  bool is_transposed = false;

  // The model's element is (addend + stored element) * factor, or with is_logarithm
  // exp(stored element) * factor. What would exceed the largest float becomes it.
  bool is_logarithm = false;
  float addend = 0.0f;
  float factor = 1.0f;
  // The first `count` of every `period` rows have another factor besides; a period of 0 means none.
  struct RowFactor {
    uint32_t period = 0;
    uint32_t count = 0;
    float factor = 1.0f;
  };
  RowFactor row_factor = {};
  // What the elements of each row are multiplied by besides, [columns]; null: nothing.
  std::shared_ptr<const std::vector<float>> column_factors = {};

  uint64_t num_elements() const;
  uint64_t num_bytes() const;     // As stored, in all shards.
  std::string ShapeText() const;  // "[512, 64]"
};

// `count` of every `period` rows of a tensor that is neither split nor interleaved, from `first`
// on. The number of rows must be a multiple of the period.
TensorSource ChooseRows(const TensorSource& source, const TensorSource::RowChoice& choice);

// Rows [first_row, first_row + num_rows) of a tensor that is neither split nor interleaved.
TensorSource RowsOf(const TensorSource& source, uint64_t first_row, uint64_t num_rows);

// Whether the model can have the tensor's codes as they are stored: it is in blocks, and all of it
// has one factor at most.
bool CanKeepCodes(const TensorSource& source);

// Keyed by name.
using TensorSources = std::map<std::string, TensorSource, std::less<>>;

// Reads elements of one tensor as floats. One thread at a time may use it.
class TensorReader {
 public:
  // Reads elements [first, first + destination.size()), which must be inside the tensor: whole
  // blocks, and whole rows if the tensor is split or interleaved. If an element is not finite,
  // fails and names the tensor and the element.
  Status Read(const TensorSource& source, uint64_t first, std::span<float> destination);
  // The bytes of what Read has read last, unless it was transposed, as they are stored; of an
  // interleaved tensor, rows are in half-split order.
  std::span<const std::byte> stored() const { return raw_; }

 private:
  Status ReadTransposed(const TensorSource& source, uint64_t first, std::span<float> destination);

  std::vector<std::byte> raw_;
  std::vector<float> stored_order_;  // All elements of a transposed tensor.
};

}  // namespace cria
