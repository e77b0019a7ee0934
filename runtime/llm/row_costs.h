#pragma once

#include <array>
#include <cstddef>

namespace cria {

// How long a Forward of several rows takes, learnt from those that were run. What was never run is
// assumed to be as fast as it could be, so that it is tried once if that would pay.
class RowCosts {
 public:
  // Forwards of more rows are not learnt, and take an infinite time.
  static constexpr size_t kMaxRows = 64;

  void Learn(size_t rows, double seconds);
  // Whether a Forward of just so many rows was learnt.
  bool Knows(size_t rows) const { return rows <= kMaxRows && relative_[rows] > 0.0; }
  // Seconds; between two numbers of rows that are known, those on the line between them, and
  // behind the last one as many as there; no less than for fewer rows. 0: nothing is known of so
  // few rows.
  double Seconds(size_t rows) const;

 private:
  // A Forward of r rows takes unit_ * relative_[r] seconds; 0: not known. The machine may become
  // slower for all of them: unit_ follows quickly, their relations slowly.
  double unit_ = 0.0;
  std::array<double, kMaxRows + 1> relative_ = {};
};

}  // namespace cria
