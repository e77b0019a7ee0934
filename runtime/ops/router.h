#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cria::ops {

// Rows of f32 that a router reads: row r is at values + r * stride.
struct RouterRows {
  const float* values = nullptr;
  size_t stride = 0;
  size_t num_rows = 0;
};

// scores[r * scores_stride + i] = row r · weights[i], of `inputs` elements, for each of `outputs`
// rows of weights. Each result has the same bits for any number of other rows and outputs.
void RouterScores(const RouterRows& rows, const float* weights, size_t outputs, size_t inputs,
                  float* scores, size_t scores_stride);

// What is made of a router's scores.
struct ExpertChoice {
  bool normalize = false;  // The weights of the chosen experts have the sum 1.
  // Weights are sigmoids of scores instead of the softmax over all experts.
  bool has_sigmoids = false;
  // Only with sigmoids: one for each expert, added to the sigmoids that they are chosen by; null:
  // zeros.
  const float* bias = nullptr;
};

// Chooses the experts with the largest scores, as many as `experts` has, the largest first; of
// equal scores, that of the lower index. `weights` become the softmax of the scores over all
// experts, or with `normalize` over the chosen ones; or sigmoids, with `normalize` divided by their
// sum plus 1e-6, as LFM2's class does. There are no more chosen experts than scores. If all scores
// are NaN, so are the weights.
void ChooseExperts(std::span<const float> scores, const ExpertChoice& choice,
                   std::span<uint32_t> experts, std::span<float> weights);

// sigmoid(row · gate), of `size` elements.
float SharedExpertWeight(const float* row, const float* gate, size_t size);

// accumulator[i] += factor * addend[i].
void AddScaled(const float* addend, float factor, size_t size, float* accumulator);

}  // namespace cria::ops
