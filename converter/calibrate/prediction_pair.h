#pragma once

#include <cstddef>
#include <limits>
#include <span>

namespace cria {

// Two predictions of the same token, whose logits can come in parts: the checkpoint's, and those of
// a model that was changed.
class PredictionPair {
 public:
  // Adds the logits that both have for the tokens from `first` on.
  void Add(size_t first, std::span<const float> exact, std::span<const float> changed);

  // Whether the same token is the most likely one; of several, the first one counts.
  bool have_same_choice() const { return exact_.choice == changed_.choice; }
  // The Kullback-Leibler divergence of the changed prediction from the exact one, in nats: the sum
  // of p * (log(p) - log(q)) for their probabilities p and q. Its last bits depend on the
  // processor, as those of the C library's exponentials do.
  double Divergence() const;

 private:
  struct Prediction {
    // Takes larger logits into account. Returns what sums of powers so far are multiplied by.
    double Raise(size_t first, std::span<const float> logits);
    double LogSumOfExps() const;

    float largest = std::numeric_limits<float>::lowest();  // Logit.
    size_t choice = 0;                                     // The token that has it.
    double sum = 0.0;                                      // Powers e^(logit - largest), added up.
  };

  Prediction exact_;
  Prediction changed_;
  double weighted_ =
      0.0;  // Sum of e^(x - largest) * (x - y) over exact logits x and changed ones y.
};

}  // namespace cria
