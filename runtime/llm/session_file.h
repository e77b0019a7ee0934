#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cria/error.h"
#include "llm/conversation.h"
#include "llm/engine.h"
#include "llm/turn.h"

namespace cria {

// What a session file is of, besides the context.
enum class SessionContent : uint8_t {
  kText,          // A text and its continuation: there are no messages.
  kConversation,  // Messages.
};

// Writes a session file: the conversation's state, the first `num_tokens` of the turn's context,
// and what the KV cache has of them. The file appears under its name only when it is complete,
// replaces an older one, and only its owner may read it. The conversation of a text must be empty.
Status SaveSession(const std::string& path, SessionContent content,
                   const ConversationState& conversation, Turn& turn, size_t num_tokens,
                   Engine& engine);
// Saves a session in a turn of its own.
Status SaveSession(const std::string& path, SessionContent content,
                   const ConversationState& conversation, Session& session, size_t num_tokens,
                   Engine& engine);

struct LoadedSession {
  ConversationState conversation;
  std::vector<int32_t> tokens;  // The context's tokens.
  // Why the context must be read again, as the end of a sentence: "its KV cache has the type f16".
  // Empty: the session has the context.
  std::string why_read_again;
};

// Reads a session file into the turn's session, whose context it replaces. Fails with
// - kInvalidFile if the file is damaged or of other content,
// - kUnsupported if it is of another model or another version of the format.
// If it fails before it reads the keys and values, the session has not changed; otherwise its
// context is empty.
Result<LoadedSession> LoadSession(const std::string& path, SessionContent content, Engine& engine,
                                  Turn& turn);
// Loads a session in a turn of its own.
Result<LoadedSession> LoadSession(const std::string& path, SessionContent content, Engine& engine,
                                  Session& session);

// Saves a conversation and its session. Only what the context has of the current messages is
// saved: tokens of a turn that was dropped, or of another conversation, are not.
Status SaveConversation(const std::string& path, const Conversation& conversation, Engine& engine);
// Returns LoadedSession::why_read_again. If it fails, the messages have not changed.
Result<std::string> LoadConversation(const std::string& path, Conversation& conversation,
                                     Engine& engine);

}  // namespace cria
