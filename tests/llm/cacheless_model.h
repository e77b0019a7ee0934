#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <span>

#include "decode/test_kv_pages.h"
#include "decode/test_sequences.h"
#include "decode/token_model.h"

namespace cria {

// A model that knows how many tokens its sequence has, and nothing else of them.
class CachelessModel : public TokenModel {
 public:
  explicit CachelessModel(size_t context_tokens)
      : context_tokens_(context_tokens),
        sequences_({.pages = ShapeOfOneSequence(context_tokens)}) {}

  size_t hidden_size() const override { return 0; }
  Result<std::span<const float>> LastHiddenState(size_t) override {
    return std::span<const float>();
  }
  size_t context_tokens() const override { return context_tokens_; }
  size_t cache_tokens() const override { return context_tokens_; }
  size_t chunk_tokens() const override { return 8; }
  size_t max_sequences() const override { return 1; }
  size_t max_logit_rows() const override { return chunk_tokens(); }
  Sequences& sequences() override { return *sequences_; }
  Status CarryOutMoves() override { return {}; }
  Status Forward(const Batch& batch) override {
    for (const BatchRun& run : batch.runs) {
      CRIA_RETURN_IF_ERROR(sequences_->Truncate(run.sequence, run.first_position));
      CRIA_RETURN_IF_ERROR(sequences_->Extend(run.sequence, run.first_position + run.num_tokens));
    }
    return {};
  }

 private:
  const size_t context_tokens_;
  TestSequences sequences_;
};

}  // namespace cria
