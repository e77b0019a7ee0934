#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/config.h"
#include "model/model_file.h"
#include "ranks/divide.h"

namespace cria::ranks {

// The rows and columns of a tensor that a rank has.
struct TensorSlice {
  std::vector<Range> rows;     // One behind another.
  std::vector<Range> columns;  // One range, except for vectors: there it is like rows of matrices.

  // The slice of a share; `config` is the whole model's. Most vectors are needed by every rank.
  static TensorSlice Of(const TensorSpec& spec, const ModelConfig& config, const RankShare& share);
  bool IsAllOf(const TensorLayout& layout) const;
};

// Reads a slice of a stored tensor.
class SlicedTensor final : public TensorPart {
 public:
  SlicedTensor(const StoredTensor& stored, TensorSlice slice);

  // The slice's own layout. Blocks of int4 may be smaller than in the file: a share that does not
  // begin at a multiple of a block has several blocks with the same scale.
  const TensorLayout& layout() const { return layout_; }

  Status Read(const ModelFile& model, size_t first, size_t rows, std::span<std::byte> data,
              std::span<std::byte> scales) const override;

 private:
  // Rows that follow one another in the file.
  struct Rows {
    size_t stored;
    size_t count;
  };
  Rows StoredRows(size_t row) const;
  Status ReadVector(const ModelFile& model, std::span<std::byte> data) const;
  Status ReadColumns(const ModelFile& model, const Rows& rows, std::span<std::byte> data) const;
  Status ReadScales(const ModelFile& model, const Rows& rows, std::span<std::byte> scales) const;

  const TensorLayout stored_;
  const FileRange data_;
  const FileRange scales_;
  const TensorSlice slice_;
  TensorLayout layout_;
};

}  // namespace cria::ranks
