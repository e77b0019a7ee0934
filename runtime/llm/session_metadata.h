#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/platform.h"
#include "cria/error.h"
#include "decode/sequence_shift.h"
#include "llm/engine.h"
#include "llm/message_history.h"
#include "llm/session_file.h"
#include "llm/session_file_layout.h"
#include "model/file_head.h"

namespace cria {

// The metadata of a session file, whose arrays and texts are in the mapped file.
struct SessionMetadata {
  SessionHead head;
  std::span<const uint64_t> block_checksums;
  std::span<const int32_t> tokens;
  std::span<const MessageBytes> messages;
  SequenceShift shift;
  std::string_view texts;
  std::string_view fields;  // All messages' fields, each ended by a zero byte; empty: none has any.
};

// Reads what the file begins with, and checks its checksums and sizes.
Result<FileHead> ReadSessionHead(const platform::File& file);

// Checks the model and all sizes. A right checksum proves nothing: a file may be made to do harm.
// The result points into `file_head`.
Result<SessionMetadata> ReadSessionMetadata(const platform::File& file, const FileHead& file_head,
                                            SessionContent content, const Engine& engine);

// Why the KV cache of a session file is of no use to the engine, as the end of a sentence; empty if
// it can be read.
std::string WhyReadAgain(const SessionHead& head, const Engine& engine);

// The version of a KvState whose keys have this shift.
uint32_t KvStateVersionOf(const SequenceShift& shift);

// What a session file has before its KvState, except for the checksums, which are zeros. `shift` is
// that of the KvState's keys.
Result<std::vector<std::byte>> SessionMetadataBytes(const SessionHead& head,
                                                    const SequenceShift& shift,
                                                    const ConversationState& conversation,
                                                    std::span<const int32_t> tokens);

// An error that says how to go on without the file.
std::unexpected<Error> FailInvalidSession(const platform::File& file, std::string_view what);

}  // namespace cria
