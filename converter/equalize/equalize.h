#pragma once

#include <cstddef>
#include <vector>

#include "converter/write/file_plan.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// What was evened out.
struct EqualizeReport {
  size_t num_places = 0;     // In each layer, and the norm before a head of its own.
  size_t num_equalized = 0;  // Where this lowers the estimated error.
};

// Evens out the sizes of the channels between tensors, which computes the same in f32 but loses
// less when it is quantized: activations have one scale for all channels of a token, so that a few
// large channels leave no bits for the others. Three kinds of places, of those that the model has,
// each only if the estimated error of what reads the channels becomes less:
//  - the gain of a norm is moved into the columns of what reads it: matrices, a router, the gate of
//    a shared expert;
//  - rows of up_proj are divided, and the columns of down_proj multiplied, by
//    s = sqrt(rms of the row / rms of the column), in each expert by itself;
//  - the same for v_proj and o_proj, with one s for all query heads of a key-value head.
// With `keeps_last_norm`, the gain of the last norm stays there, because embeddings are read behind
// it. It needs no data. The result is the same for any number of threads and on every machine.
Result<EqualizeReport> Equalize(FilePlan& plan, const ModelConfig& config,
                                const ThreadPool& threads, bool keeps_last_norm = false);

}  // namespace cria
