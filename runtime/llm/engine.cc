#include "llm/engine.h"

#include <algorithm>
#include <utility>

#include "core/cpu_threads.h"

namespace cria {

Result<std::unique_ptr<Engine>> Engine::Load(const std::string& path,
                                             const EngineOptions& options) {
  CRIA_ASSIGN_OR_RETURN(ModelFile file, ModelFile::Open(path));
  const size_t num_threads = options.num_threads != 0
                                 ? options.num_threads
                                 : DefaultThreadCount(platform::ReadCpuTopology());
  CRIA_ASSIGN_OR_RETURN(ThreadPool pool, ThreadPool::Create(num_threads));
  std::unique_ptr<Engine> engine(new Engine(std::move(file), std::move(pool)));
  CRIA_ASSIGN_OR_RETURN(engine->tokenizer_, Tokenizer::Create(engine->file_.vocabulary()));

  const size_t longest = engine->file_.config().max_position_embeddings;
  CRIA_ASSIGN_OR_RETURN(
      engine->decoder_,
      Decoder::Create(
          engine->file_,
          {.context_tokens = options.context_tokens != 0 ? options.context_tokens
                                                         : std::min(kDefaultContextTokens, longest),
           .chunk_tokens = options.chunk_tokens,
           .kv_type = options.kv_type},
          engine->pool_));
  engine->session_ = std::make_unique<Session>(*engine->decoder_);
  return engine;
}

Engine::Engine(ModelFile file, ThreadPool pool) : file_(std::move(file)), pool_(std::move(pool)) {}

}  // namespace cria
