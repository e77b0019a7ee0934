#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "llm/engine.h"
#include "support/converted_model.h"
#include "support/family_checkpoint.h"
#include "support/unwrap.h"

namespace cria {

// An engine with a session.
class TinyEngine {
 public:
  explicit TinyEngine(std::unique_ptr<Engine> engine)
      : engine_(std::move(engine)), session_(engine_->NewSession()) {}

  operator Engine&() { return *engine_; }
  Engine& engine() { return *engine_; }
  Decoder& decoder() { return engine_->decoder(); }
  const ModelFile& file() const { return engine_->file(); }
  Session& session() { return *session_; }
  // The session's, which is the only one.
  static constexpr SequenceId kSequence = 0;
  size_t num_cached_tokens() { return decoder().sequences().pages().num_tokens(kSequence); }

 private:
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;
};

// The model file of a tiny checkpoint that was trained for `max_position_embeddings` tokens, if
// that is not 0.
class TinyModelFile : public support::ConvertedModel {
 public:
  explicit TinyModelFile(const support::CheckpointSpec& spec, uint32_t max_position_embeddings = 0,
                         const ConvertOptions& conversion = {})
      : ConvertedModel(WithLength(spec, max_position_embeddings), conversion) {}

  explicit TinyModelFile(const support::FamilyCheckpoint& family,
                         const ConvertOptions& conversion = {})
      : ConvertedModel(family, conversion) {}

  // An engine on one thread, so that the process can fork.
  std::unique_ptr<TinyEngine> Load(KvType kv_type, size_t context_tokens) const {
    return std::make_unique<TinyEngine>(Unwrap(Engine::Load(
        path(), {.num_threads = 1, .context_tokens = context_tokens, .kv_type = kv_type})));
  }

 private:
  static support::CheckpointSpec WithLength(support::CheckpointSpec spec, uint32_t length) {
    if (length != 0) spec.config.max_position_embeddings = length;
    return spec;
  }
};

// A family's checkpoint, whose context of 128 tokens becomes longer.
inline support::FamilyCheckpoint LongFamily(const char* name, size_t context_tokens) {
  support::FamilyCheckpoint family = support::FamilyNamed(name);
  const std::string name_of_length = "\"max_position_embeddings\":";
  const std::string length = name_of_length + "128";
  family.config_json.replace(family.config_json.find(length), length.size(),
                             name_of_length + std::to_string(context_tokens));
  return family;
}

}  // namespace cria
