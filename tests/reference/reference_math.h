#pragma once

#include <cstddef>
#include <vector>

#include "reference/reference_model.h"

// The functions that all parts of the reference need, as plain loops in float64.
namespace cria::reference {

// y[o] = sum over i of weights[o][i] * x[i], plus bias[o] where there is one; weights are [outputs,
// x.size()].
std::vector<double> MatrixTimesVector(const float* weights, size_t outputs,
                                      const std::vector<double>& x, const float* bias = nullptr);

double Activate(ReferenceActivation activation, double x);

// Huang and Schlag 2024, with the numbers that are trained: softplus keeps the alphas positive.
double Xielu(double x, double alpha_p, double alpha_n, double beta, double eps);

void Softmax(std::vector<double>& scores);

}  // namespace cria::reference
