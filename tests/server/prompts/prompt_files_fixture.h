#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "llm/generator.h"
#include "llm/tiny_engine.h"
#include "llm/turn.h"
#include "server/prompts/prompt_files.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria::server {

using Tokens = std::vector<int32_t>;

inline Tokens SomeTokens(size_t count, int32_t seed) {
  Tokens tokens(count);
  for (size_t i = 0; i < count; ++i) {
    const auto n = static_cast<int32_t>(i);
    tokens[i] = (n * n * 7 + n * 13 + seed * 29) % 250;
  }
  return tokens;
}

struct ServedOptions {
  uint64_t max_bytes = 100'000'000;
  KvType kv_type = KvType::kF32;
  size_t context_tokens = 1024;
  size_t num_sequences = 1;
};

// An engine with a store of prompts, from the start of a server to its end.
class Served {
 public:
  Served(const TinyModelFile& model, const std::string& folder, const ServedOptions& options)
      : engine_(Unwrap(Engine::Load(model.path(), {.num_threads = 1,
                                                   .context_tokens = options.context_tokens,
                                                   .num_sequences = options.num_sequences,
                                                   .kv_type = options.kv_type}))),
        session_(engine_->NewSession()),
        files_(Unwrap(PromptFiles::Open(
            {.folder = folder,
             .max_bytes = options.max_bytes,
             .on_notice =
                 [this](std::string_view sentence) { notices += std::string(sentence) + "\n"; }},
            *engine_))),
        stored_(engine_->scheduler().UseStore(*files_)) {}
  ~Served() { session_.reset(); }

  // The answer, and how many tokens of the prompt were computed.
  struct Answered {
    Tokens tokens;
    size_t computed = 0;
  };
  Answered Answer(const Tokens& prompt, size_t count = 4) {
    Turn turn(*session_, {.max_tokens = count});
    const size_t before = session_->stats().prompt_tokens;
    Unwrap(turn.Prefill(prompt));
    Answered answered = {.computed = session_->stats().prompt_tokens - before};
    Sampler sampler = Unwrap(Sampler::Create({.temperature = 0.0f}, session_->vocab_size()));
    Unwrap(Generate(turn, {.max_tokens = count}, sampler, [&](const GeneratedToken& token) {
      answered.tokens.push_back(token.id);
      return true;
    }));
    return answered;
  }
  void WriteAll() {
    stored_.WriteAll(std::chrono::steady_clock::time_point::max());
    files_->Flush();
  }

  Engine& engine() { return *engine_; }
  PromptFiles& files() { return *files_; }

  std::string notices;

 private:
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<PromptFiles> files_;
  StoredPrompts& stored_;
};

class PromptFilesTest : public testing::Test {
 protected:
  static const TinyModelFile& Model() {
    static const TinyModelFile model(support::SpecGqa(), 1024);
    return model;
  }

  std::unique_ptr<Served> Start(const ServedOptions& options = {}) const {
    return std::make_unique<Served>(Model(), path_, options);
  }
  // The path of the only file.
  std::string FilePath() const {
    const std::vector<std::string> names = support::FileNames(path_);
    EXPECT_EQ(names.size(), 1u);
    return names.empty() ? "" : path_ + "/" + names.front();
  }

  support::TemporaryDirectory folder_;
  const std::string path_ = folder_ / "prompts";
  const Tokens prompt_ = SomeTokens(500, 1);
};

}  // namespace cria::server
