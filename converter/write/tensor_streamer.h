#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "converter/quantize/row_quantizer.h"
#include "converter/write/file_plan.h"
#include "converter/write/progress.h"
#include "core/output_file.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/checksum.h"

namespace cria {

// Converts tensors slice by slice: threads read and quantize slices of rows into buffers, and the
// calling thread stores them in order. The slices, and so the results, do not depend on the number
// of threads.
class TensorStreamer {
 public:
  TensorStreamer(OutputFile& file, const ThreadPool& threads, const ProgressCallback& progress,
                 uint64_t total_weights);

  // Writes the tensor to its place and records its checksum.
  Result<QuantizationError> Stream(PlannedTensor& tensor);

 private:
  // Rows of one part; each part of a vector is one row.
  struct Slice {
    const MappedPart* part;
    uint64_t first_row;  // In the part.
    size_t num_rows;
    TensorLayout layout;  // The layout of the rows.
    bool keeps_codes;     // As in PlannedTensor.
  };

  // Working memory for one slice at a time.
  struct Workspace {
    TensorReader reader;
    std::vector<float> values;  // [rows of the slice, input_channels]
    std::vector<float> row;     // [padded_input_channels]
    std::vector<std::byte> data;
    std::vector<std::byte> scales;
    QuantizationError error;
    Status status;
  };

  Result<QuantizationError> Copy(const EncodedTensor& encoded, StoredTensor& stored);
  static std::vector<Slice> MakeSlices(const PlannedTensor& tensor);
  static void ConvertSlice(const Slice& slice, Workspace& workspace);
  Status ReportProgress(const StoredTensor& tensor, uint64_t weights);

  OutputFile& file_;
  const ThreadPool& threads_;
  const ProgressCallback& progress_;
  uint64_t total_weights_;
  uint64_t done_weights_ = 0;
  std::vector<Workspace> workspaces_;
};

}  // namespace cria
