#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "decode/test_sequences.h"
#include "decode/token_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cria {

// What the layers of a ScriptedModel keep.
struct ScriptedLayers {
  std::vector<uint32_t> windows = {0};
  size_t max_state_rows = 0;  // RecurrentStates::Shape::max_rows; 0: no layer is recurrent.
  size_t num_checkpoints = 0;
  size_t num_kept_sequences = 0;  // DecoderOptions::num_kept_sequences
};

// A model whose next tokens are those of a test's script. It records its calls. Its cache has a row
// for each position on a page, as the real one.
class ScriptedModel final : public TokenModel {
 public:
  using Script = std::function<int32_t(std::span<const int32_t> context)>;

  // One run of a batch.
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

  ScriptedModel(size_t vocab_size, size_t context_tokens, size_t chunk_tokens, Script script,
                size_t num_sequences = 1, const ScriptedLayers& layers = {})
      : vocab_size_(vocab_size),
        context_tokens_(context_tokens),
        chunk_tokens_(chunk_tokens),
        num_sequences_(num_sequences),
        script_(std::move(script)),
        sequences_({.pages = {.num_pages = (context_tokens + kKvPageTokens - 1) / kKvPageTokens,
                              .num_sequences = num_sequences + layers.num_kept_sequences,
                              .sequence_tokens = context_tokens,
                              .chunk_tokens = chunk_tokens,
                              .windows = layers.windows,
                              .num_checkpoints = layers.num_checkpoints},
                    .max_state_rows = layers.max_state_rows}),
        states_(num_sequences + layers.num_kept_sequences + layers.num_checkpoints),
        logits_(chunk_tokens * vocab_size) {
    for (size_t group = 0; group < pages().num_groups(); ++group) {
      rows_.emplace_back(pages().group(group).num_pages() * kKvPageTokens);
    }
  }

  size_t vocab_size() const override { return vocab_size_; }
  // The vector of a token is its id, and the hidden state is the token that the script says.
  size_t hidden_size() const override { return 1; }
  size_t context_tokens() const override { return context_tokens_; }
  size_t cache_tokens() const override { return context_tokens_; }
  size_t chunk_tokens() const override { return chunk_tokens_; }
  size_t max_sequences() const override { return num_sequences_; }
  size_t max_logit_rows() const override { return chunk_tokens_; }

  Status Forward(const Batch& batch) override {
    EXPECT_FALSE(is_running_) << "two threads use the model";
    is_running_ = true;
    EXPECT_LE(batch.tokens.size(), chunk_tokens_);
    EXPECT_LE(batch.runs.size(), num_sequences_);
    contexts_.clear();
    const Status run = RunAll(batch);
    if (!run) contexts_.clear();
    if (run && after_forward) after_forward();
    is_running_ = false;
    return run;
  }

  bool can_guess() const override { return guess != nullptr; }
  // What `guess` says of the sequence's tokens before the position, the token, and what was chosen.
  Status Guess(const GuessRequest& request, const GuessCallback& choose) override {
    if (!can_guess()) return TokenModel::Guess(request, choose);
    EXPECT_FALSE(is_running_) << "two threads use the model";
    EXPECT_TRUE(sequences_->Truncate(request.sequence, request.position));
    CopyStates();
    CopyRows(pages().moves());
    sequences_->ClearMoves();
    CRIA_RETURN_IF_ERROR(
        sequences_->Extend(request.sequence, request.position + request.max_tokens));
    EXPECT_TRUE(sequences_->Truncate(request.sequence, request.position));
    std::vector<int32_t> context = Cache(request.sequence);
    context.push_back(request.token);
    for (size_t i = 0; i < request.max_tokens; ++i) {
      std::vector<float> logits(vocab_size_);
      logits[static_cast<size_t>(guess(context))] = 8.0f;
      const int32_t token = choose(logits);
      if (token < 0) break;
      context.push_back(token);
    }
    return {};
  }

  Sequences& sequences() override { return *sequences_; }

  Status CarryOutMoves() override {
    EXPECT_FALSE(is_running_) << "two threads use the model";
    CopyStates();
    const std::vector<PageMove> moves(pages().moves().begin(), pages().moves().end());
    sequences_->ClearMoves();
    for (const PageMove& move : moves) {
      std::vector<Row>& rows = rows_[move.group];
      for (uint32_t i = 0; i < move.num_rows; ++i) {
        Row row = rows[move.source_page * kKvPageTokens + move.source_row() + i];
        row.position -= move.distance;
        if (fail_moves) row = {};
        rows[move.target_page * kKvPageTokens + move.target_row() + i] = row;
      }
    }
    if (fail_moves && !moves.empty()) return Fail(ErrorCode::kInternal, "the script says so");
    const bool are_dropped =
        std::ranges::any_of(moves, [](auto& move) { return move.distance != 0; });
    if (num_sequences_ == 1 && are_dropped) {
      RecordDrop(moves);
      cache_ = Cache(0);
    }
    return {};
  }

  // The script's token at 8, all others at 0.
  Result<std::span<float>> Logits(size_t row) override {
    EXPECT_LT(row, contexts_.size());
    rows_read.push_back(row);
    const auto logits = std::span(logits_).subspan(row * vocab_size_, vocab_size_);
    std::ranges::fill(logits, 0.0f);
    logits[static_cast<size_t>(script_(contexts_[row]))] = 8.0f;
    return logits;
  }

  Result<std::span<const float>> LastHiddenState(size_t row) override {
    EXPECT_LT(row, contexts_.size());
    hidden_state_ = static_cast<float>(script_(contexts_[row]));
    return std::span(&hidden_state_, 1);
  }

  size_t tokens_run() const {
    size_t sum = 0;
    for (const ForwardCall& call : calls) sum += call.tokens.size();
    return sum;
  }

  // What the sequence that ran last has in its cache, if there is one sequence.
  std::span<const int32_t> cache() const { return cache_; }

  // What a sequence has in its cache.
  std::vector<int32_t> TokensIn(SequenceId sequence) const { return Cache(sequence); }
  // Writes what a sequence is to have that Sequences::Restore has made as long.
  void WriteTokens(SequenceId sequence, std::span<const int32_t> tokens) {
    for (size_t group = 0; group < rows_.size(); ++group) {
      for (size_t i = pages().group(group).first_row(sequence); i < tokens.size(); ++i) {
        rows_[group][RowOf(group, sequence, i)] = {tokens[i], i};
      }
    }
    if (sequences_->states() == nullptr) return;
    states_[sequences_->states()->Run(sequence).place].assign(tokens.begin(), tokens.end());
  }

  std::vector<ForwardCall> calls;     // Only successful ones.
  std::vector<size_t> sequences_run;  // How many sequences each successful Forward ran.
  std::vector<DropCall> drops;        // What was dropped by successful calls of Move.
  std::vector<size_t> rows_wanted;    // num_logits of each of the `calls`.
  std::vector<size_t> rows_read;      // The row of each call of Logits.
  bool fail_moves = false;            // Move fails and loses the rows.
  size_t fail_at_call = SIZE_MAX;
  int32_t failing_token = -1;  // Runs that have it fail.
  std::function<void()> after_forward;
  Script guess;  // Null: the model cannot.

 private:
  struct Row {
    int32_t token = -1;
    size_t position = SIZE_MAX;  // By which the key is rotated.
  };

  Status RunAll(const Batch& batch) {
    size_t done = 0;
    std::vector<int32_t> all(batch.tokens.begin(), batch.tokens.end());
    for (size_t row = 0; row < all.size(); ++row) {
      if (batch.has_embedding(row)) all[row] = static_cast<int32_t>(*batch.embeddings[row]);
    }
    for (const BatchRun& run : batch.runs) {
      const auto tokens = std::span(all).subspan(done, run.num_tokens);
      done += run.num_tokens;
      CRIA_RETURN_IF_ERROR(RunOne(run, tokens));
    }
    EXPECT_EQ(done, batch.tokens.size());
    sequences_run.push_back(batch.runs.size());
    return {};
  }

  Status RunOne(const BatchRun& run, std::span<const int32_t> tokens) {
    EXPECT_FALSE(tokens.empty());
    EXPECT_LE(run.num_logits, tokens.size());
    EXPECT_LE(run.first_position, sequences_->num_tokens(run.sequence))
        << "tokens before are missing";
    EXPECT_LE(run.first_position + tokens.size(), context_tokens_);
    for (const int32_t token : tokens) {
      if (token < 0 || static_cast<size_t>(token) >= vocab_size_) {
        return Fail(ErrorCode::kOutOfRange, "token id " + std::to_string(token));
      }
    }
    if (calls.size() == fail_at_call || std::ranges::contains(tokens, failing_token))
      return Fail(ErrorCode::kInternal, "the script says so");
    calls.push_back({run.first_position, {tokens.begin(), tokens.end()}});
    rows_wanted.push_back(run.num_logits);
    EXPECT_TRUE(sequences_->Truncate(run.sequence, run.first_position));
    CopyStates();
    CopyRows(pages().moves());
    CRIA_RETURN_IF_ERROR(sequences_->Extend(run.sequence, run.first_position + tokens.size()));
    for (const PageMove& move : pages().moves()) EXPECT_EQ(move.distance, 0u);
    CopyRows(pages().moves());
    for (size_t group = 0; group < rows_.size(); ++group) {
      for (size_t i = 0; i < tokens.size(); ++i) {
        const size_t position = run.first_position + i;
        const uint32_t page = pages().Table(run.sequence, group).pages[position / kKvPageTokens];
        EXPECT_EQ(pages().group(group).num_holders(page), 1u) << "a shared page is written";
        rows_[group][RowOf(group, run.sequence, position)] = {tokens[i], position};
      }
    }
    cache_ = Cache(run.sequence);
    if (RecurrentStates* const states = sequences_->states(); states != nullptr) {
      const StateRun state_run = states->Run(run.sequence);
      EXPECT_EQ(state_run.first_position(), run.first_position);
      std::vector<int32_t>& state = states_[state_run.place];
      state.resize(run.first_position);
      state.insert(state.end(), tokens.begin(), tokens.end());
      const auto is_same = [](int32_t a, int32_t b) { return a == b || b < 0; };
      EXPECT_TRUE(std::ranges::equal(state, cache_, is_same)) << "the state is of other tokens";
      states->Advance(run.sequence);
    }
    for (size_t i = run.num_logits; i > 0; --i) {
      contexts_.emplace_back(cache_.begin(), cache_.end() - static_cast<ptrdiff_t>(i - 1));
    }
    return {};
  }

  const KvPages& pages() const { return sequences_->pages(); }

  void CopyStates() {
    if (sequences_->states() == nullptr) return;
    for (const StateCopy& copy : sequences_->states()->copies()) {
      states_[copy.target] = states_[copy.source];
    }
  }

  void CopyRows(std::span<const PageMove> moves) {
    for (const PageMove& move : moves) {
      std::vector<Row>& rows = rows_[move.group];
      for (uint32_t i = 0; i < move.num_rows; ++i) {
        rows[move.target_page * kKvPageTokens + move.target_row() + i] =
            rows[move.source_page * kKvPageTokens + move.source_row() + i];
      }
    }
  }

  size_t RowOf(size_t group, SequenceId sequence, size_t position) const {
    return pages().Table(sequence, group).Row(position);
  }

  // The sequence's tokens, whose keys must be rotated to their positions; -1 where no layer has
  // them. Layers with a window must have the last of them.
  std::vector<int32_t> Cache(SequenceId sequence) const {
    std::vector<int32_t> tokens;
    const size_t first_row = pages().group(0).first_row(sequence);
    for (size_t i = 0; i < pages().num_tokens(sequence); ++i) {
      if (i < first_row) {
        tokens.push_back(-1);
        continue;
      }
      const Row& row = rows_[0][RowOf(0, sequence, i)];
      if (row.token >= 0) {
        EXPECT_EQ(row.position, i);
      }
      tokens.push_back(row.token);
    }
    for (size_t group = 1; group < rows_.size(); ++group) {
      for (size_t i = pages().group(group).first_row(sequence); i < tokens.size(); ++i) {
        const Row& row = rows_[group][RowOf(group, sequence, i)];
        EXPECT_EQ(row.token, tokens[i]);
        EXPECT_EQ(row.position, rows_[0][RowOf(0, sequence, i)].position);
      }
    }
    return tokens;
  }

  void RecordDrop(std::span<const PageMove> moves) {
    const auto first = std::ranges::find_if(moves, [](auto& move) { return move.distance != 0; });
    ASSERT_NE(first, moves.end());
    drops.push_back({first->position, first->distance, pages().num_tokens(0) + first->distance});
  }

  size_t vocab_size_;
  size_t context_tokens_;
  size_t chunk_tokens_;
  size_t num_sequences_;
  Script script_;
  TestSequences sequences_;
  std::vector<std::vector<int32_t>> states_;  // By place: the tokens that a state is of.
  std::vector<std::vector<Row>> rows_;        // By group, page and row.
  std::vector<int32_t> cache_;
  std::vector<std::vector<int32_t>> contexts_;  // Before each row of logits.
  std::vector<float> logits_;
  float hidden_state_ = 0.0f;
  bool is_running_ = false;
};

}  // namespace cria
