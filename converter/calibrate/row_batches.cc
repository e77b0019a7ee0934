#include "converter/calibrate/row_batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/numeric.h"

namespace cria {
namespace {

// Tokens that are computed at once, if windows are not longer.
constexpr size_t kBatchTokens = 1024;

}  // namespace

std::vector<RowBatch> BatchAllRows(const CalibrationTokens& tokens) {
  const size_t size = tokens.window_tokens;
  const size_t windows = std::max<size_t>(1, kBatchTokens / size);
  std::vector<RowBatch> batches;
  for (size_t i = 0; i < tokens.num_windows(); i += windows) {
    RowBatch batch = {.first = i * size};
    const size_t count = std::min(windows, tokens.num_windows() - i);
    batch.rows.resize(count * size);
    std::ranges::iota(batch.rows, static_cast<uint32_t>(batch.first));
    for (size_t j = 0; j < count; ++j) {
      batch.segments.push_back({j * size, size, tokens.IsHeldBack(i + j)});
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

std::vector<RowBatch> BatchSomeRows(const CalibrationTokens& tokens,
                                    std::span<const uint32_t> rows) {
  std::vector<RowBatch> batches;
  size_t first = 0;
  for (const bool is_held_back : {false, true}) {
    std::vector<uint32_t> taken;
    for (const uint32_t row : rows) {
      if (tokens.IsHeldBack(row / tokens.window_tokens) == is_held_back) taken.push_back(row);
    }
    for (size_t i = 0; i < taken.size(); i += kBatchTokens) {
      const size_t count = std::min(kBatchTokens, taken.size() - i);
      const auto begin = taken.begin() + static_cast<ptrdiff_t>(i);
      batches.push_back({.first = first,
                         .rows = {begin, begin + static_cast<ptrdiff_t>(count)},
                         .segments = {{0, count, is_held_back}}});
      first += count;
    }
  }
  return batches;
}

size_t NumRows(std::span<const RowBatch> batches, bool is_held_back) {
  size_t sum = 0;
  for (const RowBatch& batch : batches) {
    for (const RowBatch::Segment& segment : batch.segments) {
      if (segment.is_held_back == is_held_back) sum += segment.rows;
    }
  }
  return sum;
}

}  // namespace cria
