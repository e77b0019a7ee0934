#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "converter/calibrate/matrix.h"
#include "converter/write/scratch_file.h"
#include "cria/error.h"

namespace cria {

// Rows of activations, one for each token, in a scratch file.
class ActivationFile {
 public:
  // Rows have up to `max_width` floats.
  ActivationFile(ScratchFile& file, size_t num_rows, size_t max_width)
      : file_(file), offset_(file.Reserve(num_rows * max_width * sizeof(float))) {}

  // `rows` are those from `first_row` on, and all of one width until others are written. A matrix's
  // rows follow each other.
  Status Write(size_t first_row, const Matrix& rows) {
    return file_.WriteAt(OffsetOf(first_row, rows), std::as_bytes(rows.values()));
  }
  Result<Matrix> Read(size_t first_row, size_t num_rows, size_t width) const {
    Matrix rows(num_rows, width);
    CRIA_RETURN_IF_ERROR(
        file_.ReadAt(OffsetOf(first_row, rows), std::as_writable_bytes(rows.values())));
    return rows;
  }
  // Writes rows of any numbers, those that follow each other at once. ReadRows reads them so.
  Status WriteRows(std::span<const uint32_t> numbers, const Matrix& rows) {
    for (size_t i = 0, end = 0; i < numbers.size(); i = end) {
      end = EndOfRun(numbers, i);
      CRIA_RETURN_IF_ERROR(file_.WriteAt(OffsetOf(numbers[i], rows),
                                         std::as_bytes(ValuesOf(rows.values(), i, end, rows))));
    }
    return {};
  }
  Result<Matrix> ReadRows(std::span<const uint32_t> numbers, size_t width) const {
    Matrix rows(numbers.size(), width);
    for (size_t i = 0, end = 0; i < numbers.size(); i = end) {
      end = EndOfRun(numbers, i);
      CRIA_RETURN_IF_ERROR(
          file_.ReadAt(OffsetOf(numbers[i], rows),
                       std::as_writable_bytes(ValuesOf(rows.values(), i, end, rows))));
    }
    return rows;
  }

 private:
  static size_t EndOfRun(std::span<const uint32_t> numbers, size_t begin) {
    size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    return end;
  }
  template <typename Float>
  static std::span<Float> ValuesOf(std::span<Float> values, size_t begin, size_t end,
                                   const Matrix& rows) {
    return values.subspan(begin * rows.columns(), (end - begin) * rows.columns());
  }
  uint64_t OffsetOf(size_t first_row, const Matrix& rows) const {
    return offset_ + first_row * rows.columns() * sizeof(float);
  }

  ScratchFile& file_;
  uint64_t offset_;
};

}  // namespace cria
