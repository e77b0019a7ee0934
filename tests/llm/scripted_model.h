#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "decode/test_kv_pages.h"
#include "decode/token_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cria {

// A model whose next tokens are those of a test's script. It records its calls. Its cache has a row
// for each position on a page, as the real one.
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
        pages_(ShapeOfOneSequence(context_tokens)),
        rows_(pages_->num_pages() * kKvPageTokens),
        logits_(vocab_size) {
    EXPECT_EQ(pages_->Open().value(), kSequence);
    EXPECT_TRUE(pages_->Reserve(kSequence, context_tokens));
  }

  size_t vocab_size() const override { return logits_.size(); }
  size_t context_tokens() const override { return context_tokens_; }
  size_t chunk_tokens() const override { return chunk_tokens_; }

  Status Forward(std::span<const int32_t> tokens, size_t first_position,
                 size_t num_logits) override {
    EXPECT_FALSE(tokens.empty());
    EXPECT_LE(num_logits, tokens.size());
    EXPECT_LE(tokens.size(), chunk_tokens_);
    EXPECT_LE(first_position, pages_->num_tokens(kSequence)) << "tokens before it are missing";
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
    EXPECT_TRUE(pages_->Truncate(kSequence, first_position));
    EXPECT_TRUE(pages_->Extend(kSequence, first_position + tokens.size()));
    EXPECT_THAT(pages_->moves(), testing::IsEmpty());
    for (size_t i = 0; i < tokens.size(); ++i) {
      rows_[RowOf(first_position + i)] = {tokens[i], first_position + i};
    }
    ReadCache();
    num_logits_ = num_logits;
    if (after_forward) after_forward();
    return {};
  }

  KvPages& pages() override { return *pages_; }

  Status Move(std::span<const PageMove> moves) override {
    EXPECT_FALSE(moves.empty());
    num_logits_ = 0;
    for (const PageMove& move : moves) {
      for (uint32_t i = 0; i < move.num_rows; ++i) {
        Row row = rows_[move.source_page * kKvPageTokens + move.source_row + i];
        row.position -= move.distance;
        if (fail_moves) row = {};
        rows_[move.target_page * kKvPageTokens + move.target_row + i] = row;
      }
    }
    if (fail_moves) return Fail(ErrorCode::kInternal, "the script says so");
    RecordDrop(moves);
    ReadCache();
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
  std::vector<DropCall> drops;      // What was dropped by successful calls of Move.
  std::vector<size_t> rows_wanted;  // num_logits of each of the `calls`.
  std::vector<size_t> rows_read;    // The row of each call of Logits.
  bool fail_moves = false;          // Move fails and loses the rows.
  size_t fail_at_call = SIZE_MAX;
  std::function<void()> after_forward;

 private:
  struct Row {
    int32_t token = -1;
    size_t position = SIZE_MAX;  // By which the key is rotated.
  };

  size_t RowOf(size_t position) const { return pages_->Table(kSequence).Row(position); }

  // The sequence's tokens, whose keys must be rotated to their positions.
  void ReadCache() {
    cache_.clear();
    for (size_t i = 0; i < pages_->num_tokens(kSequence); ++i) {
      const Row& row = rows_[RowOf(i)];
      if (row.token >= 0) {
        EXPECT_EQ(row.position, i);
      }
      cache_.push_back(row.token);
    }
  }

  void RecordDrop(std::span<const PageMove> moves) {
    const auto first = std::ranges::find_if(moves, [](auto& move) { return move.distance != 0; });
    ASSERT_NE(first, moves.end());
    const auto table = pages_->Table(kSequence).pages;
    const auto block = std::ranges::find(table, first->target_page) - table.begin();
    drops.push_back({static_cast<size_t>(block) * kKvPageTokens + first->target_row,
                     first->distance, pages_->num_tokens(kSequence) + first->distance});
  }

  size_t context_tokens_;
  size_t chunk_tokens_;
  Script script_;
  TestKvPages pages_;
  std::vector<Row> rows_;  // By page and row.
  std::vector<int32_t> cache_;
  size_t num_logits_ = 0;
  std::vector<float> logits_;
};

}  // namespace cria
