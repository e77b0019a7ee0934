#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "cria/error.h"
#include "decode/token_model.h"

namespace cria {

// An open sequence of one of the models that run the same tokens.
struct ModelSequence {
  TokenModel* model = nullptr;
  SequenceId id = {};
};

// Gets the logits behind the token `row`, [vocab_size] of each model, in the order of the models.
using VisitLogits =
    std::function<Status(size_t row, std::span<const std::span<const float>> logits)>;

// Runs `tokens` as the positions from `first_position` on of every sequence, in chunks that every
// model takes, and calls `visit` for each of the last `num_rows` tokens.
Status ForwardRows(std::span<const ModelSequence> sequences, std::span<const int32_t> tokens,
                   size_t first_position, size_t num_rows, const VisitLogits& visit);

}  // namespace cria
