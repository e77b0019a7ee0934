#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/output_file.h"
#include "cria/error.h"
#include "llm/engine.h"
#include "llm/session_file.h"

namespace cria {

// What a session file is made of.
struct SessionImage {
  SessionContent content = SessionContent::kText;
  const ConversationState& conversation;
  std::span<const int32_t> tokens;
  // Has the keys and values of the first `num_cached` tokens, and must not change meanwhile.
  SequenceId sequence = 0;
  size_t num_cached = 0;
};

// Writes a session file, which Commit makes durable and gives its name. Only its owner may read it.
Result<OutputFile> WriteSession(const std::string& path, const SessionImage& session,
                                Engine& engine, LinkPolicy links = LinkPolicy::kReplaceTarget);

}  // namespace cria
