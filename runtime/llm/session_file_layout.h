#pragma once

// The byte layout of a session file, which schema/README.md describes in prose.

#include <array>
#include <cstdint>
#include <type_traits>

#include "model/checksum.h"

namespace cria {

inline constexpr std::array<char, 8> kSessionMagic = {'C', 'R', 'I', 'A', 'S', 'E', 'S', 'S'};
inline constexpr uint32_t kSessionFormatVersion = 1;

// The beginning of the metadata, which follow a FilePreamble. After it:
//   uint64 block_checksums[num_blocks]    XXH3-64 of each block of the KvState
//   int32 tokens[num_tokens]
//   MessageBytes messages[num_messages]
//   SequenceShift, only if kv_state_version is kShiftedKvStateVersion
//   texts without separators: the variables, then role and content of each message;
//   only if a message has more fields: for each message ChatMessage::fields and a zero byte.
// The KvState follows directly, and is the end of the file.
struct SessionHead {
  Digest model_digest = {};
  uint64_t attention_fingerprint = 0;
  // The local time when the conversation began, as seconds since 1970 in UTC would be counted.
  int64_t begin_time = 0;
  uint32_t kv_state_version = 0;
  uint32_t kv_type = 0;
  uint32_t content = 0;  // A SessionContent.
  uint32_t num_tokens = 0;
  uint32_t num_cached_tokens = 0;  // The first tokens, whose keys and values the KvState has.
  uint32_t num_blocks = 0;
  uint32_t num_messages = 0;
  uint32_t num_system_messages = 0;
  uint32_t has_forgotten = 0;  // 0 or 1.
  uint32_t variables_bytes = 0;
};
static_assert(sizeof(SessionHead) == 72 && std::is_trivially_copyable_v<SessionHead>);

struct MessageBytes {
  uint32_t role;
  uint32_t content;
};

}  // namespace cria
