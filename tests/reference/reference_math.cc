#include "reference/reference_math.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace cria::reference {
namespace {

double Silu(double x) { return x / (1.0 + std::exp(-x)); }

// Hendrycks and Gimpel 2016: x times the probability that a normal variable is below x, and their
// approximation of that.
double Gelu(double x) { return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2)); }
double GeluTanh(double x) {
  return 0.5 * x *
         (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

}  // namespace

std::vector<double> MatrixTimesVector(const float* weights, size_t outputs,
                                      const std::vector<double>& x, const float* bias) {
  std::vector<double> y(outputs);
  for (size_t o = 0; o < outputs; ++o) {
    const float* row = weights + o * x.size();
    double sum = bias == nullptr ? 0.0 : bias[o];
    for (size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(row[i]) * x[i];
    y[o] = sum;
  }
  return y;
}

double Activate(ReferenceActivation activation, double x) {
  switch (activation) {
    case ReferenceActivation::kSilu:
      return Silu(x);
    case ReferenceActivation::kGelu:
      return Gelu(x);
    case ReferenceActivation::kGeluTanh:
      return GeluTanh(x);
    case ReferenceActivation::kSquaredRelu:
      return x > 0.0 ? x * x : 0.0;
    case ReferenceActivation::kXielu:
      break;  // It has weights.
  }
  throw std::runtime_error("unknown activation");
}

double Xielu(double x, double alpha_p, double alpha_n, double beta, double eps) {
  const auto softplus = [](double y) { return std::log1p(std::exp(y)); };
  if (x > 0.0) return softplus(alpha_p) * x * x + beta * x;
  return (std::expm1(std::min(x, eps)) - x) * (beta + softplus(alpha_n)) + beta * x;
}

void Softmax(std::vector<double>& scores) {
  const double maximum = *std::max_element(scores.begin(), scores.end());
  double sum = 0.0;
  for (double& score : scores) sum += score = std::exp(score - maximum);
  for (double& score : scores) score /= sum;
}

}  // namespace cria::reference
