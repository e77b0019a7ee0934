#pragma once

#include "converter/calibrate/matrix.h"
#include "converter/write/file_plan.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/tensor_table.h"

namespace cria {

// Replaces rows of a tensor's weights, from row `first` on, by what is stored of them: what the
// codes that the tensor has stand for, or else their rounded values.
Status TakeStoredRows(const ThreadPool& threads, const PlannedTensor& tensor, size_t first,
                      MatrixView rows);

// What is stored of a tensor's weights in this layout minus the weights: the codes that the tensor
// has, or else its rounded values.
Result<Matrix> StoredError(const ThreadPool& threads, const Matrix& weights,
                           const PlannedTensor& tensor, const TensorLayout& layout);

}  // namespace cria
