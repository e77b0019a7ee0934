#include "llm/session_file.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/output_file.h"
#include "decode/kv_state.h"
#include "llm/session_file_layout.h"
#include "model/file_head.h"

namespace cria {
namespace {

constexpr FileKind kSessionFile = {.magic = kSessionMagic,
                                   .format_version = kSessionFormatVersion,
                                   .name = "a session file of Cria",
                                   .how_made = RemedyKind::kNone,
                                   .if_damaged = RemedyKind::kNone};

std::unexpected<Error> FailInvalid(const platform::File& file, std::string_view what) {
  return Fail(ErrorCode::kInvalidFile,
              Format("{}: {}; remove it to start a new session", file.path(), what));
}

// The metadata, whose arrays and texts are in the mapped file.
struct SessionMetadata {
  SessionHead head;
  std::span<const uint64_t> block_checksums;
  std::span<const int32_t> tokens;
  std::span<const MessageBytes> messages;
  std::string_view texts;
  std::string_view fields;  // All messages' fields, each ended by a zero byte; empty: none has any.
};

// Takes arrays from the beginning of bytes. If they have too few, the array is empty and is_short()
// from then on.
class Taker {
 public:
  explicit Taker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // Arrays are taken in the order of their alignment, so that each is aligned.
  template <typename T>
  std::span<const T> Take(uint64_t count) {
    const auto* const begin = reinterpret_cast<const T*>(TakeBytes(count * sizeof(T)));
    return {begin, is_short_ ? 0 : static_cast<size_t>(count)};
  }
  std::string_view TakeText(uint64_t bytes) {
    const auto text = Take<char>(bytes);
    return {text.data(), text.size()};
  }
  bool is_short() const { return is_short_; }
  size_t bytes_left() const { return bytes_.size(); }

 private:
  const std::byte* TakeBytes(uint64_t bytes) {
    is_short_ = is_short_ || bytes > bytes_.size();
    if (is_short_) return nullptr;
    const std::byte* const begin = bytes_.data();
    bytes_ = bytes_.subspan(bytes);
    return begin;
  }

  std::span<const std::byte> bytes_;
  bool is_short_ = false;
};

// Checks the model and all sizes. A right checksum proves nothing: a file may be made to do harm.
Result<SessionMetadata> ReadMetadata(const platform::File& file, const FileHead& file_head,
                                     SessionContent content, const Engine& engine) {
  Taker taker(file_head.metadata.bytes());
  const auto heads = taker.Take<SessionHead>(1);
  if (heads.empty()) return FailInvalid(file, "its metadata is cut short");
  SessionMetadata metadata = {.head = heads.front()};
  const SessionHead& head = metadata.head;
  if (head.model_digest != engine.file().digest()) {
    return Fail(ErrorCode::kUnsupported, Format("{}: is a session with another model than {}",
                                                file.path(), engine.file().path()));
  }
  if (head.content != static_cast<uint32_t>(content)) {
    return FailInvalid(file, content == SessionContent::kText ? "is not the session of a text"
                                                              : "is not that of a conversation");
  }
  metadata.block_checksums = taker.Take<uint64_t>(head.num_blocks);
  metadata.tokens = taker.Take<int32_t>(head.num_tokens);
  metadata.messages = taker.Take<MessageBytes>(head.num_messages);
  uint64_t text_bytes = head.variables_bytes;
  bool are_roles_named = true;
  for (const MessageBytes& message : metadata.messages) {
    text_bytes += uint64_t{message.role} + message.content;
    are_roles_named = are_roles_named && message.role != 0;
  }
  metadata.texts = taker.TakeText(text_bytes);
  metadata.fields = taker.TakeText(taker.bytes_left());
  const bool are_fields_ended =
      metadata.fields.empty() ||
      (metadata.fields.back() == '\0' &&
       std::ranges::count(metadata.fields, '\0') == static_cast<ptrdiff_t>(head.num_messages));
  const uint32_t vocab_size = engine.file().config().vocab_size;
  const bool are_tokens_known = std::ranges::all_of(
      metadata.tokens, [=](int32_t token) { return static_cast<uint32_t>(token) < vocab_size; });
  const bool has_state =
      head.num_blocks != 0 ||
      file.size_bytes() != sizeof(FilePreamble) + file_head.preamble.metadata_bytes;
  const bool is_right =
      !taker.is_short() && are_fields_ended && file_head.preamble.packed_offset == 0 &&
      are_tokens_known && are_roles_named && head.num_cached_tokens <= head.num_tokens &&
      has_state == (head.num_cached_tokens != 0) && head.num_system_messages <= head.num_messages &&
      head.has_forgotten <= 1 &&
      (content == SessionContent::kConversation || text_bytes + metadata.fields.size() == 0);
  if (!is_right) return FailInvalid(file, "its metadata contradict themselves");
  return metadata;
}

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

std::string WhyReadAgain(const SessionHead& head, Engine& engine) {
  const Decoder& decoder = engine.decoder();
  if (head.num_cached_tokens == 0 && head.num_messages > head.num_system_messages) {
    return "it has only the messages";
  }
  if (head.kv_state_version != kKvStateVersion) {
    return "another version of Cria has written its KV cache";
  }
  if (head.kv_type != static_cast<uint32_t>(decoder.cache().layer(0).view.type)) {
    return head.kv_type > static_cast<uint32_t>(KvType::kInt8)
               ? "its KV cache has an unknown type"
               : Format("its KV cache has the type {}",
                        KvTypeName(static_cast<KvType>(head.kv_type)));
  }
  if (head.num_tokens > decoder.context_tokens()) {
    return Format("its {} tokens do not fit the context of {}", head.num_tokens,
                  decoder.context_tokens());
  }
  if (head.attention_fingerprint != AttentionFingerprint(engine.file().config(), decoder)) {
    return "its rotary frequencies, windows or offsets of keys are those of other options";
  }
  return "";
}

Status ReadBlock(const platform::File& file, uint64_t offset, const KvState& state, size_t block,
                 uint64_t expected_checksum) {
  offset += state.BlockOffset(block);
  const auto held = state.HoldBlock();
  Checksum64 checksum;
  bool are_finite = true;
  for (size_t head = 0; head < state.NumHeads(block); ++head) {
    const auto rows = state.Rows(block, head);
    for (const std::span<std::byte> part : rows) {
      CRIA_RETURN_IF_ERROR(file.ReadAt(offset, part));
      checksum.Update(part);
      offset += part.size();
    }
    are_finite = are_finite && state.AreFinite(block, rows);
  }
  if (checksum.Finish() != expected_checksum) {
    return FailInvalid(file, "its KV cache is damaged (a checksum does not match)");
  }
  if (!are_finite) return FailInvalid(file, "its KV cache has a value that is not a number");
  return state.Exchange(block, KvDirection::kFromRank0);
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
    Status read = ReadBlock(file, offset, state, block, checksums[block]);
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

// What SaveSession writes before the KvState, except for the checksums.
Result<std::vector<std::byte>> Metadata(const SessionHead& head,
                                        const ConversationState& conversation,
                                        std::span<const int32_t> tokens) {
  std::vector<std::byte> bytes;
  const auto add = [&bytes](const void* data, size_t size) {
    const auto* const begin = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  };
  add(&head, sizeof head);
  bytes.resize(bytes.size() + head.num_blocks * sizeof(uint64_t));
  add(tokens.data(), tokens.size_bytes());
  uint64_t text_bytes = conversation.variables.size();
  const bool have_fields = std::ranges::any_of(
      conversation.messages, [](const ChatMessage& message) { return !message.fields.empty(); });
  for (const ChatMessage& message : conversation.messages) {
    text_bytes += message.role.size() + message.content.size();
    if (have_fields) text_bytes += message.fields.size() + 1;
    const MessageBytes sizes = {static_cast<uint32_t>(message.role.size()),
                                static_cast<uint32_t>(message.content.size())};
    add(&sizes, sizeof sizes);
  }
  if (text_bytes > kMaxMetadataBytes || bytes.size() > kMaxMetadataBytes - text_bytes) {
    return Fail(ErrorCode::kOutOfRange,
                Format("messages of {} bytes are too long for a session file", text_bytes));
  }
  add(conversation.variables.data(), conversation.variables.size());
  for (const ChatMessage& message : conversation.messages) {
    add(message.role.data(), message.role.size());
    add(message.content.data(), message.content.size());
  }
  if (!have_fields) return bytes;
  for (const ChatMessage& message : conversation.messages) {
    // JSON has no zero byte.
    add(message.fields.c_str(), message.fields.size() + 1);
  }
  return bytes;
}

// Writes the blocks from `offset` on, and their checksums to `checksums`, which need no alignment.
Status WriteKvState(OutputFile& file, uint64_t offset, const KvState& state,
                    std::span<std::byte> checksums) {
  for (size_t block = 0; block < state.num_blocks(); ++block) {
    const auto held = state.HoldBlock();
    CRIA_RETURN_IF_ERROR(state.Exchange(block, KvDirection::kToRank0));
    Checksum64 checksum;
    for (size_t head = 0; head < state.NumHeads(block); ++head) {
      for (const std::span<const std::byte> part : state.Rows(block, head)) {
        checksum.Update(part);
        CRIA_RETURN_IF_ERROR(file.WriteAt(offset, part));
        offset += part.size();
      }
    }
    const uint64_t finished = checksum.Finish();
    std::memcpy(&checksums[block * sizeof finished], &finished, sizeof finished);
  }
  return {};
}

}  // namespace

Status SaveSession(const std::string& path, SessionContent content,
                   const ConversationState& conversation, Turn& turn, size_t num_tokens,
                   Engine& engine) {
  const Decoder& decoder = engine.decoder();
  const auto tokens = turn.session().tokens().first(num_tokens);
  size_t num_cached = 0;
  SequenceId sequence = 0;
  if (num_tokens > 0) {
    CRIA_ASSIGN_OR_RETURN(const size_t held, turn.HoldCache());
    sequence = turn.sequence();
    num_cached = engine.decoder().sequences().OwnPrefix(sequence, std::min(held, num_tokens));
  }
  const KvState state(engine.decoder(), sequence, num_cached);
  std::tm begin_time = conversation.begin_time;
  begin_time.tm_isdst = 0;
  const SessionHead head = {
      .model_digest = engine.file().digest(),
      .attention_fingerprint = AttentionFingerprint(engine.file().config(), decoder),
      .begin_time = timegm(&begin_time),
      .kv_state_version = kKvStateVersion,
      .kv_type = static_cast<uint32_t>(decoder.cache().layer(0).view.type),
      .content = static_cast<uint32_t>(content),
      .num_tokens = static_cast<uint32_t>(tokens.size()),
      .num_cached_tokens = static_cast<uint32_t>(num_cached),
      .num_blocks = static_cast<uint32_t>(state.num_blocks()),
      .num_messages = static_cast<uint32_t>(conversation.messages.size()),
      .num_system_messages = static_cast<uint32_t>(conversation.num_system_messages),
      .has_forgotten = conversation.has_forgotten ? 1u : 0u,
      .variables_bytes = static_cast<uint32_t>(conversation.variables.size())};
  CRIA_ASSIGN_OR_RETURN(std::vector<std::byte> metadata, Metadata(head, conversation, tokens));
  const uint64_t state_offset = sizeof(FilePreamble) + metadata.size();
  FilePreamble preamble = {.magic = kSessionMagic,
                           .format_version = kSessionFormatVersion,
                           .metadata_bytes = metadata.size(),
                           .file_bytes = state_offset + state.bytes()};
  CRIA_ASSIGN_OR_RETURN(
      OutputFile file,
      OutputFile::Create(path, preamble.file_bytes, LinkPolicy::kReplaceTarget, Readers::kNone));
  CRIA_RETURN_IF_ERROR(
      WriteKvState(file, state_offset, state, std::span(metadata).subspan(sizeof head)));
  preamble.metadata_digest = Digest128(metadata);
  preamble.preamble_checksum = PreambleChecksum(preamble);
  CRIA_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(&preamble, 1))));
  CRIA_RETURN_IF_ERROR(file.WriteAt(sizeof preamble, metadata));
  return file.Commit();
}

Result<LoadedSession> LoadSession(const std::string& path, SessionContent content, Engine& engine,
                                  Turn& turn) {
  CRIA_ASSIGN_OR_RETURN(const platform::File file, platform::File::Open(path));
  CRIA_ASSIGN_OR_RETURN(const FileHead file_head, ReadFileHead(file, 0, kSessionFile));
  CRIA_ASSIGN_OR_RETURN(const SessionMetadata metadata,
                        ReadMetadata(file, file_head, content, engine));
  // Only of years that a tm can have.
  const auto begin_seconds = static_cast<std::time_t>(metadata.head.begin_time);
  std::tm begin_time = {};
  if (gmtime_r(&begin_seconds, &begin_time) == nullptr) {
    return FailInvalid(file, "its time is in no year");
  }
  LoadedSession loaded = {.conversation = ConversationOf(metadata, begin_time),
                          .tokens = {metadata.tokens.begin(), metadata.tokens.end()},
                          .why_read_again = WhyReadAgain(metadata.head, engine)};
  if (!CheckTemplateVariables(loaded.conversation.variables)) {
    return FailInvalid(file, "its variables are no object of JSON for a chat template");
  }
  for (const ChatMessage& message : loaded.conversation.messages) {
    if (!CheckMessageFields(message.fields)) {
      return FailInvalid(file, "the fields of a message are no object of JSON");
    }
  }
  if (!loaded.why_read_again.empty()) return loaded;

  const size_t num_cached = metadata.head.num_cached_tokens;
  KvState state(engine.decoder(), /*sequence=*/0, num_cached);
  const uint64_t state_offset = sizeof(FilePreamble) + file_head.preamble.metadata_bytes;
  if (state.num_blocks() != metadata.block_checksums.size() ||
      state.bytes() != file.size_bytes() - state_offset) {
    return FailInvalid(file, "its KV cache has another size than its metadata say");
  }
  CRIA_RETURN_IF_ERROR(turn.Restore(metadata.tokens, num_cached, [&] {
    state.set_sequence(turn.sequence());
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
