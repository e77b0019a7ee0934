#include "llm/session_writer.h"

#include <ctime>
#include <utility>
#include <vector>

#include "decode/kv_state.h"
#include "llm/kv_state_file.h"
#include "llm/session_file_layout.h"
#include "llm/session_metadata.h"
#include "model/file_layout.h"

namespace cria {

Result<OutputFile> WriteSession(const std::string& path, const SessionImage& session,
                                Engine& engine, LinkPolicy links) {
  const Decoder& decoder = engine.decoder();
  const KvState state(engine.decoder(), session.sequence, session.num_cached);
  const SequenceShift shift =
      session.num_cached == 0
          ? SequenceShift()
          : decoder.sequences().pages().shift(session.sequence).Truncated(session.num_cached);
  const ConversationState& conversation = session.conversation;
  std::tm begin_time = conversation.begin_time;
  begin_time.tm_isdst = 0;
  const SessionHead head = {
      .model_digest = engine.file().digest(),
      .attention_fingerprint = AttentionFingerprint(engine.file().config(), decoder),
      .begin_time = timegm(&begin_time),
      .kv_state_version = KvStateVersionOf(shift),
      .kv_type = static_cast<uint32_t>(decoder.cache().layer(0).view.type),
      .content = static_cast<uint32_t>(session.content),
      .num_tokens = static_cast<uint32_t>(session.tokens.size()),
      .num_cached_tokens = static_cast<uint32_t>(session.num_cached),
      .num_blocks = static_cast<uint32_t>(state.num_blocks()),
      .num_messages = static_cast<uint32_t>(conversation.messages.size()),
      .num_system_messages = static_cast<uint32_t>(conversation.num_system_messages),
      .has_forgotten = conversation.has_forgotten ? 1u : 0u,
      .variables_bytes = static_cast<uint32_t>(conversation.variables.size())};
  CRIA_ASSIGN_OR_RETURN(std::vector<std::byte> metadata,
                        SessionMetadataBytes(head, shift, conversation, session.tokens));
  const uint64_t state_offset = sizeof(FilePreamble) + metadata.size();
  FilePreamble preamble = {.magic = kSessionMagic,
                           .format_version = kSessionFormatVersion,
                           .metadata_bytes = metadata.size(),
                           .file_bytes = state_offset + state.bytes()};
  CRIA_ASSIGN_OR_RETURN(OutputFile file,
                        OutputFile::Create(path, preamble.file_bytes, links, Readers::kNone));
  CRIA_RETURN_IF_ERROR(
      WriteKvState(file, state_offset, state, std::span(metadata).subspan(sizeof head)));
  preamble.metadata_digest = Digest128(metadata);
  preamble.preamble_checksum = PreambleChecksum(preamble);
  CRIA_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(&preamble, 1))));
  CRIA_RETURN_IF_ERROR(file.WriteAt(sizeof preamble, metadata));
  return file;
}

}  // namespace cria
