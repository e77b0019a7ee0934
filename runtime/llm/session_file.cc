#include "llm/session_file.h"

#include <algorithm>
#include <ctime>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "decode/kv_state.h"
#include "llm/kv_state_file.h"
#include "llm/session_metadata.h"
#include "llm/session_writer.h"

namespace cria {
namespace {

ConversationState ConversationOf(const SessionMetadata& metadata, const std::tm& begin_time) {
  ConversationState conversation = {
      .num_system_messages = metadata.head.num_system_messages,
      .has_forgotten = metadata.head.has_forgotten != 0,
      .begin_time = begin_time,
  };
  std::string_view texts = metadata.texts;
  const auto take = [&texts](size_t bytes) {
    std::string text(texts.substr(0, bytes));
    texts.remove_prefix(bytes);
    return text;
  };
  conversation.variables = take(metadata.head.variables_bytes);
  conversation.messages.reserve(metadata.messages.size());
  std::string_view fields = metadata.fields;
  for (const MessageBytes& bytes : metadata.messages) {
    std::string role = take(bytes.role);
    std::string content = take(bytes.content);
    const size_t end = std::min(fields.find('\0'), fields.size());
    conversation.messages.push_back(
        {std::move(role), std::move(content), std::string(fields.substr(0, end))});
    fields.remove_prefix(std::min(end + 1, fields.size()));
  }
  return conversation;
}

// Reads the keys and values from `offset` on, on all threads: copying them from the system's memory
// takes most of the time. If other ranks have some of them, reads one block after another.
Status ReadKvState(const platform::File& file, uint64_t offset, const KvState& state,
                   std::span<const uint64_t> checksums, Engine& engine) {
  std::mutex mutex;
  Status result;
  const size_t num_layers = engine.decoder().cache().num_layers();
  const auto task = [&](size_t index) {
    if (index < num_layers) return state.MakeResident(index);
    const size_t block = index - num_layers;
    Status read =
        ReadKvBlock(file, offset + state.BlockOffset(block), state, block, checksums[block]);
    if (read) return;
    const std::lock_guard lock(mutex);
    result = std::move(read);
  };
  const size_t num_tasks = num_layers + checksums.size();
  if (state.has_ranks()) {
    for (size_t i = num_layers; i < num_tasks && result; ++i) task(i);
  } else {
    engine.batch_pool().ParallelFor(num_tasks, task);
  }
  return result;
}

}  // namespace

Status SaveSession(const std::string& path, SessionContent content,
                   const ConversationState& conversation, Turn& turn, size_t num_tokens,
                   Engine& engine) {
  const auto tokens = turn.session().tokens().first(num_tokens);
  size_t num_cached = 0;
  SequenceId sequence = 0;
  if (num_tokens > 0) {
    CRIA_ASSIGN_OR_RETURN(const size_t held, turn.HoldCache());
    sequence = turn.sequence();
    num_cached = engine.decoder().sequences().OwnPrefix(sequence, std::min(held, num_tokens));
  }
  CRIA_ASSIGN_OR_RETURN(OutputFile file, WriteSession(path,
                                                      {.content = content,
                                                       .conversation = conversation,
                                                       .tokens = tokens,
                                                       .sequence = sequence,
                                                       .num_cached = num_cached},
                                                      engine));
  return file.Commit();
}

Result<LoadedSession> LoadSession(const std::string& path, SessionContent content, Engine& engine,
                                  Turn& turn) {
  CRIA_ASSIGN_OR_RETURN(const platform::File file, platform::File::Open(path));
  CRIA_ASSIGN_OR_RETURN(const FileHead file_head, ReadSessionHead(file));
  CRIA_ASSIGN_OR_RETURN(const SessionMetadata metadata,
                        ReadSessionMetadata(file, file_head, content, engine));
  // Only of years that a tm can have.
  const auto begin_seconds = static_cast<std::time_t>(metadata.head.begin_time);
  std::tm begin_time = {};
  if (gmtime_r(&begin_seconds, &begin_time) == nullptr) {
    return FailInvalidSession(file, "its time is in no year");
  }
  LoadedSession loaded = {.conversation = ConversationOf(metadata, begin_time),
                          .tokens = {metadata.tokens.begin(), metadata.tokens.end()},
                          .why_read_again = WhyReadAgain(metadata.head, engine)};
  if (!CheckTemplateVariables(loaded.conversation.variables)) {
    return FailInvalidSession(file, "its variables are no object of JSON for a chat template");
  }
  for (const ChatMessage& message : loaded.conversation.messages) {
    if (!CheckMessageFields(message.fields)) {
      return FailInvalidSession(file, "the fields of a message are no object of JSON");
    }
  }
  if (!loaded.why_read_again.empty()) return loaded;

  const size_t num_cached = metadata.head.num_cached_tokens;
  KvState state(engine.decoder(), /*sequence=*/0, num_cached);
  const uint64_t state_offset = sizeof(FilePreamble) + file_head.preamble.metadata_bytes;
  if (state.num_blocks() != metadata.block_checksums.size() ||
      state.bytes() != file.size_bytes() - state_offset) {
    return FailInvalidSession(file, "its KV cache has another size than its metadata say");
  }
  CRIA_RETURN_IF_ERROR(turn.Restore(metadata.tokens, num_cached, [&] {
    state.set_sequence(turn.sequence());
    engine.decoder().sequences().set_shift(turn.sequence(), metadata.shift);
    return ReadKvState(file, state_offset, state, metadata.block_checksums, engine);
  }));
  return loaded;
}

Status SaveSession(const std::string& path, SessionContent content,
                   const ConversationState& conversation, Session& session, size_t num_tokens,
                   Engine& engine) {
  // No token is generated: the session needs no room beyond its context.
  Turn turn(session, {.max_tokens = 1});
  return SaveSession(path, content, conversation, turn, num_tokens, engine);
}

Result<LoadedSession> LoadSession(const std::string& path, SessionContent content, Engine& engine,
                                  Session& session) {
  Turn turn(session);
  return LoadSession(path, content, engine, turn);
}

Status SaveConversation(const std::string& path, const Conversation& conversation, Engine& engine) {
  return SaveSession(path, SessionContent::kConversation, conversation.State(),
                     conversation.session(), conversation.NumTokensInContext(), engine);
}

Result<std::string> LoadConversation(const std::string& path, Conversation& conversation,
                                     Engine& engine) {
  CRIA_ASSIGN_OR_RETURN(LoadedSession loaded, LoadSession(path, SessionContent::kConversation,
                                                          engine, conversation.session()));
  CRIA_RETURN_IF_ERROR(conversation.Restore(std::move(loaded.conversation)));
  return std::move(loaded.why_read_again);
}

}  // namespace cria
