#pragma once

#include <algorithm>
#include <cstddef>

#include "core/numeric.h"
#include "core/thread_pool.h"

namespace cria {

// Threads take at least this many elements at once: taking a task costs as much as computing some
// hundred elements.
inline constexpr size_t kMinTaskElements = 1024;

// Calls `task(row)` for every row; each call processes `elements` numbers.
template <typename Task>
void ForEachRow(const ThreadPool& pool, size_t rows, size_t elements, const Task& task) {
  if (rows * elements < kMinSharedElements) {
    for (size_t row = 0; row < rows; ++row) task(row);
  } else {
    const size_t task_rows = DivideRoundingUp(kMinTaskElements, elements);
    pool.ParallelFor(DivideRoundingUp(rows, task_rows), [&](size_t index) {
      const size_t end = std::min(rows, (index + 1) * task_rows);
      for (size_t row = index * task_rows; row < end; ++row) task(row);
    });
  }
}

}  // namespace cria
