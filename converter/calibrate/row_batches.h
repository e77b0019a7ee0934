#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "converter/calibrate/calibration_text.h"

namespace cria {

// Rows of activations, one for each token, that are computed at once.
struct RowBatch {
  // Rows that follow each other in the batch, and are all held back or not.
  struct Segment {
    size_t first;  // In the batch.
    size_t rows;
    bool is_held_back;
  };

  size_t first = 0;  // The number of rows in the batches before it.
  std::vector<uint32_t> rows;
  std::vector<Segment> segments;
};

// The batches of all tokens: some whole windows each, and every window is a segment.
std::vector<RowBatch> BatchAllRows(const CalibrationTokens& tokens);

// Batches of some tokens, in ascending order: first rows that are not held back, in a segment for
// each batch. They are no text, so attention cannot run on them.
std::vector<RowBatch> BatchSomeRows(const CalibrationTokens& tokens,
                                    std::span<const uint32_t> rows);

// Rows of all batches together.
size_t NumRows(std::span<const RowBatch> batches, bool is_held_back);

}  // namespace cria
