#include "llm/session_metadata.h"

#include <algorithm>

#include "core/format.h"
#include "decode/kv_state.h"

namespace cria {
namespace {

constexpr FileKind kSessionFile = {.magic = kSessionMagic,
                                   .format_version = kSessionFormatVersion,
                                   .name = "a session file of Cria",
                                   .how_made = RemedyKind::kNone,
                                   .if_damaged = RemedyKind::kNone};

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

bool HasRightShift(const SessionMetadata& metadata, bool is_shifted) {
  const SequenceShift& shift = metadata.shift;
  return !is_shifted || (shift.distance != 0 && shift.distance <= SequenceShift::kMaxDistance &&
                         shift.first < metadata.head.num_cached_tokens);
}

}  // namespace

Result<FileHead> ReadSessionHead(const platform::File& file) {
  return ReadFileHead(file, 0, kSessionFile);
}

Result<SessionMetadata> ReadSessionMetadata(const platform::File& file, const FileHead& file_head,
                                            SessionContent content, const Engine& engine) {
  Taker taker(file_head.metadata.bytes());
  const auto heads = taker.Take<SessionHead>(1);
  if (heads.empty()) return FailInvalidSession(file, "its metadata is cut short");
  SessionMetadata metadata = {.head = heads.front()};
  const SessionHead& head = metadata.head;
  if (head.model_digest != engine.file().digest()) {
    return Fail(ErrorCode::kUnsupported, Format("{}: is a session with another model than {}",
                                                file.path(), engine.file().path()));
  }
  if (head.content != static_cast<uint32_t>(content)) {
    return FailInvalidSession(file, content == SessionContent::kText
                                        ? "is not the session of a text"
                                        : "is not that of a conversation");
  }
  metadata.block_checksums = taker.Take<uint64_t>(head.num_blocks);
  metadata.tokens = taker.Take<int32_t>(head.num_tokens);
  metadata.messages = taker.Take<MessageBytes>(head.num_messages);
  const bool is_shifted = head.kv_state_version == kShiftedKvStateVersion;
  if (const auto shifts = taker.Take<SequenceShift>(is_shifted ? 1 : 0); !shifts.empty()) {
    metadata.shift = shifts.front();
  }
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
      head.has_forgotten <= 1 && HasRightShift(metadata, is_shifted) &&
      (content == SessionContent::kConversation || text_bytes + metadata.fields.size() == 0);
  if (!is_right) return FailInvalidSession(file, "its metadata contradict themselves");
  return metadata;
}

std::string WhyReadAgain(const SessionHead& head, const Engine& engine) {
  const Decoder& decoder = engine.decoder();
  if (head.num_cached_tokens == 0 && head.num_messages > head.num_system_messages) {
    return "it has only the messages";
  }
  if (head.kv_state_version != kKvStateVersion && head.kv_state_version != kShiftedKvStateVersion) {
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

uint32_t KvStateVersionOf(const SequenceShift& shift) {
  return shift.distance == 0 ? kKvStateVersion : kShiftedKvStateVersion;
}

Result<std::vector<std::byte>> SessionMetadataBytes(const SessionHead& head,
                                                    const SequenceShift& shift,
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
  if (shift.distance != 0) add(&shift, sizeof shift);
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

std::unexpected<Error> FailInvalidSession(const platform::File& file, std::string_view what) {
  return Fail(ErrorCode::kInvalidFile,
              Format("{}: {}; remove it to start a new session", file.path(), what));
}

}  // namespace cria
