#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <span>

#include "decode/test_kv_pages.h"
#include "decode/token_model.h"

namespace cria {

// A model that knows how many tokens its sequence has, and nothing else of them.
class CachelessModel : public TokenModel {
 public:
  explicit CachelessModel(size_t context_tokens)
      : context_tokens_(context_tokens), pages_(ShapeOfOneSequence(context_tokens)) {
    EXPECT_EQ(pages_->Open().value(), kSequence);
  }

  size_t context_tokens() const override { return context_tokens_; }
  size_t chunk_tokens() const override { return 8; }
  KvPages& pages() override { return *pages_; }
  Status Move(std::span<const PageMove>) override { return {}; }
  Status Forward(std::span<const int32_t> tokens, size_t first_position, size_t) override {
    CRIA_RETURN_IF_ERROR(pages_->Truncate(kSequence, first_position));
    return pages_->Extend(kSequence, first_position + tokens.size());
  }

 private:
  const size_t context_tokens_;
  TestKvPages pages_;
};

}  // namespace cria
