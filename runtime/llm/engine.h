#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "core/thread_pool.h"
#include "llm/decoder.h"
#include "llm/session.h"
#include "model/model_file.h"
#include "text/tokenizer.h"

namespace cria {

struct EngineOptions {
  size_t num_threads = 0;     // 0: one for each fast core.
  size_t context_tokens = 0;  // 0: kDefaultContextTokens, or the model's own length if shorter.
  size_t chunk_tokens = DecoderOptions{}.chunk_tokens;
  KvType kv_type = DecoderOptions{}.kv_type;
};

// A loaded model with everything that it takes to talk to it. Stays where it is: its parts point at
// one another.
class Engine {
 public:
  static constexpr size_t kDefaultContextTokens = DecoderOptions{}.context_tokens;

  static Result<std::unique_ptr<Engine>> Load(const std::string& path,
                                              const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const ModelFile& file() const { return file_; }
  const ThreadPool& pool() const { return pool_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  Decoder& decoder() { return *decoder_; }
  Session& session() { return *session_; }

 private:
  Engine(ModelFile file, ThreadPool pool);

  ModelFile file_;
  ThreadPool pool_;
  std::optional<Tokenizer> tokenizer_;  // Points into file_.
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<Session> session_;
};

}  // namespace cria
