#pragma once

#include <span>

#include "converter/calibrate/matrix.h"
#include "core/thread_pool.h"

namespace cria {

// Whether this processor has the instructions that the functions below are compiled for: on x86-64,
// AVX2 and FMA, which processors have from 2013 on.
bool LinearAlgebraRuns();

// Products on one thread, added to `out`. They give the same on every processor of an architecture.
//  - out [m, n] += factor * a [m, k] * b [k, n]
void AddProduct(ConstMatrixView a, ConstMatrixView b, float factor, MatrixView out);
//  - out [m, n] += a [m, k] * transposed b [n, k]
void AddProductWithTransposed(ConstMatrixView a, ConstMatrixView b, MatrixView out);
//  - out [m, n] += transposed a [k, m] * b [k, n]
void AddTransposedProduct(ConstMatrixView a, ConstMatrixView b, MatrixView out);

// row += factor * added.
void AddScaled(std::span<const float> added, float factor, std::span<float> row);

// vector * symmetric [n, n] * transposed vector.
double QuadraticForm(ConstMatrixView symmetric, std::span<const float> vector);

// Finds u and the pivots d with u * diagonal(d) * transposed u = `symmetric` [n, n], where u [n, n]
// is upper triangular with a diagonal of ones. Only the upper triangle is read. It computes in
// double, and gives the same for every number of threads. Returns false if the matrix is not
// positive definite.
bool FactorizeUpper(const ThreadPool& threads, ConstMatrixView symmetric, MatrixView u,
                    std::span<float> pivots);

// x [m, n] becomes x * inverse of (u * diagonal(pivots) * transposed u).
void DivideByFactorized(ConstMatrixView u, std::span<const float> pivots, MatrixView x);

}  // namespace cria
