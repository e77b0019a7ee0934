#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "llm/scheduler.h"
#include "llm/session_fixture.h"

namespace cria {

// Sessions of a scripted model.
class SchedulerTest : public testing::Test {
 protected:
  static constexpr size_t kContext = 512;

  void Load(size_t num_sequences, size_t context_tokens = kContext, size_t chunk_tokens = 16,
            Scheduler::NowFunction now = Scheduler::Clock::now, const ScriptedLayers& layers = {}) {
    model_ = std::make_unique<ScriptedModel>(kVocabSize, context_tokens, chunk_tokens, NextOf,
                                             num_sequences, layers);
    scheduler_ = std::make_unique<Scheduler>(*model_, now);
  }

  struct Outcome {
    Tokens generated;
    size_t reused = 0;
    std::string error;
  };

  // Reads a prompt and generates, as one request.
  static Outcome Answer(Session& session, const Tokens& prompt, size_t max_tokens,
                        const std::function<void()>& on_token = nullptr,
                        const std::atomic<bool>* cancel = nullptr) {
    Outcome outcome;
    Turn turn(session, {.max_tokens = max_tokens, .cancel = cancel});
    if (const Status read = turn.Prefill(prompt); !read) {
      outcome.error = read.error().message();
      return outcome;
    }
    outcome.reused = session.stats().reused_tokens;
    Sampler sampler = *Sampler::Create({.temperature = 0.0f}, kVocabSize);
    const auto reason = Generate(turn, {.max_tokens = max_tokens, .cancel = cancel}, sampler,
                                 [&](const GeneratedToken& token) {
                                   outcome.generated.push_back(token.id);
                                   if (on_token) on_token();
                                   return true;
                                 });
    if (!reason) outcome.error = reason.error().message();
    return outcome;
  }

  Tokens Prompt(size_t count, int32_t seed) const {
    Tokens tokens(count);
    std::mt19937 random(static_cast<uint32_t>(seed));
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % kVocabSize);
    return tokens;
  }

  size_t NumUsedPages() const {
    size_t used = 0;
    for (uint32_t page = 0; page < model_->sequences().pages().num_pages(); ++page) {
      used += model_->sequences().pages().num_holders(page) != 0 ? 1 : 0;
    }
    return used;
  }

  std::unique_ptr<ScriptedModel> model_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace cria
