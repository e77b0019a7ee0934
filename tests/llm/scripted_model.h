#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "decode/token_model.h"

#include <gtest/gtest.h>

namespace cria {

// A model whose next tokens are those of a test's script. It records its calls.
class ScriptedModel final : public TokenModel {
 public:
  using Script = std::function<int32_t(std::span<const int32_t> context)>;

  struct ForwardCall {
    size_t first_position;
    std::vector<int32_t> tokens;
    bool operator==(const ForwardCall&) const = default;
  };
  struct DropCall {
    size_t first;
    size_t count;
    size_t end;
    bool operator==(const DropCall&) const = default;
  };

  ScriptedModel(size_t vocab_size, size_t context_tokens, size_t chunk_tokens, Script script)
      : context_tokens_(context_tokens),
        chunk_tokens_(chunk_tokens),
        script_(std::move(script)),
        logits_(vocab_size) {}

  size_t vocab_size() const override { return logits_.size(); }
  size_t context_tokens() const override { return context_tokens_; }
  size_t chunk_tokens() const override { return chunk_tokens_; }

  Status Forward(std::span<const int32_t> tokens, size_t first_position,
                 size_t num_logits) override {
    EXPECT_FALSE(tokens.empty());
    EXPECT_LE(num_logits, tokens.size());
    EXPECT_LE(tokens.size(), chunk_tokens_);
    EXPECT_LE(first_position, cache_.size()) << "positions before it are not in the cache";
    EXPECT_LE(first_position + tokens.size(), context_tokens_);
    num_logits_ = 0;
    for (const int32_t token : tokens) {
      if (token < 0 || static_cast<size_t>(token) >= logits_.size()) {
        return Fail(ErrorCode::kOutOfRange, "token id " + std::to_string(token));
      }
    }
    if (calls.size() == fail_at_call) return Fail(ErrorCode::kInternal, "the script says so");
    calls.push_back({first_position, {tokens.begin(), tokens.end()}});
    rows_wanted.push_back(num_logits);
    cache_.resize(first_position);
    cache_.insert(cache_.end(), tokens.begin(), tokens.end());
    num_logits_ = num_logits;
    if (after_forward) after_forward();
    return {};
  }

  Status DropPositions(size_t first, size_t count, size_t end) override {
    EXPECT_GT(count, 0u);
    EXPECT_LE(first + count, end);
    EXPECT_LE(end, cache_.size()) << "positions before it are not in the cache";
    num_logits_ = 0;
    if (fail_drops) {
      cache_.resize(first);
      return Fail(ErrorCode::kInternal, "the script says so");
    }
    drops.push_back({first, count, end});
    cache_.resize(end);
    const auto dropped = cache_.begin() + static_cast<ptrdiff_t>(first);
    cache_.erase(dropped, dropped + static_cast<ptrdiff_t>(count));
    return {};
  }

  // The script's token at 8, all others at 0.
  Result<std::span<float>> Logits(size_t row) override {
    EXPECT_LT(row, num_logits_);
    rows_read.push_back(row);
    const auto context = std::span(cache_).first(cache_.size() - num_logits_ + row + 1);
    std::ranges::fill(logits_, 0.0f);
    logits_[static_cast<size_t>(script_(context))] = 8.0f;
    return std::span(logits_);
  }

  size_t tokens_run() const {
    size_t sum = 0;
    for (const ForwardCall& call : calls) sum += call.tokens.size();
    return sum;
  }

  std::span<const int32_t> cache() const { return cache_; }

  std::vector<ForwardCall> calls;   // Only successful calls.
  std::vector<DropCall> drops;      // Only successful calls.
  std::vector<size_t> rows_wanted;  // num_logits of each of the `calls`.
  std::vector<size_t> rows_read;    // The row of each call of Logits.
  bool fail_drops = false;          // DropPositions fails and loses the positions from `first` on.
  size_t fail_at_call = SIZE_MAX;
  std::function<void()> after_forward;

 private:
  size_t context_tokens_;
  size_t chunk_tokens_;
  Script script_;
  std::vector<int32_t> cache_;
  size_t num_logits_ = 0;
  std::vector<float> logits_;
};

}  // namespace cria
