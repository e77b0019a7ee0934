#pragma once

#include <functional>

#include "converter/calibrate/layer_blocks.h"
#include "converter/calibrate/matrix.h"
#include "converter/write/file_plan.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Reads the weights of a matrix.
using WeightReader = std::function<Result<Matrix>(const PlannedTensor&)>;

// Runs a layer over `hidden`, [rows, hidden_size], and adds its outputs there. With `rounds`, the
// inputs of the matrices are rounded as the runtime does, except those of a router.
Status RunLayer(const LayerBlocks& layer, const ModelConfig& config, const ThreadPool& threads,
                const WeightReader& read, bool rounds, Matrix& hidden);

}  // namespace cria
