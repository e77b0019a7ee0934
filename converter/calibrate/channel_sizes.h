#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "converter/calibrate/matrix.h"

namespace cria {

// Enough rows to know the sizes of channels.
inline constexpr size_t kScalingTokens = 2048;

// The root mean squares of channels over many rows.
class ChannelSizes {
 public:
  explicit ChannelSizes(size_t channels) : squares_(channels) {}

  void Add(const Matrix& rows) {
    for (size_t row = 0; row < rows.rows(); ++row) {
      for (size_t i = 0; i < squares_.size(); ++i) {
        squares_[i] += double{rows(row, i)} * rows(row, i);
      }
    }
    num_rows_ += rows.rows();
  }

  std::vector<float> Rms() const {
    std::vector<float> rms;
    rms.reserve(squares_.size());
    for (const double square : squares_) {
      rms.push_back(static_cast<float>(std::sqrt(square / static_cast<double>(num_rows_))));
    }
    return rms;
  }

 private:
  std::vector<double> squares_;
  size_t num_rows_ = 0;
};

}  // namespace cria
