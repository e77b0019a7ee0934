#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <utility>
#include <vector>

#include "decode/scripted_model.h"
#include "llm/generator.h"
#include "llm/session.h"
#include "llm/turn.h"

namespace cria {

using Tokens = std::vector<int32_t>;

inline constexpr size_t kVocabSize = 100;

// The script of the model: the token depends on every token of the context and on its position.
inline int32_t NextOf(std::span<const int32_t> context) {
  uint32_t hash = 7;
  for (const int32_t token : context) hash = hash * 31 + static_cast<uint32_t>(token) + 1;
  return static_cast<int32_t>(hash % kVocabSize);
}

inline Tokens Counting(size_t count, int32_t first = 1) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// The tokens that the model generates without interruption.
inline Tokens Expected(Tokens context, size_t count) {
  Tokens generated;
  for (size_t i = 0; i < count; ++i) {
    generated.push_back(NextOf(context));
    context.push_back(generated.back());
  }
  return generated;
}

class SessionTest : public testing::Test {
 protected:
  explicit SessionTest(size_t context_tokens = 32, size_t chunk_tokens = 4,
                       const ScriptedLayers& layers = {})
      : model_(kVocabSize, context_tokens, chunk_tokens, NextOf, 1, layers),
        scheduler_(model_),
        session_(scheduler_) {}

  static Sampler Greedy() {
    auto sampler = Sampler::Create({.temperature = 0.0f}, kVocabSize);
    EXPECT_TRUE(sampler);
    return std::move(*sampler);
  }

  Status Prefill(const Tokens& tokens, const std::atomic<bool>& cancel) {
    Turn turn(session_, {.cancel = &cancel});
    return turn.Prefill(tokens);
  }

  Tokens Generate(const GenerationOptions& options, StopReason expected) {
    Sampler sampler = Greedy();
    Tokens generated;
    const auto reason = cria::Generate(session_, options, sampler, CollectInto(generated));
    EXPECT_TRUE(reason) << reason.error().message();
    if (reason) {
      EXPECT_EQ(*reason, expected);
    }
    return generated;
  }

  static TokenCallback CollectInto(Tokens& generated) {
    return [&generated](const GeneratedToken& token) {
      generated.push_back(token.id);
      return true;
    };
  }

  // For a generation that must not come so far.
  static bool FailAtToken(const GeneratedToken& token) {
    ADD_FAILURE() << token.id;
    return true;
  }

  Tokens context() const { return {session_.tokens().begin(), session_.tokens().end()}; }

  ScriptedModel model_;
  Scheduler scheduler_;
  Session session_;
};

}  // namespace cria
