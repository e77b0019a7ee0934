// Any bytes as the metadata and the keys and values of a session file, with a preamble and
// checksums that vouch for them: loading must end in a session that can go on, or an error. The
// first two bytes are the size of the metadata.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "decode/kv_state.h"
#include "fuzz/file_of_bytes.h"
#include "fuzz/session_model.h"
#include "llm/conversation.h"
#include "llm/generator.h"
#include "llm/session_file.h"
#include "llm/session_file_layout.h"
#include "model/file_layout.h"

namespace {

using namespace cria;

// Makes the file one of this model, and the checksums of its blocks right, as far as it has them.
void Vouch(std::span<std::byte> metadata, std::span<const std::byte> state_bytes,
           TinyEngine& engine) {
  SessionHead head;
  if (metadata.size() < sizeof head) return;
  std::memcpy(&head, metadata.data(), sizeof head);
  head.model_digest = engine.file().digest();
  head.attention_fingerprint = AttentionFingerprint(engine.file().config(), engine.decoder());
  std::memcpy(metadata.data(), &head, sizeof head);
  const KvState state(engine.decoder(), TinyEngine::kSequence,
                      std::min<size_t>(head.num_cached_tokens, engine.decoder().context_tokens()));
  const std::span<std::byte> checksums = metadata.subspan(sizeof head);
  for (size_t block = 0; block < state.num_blocks(); ++block) {
    const uint64_t end = state.BlockOffset(block + 1);
    if (end > state_bytes.size() || checksums.size() < (block + 1) * sizeof(uint64_t)) return;
    const uint64_t begin = state.BlockOffset(block);
    const uint64_t checksum = ChecksumOf(state_bytes.subspan(begin, end - begin));
    std::memcpy(&checksums[block * sizeof checksum], &checksum, sizeof checksum);
  }
}

void LoadAndGoOn(const std::string& path, TinyEngine& engine) {
  Sampler sampler = Unwrap(Sampler::Create({}, engine.decoder().vocab_size()));
  const GenerationOptions options = {.max_tokens = 3};
  Conversation conversation(engine.session(), engine.engine().tokenizer(),
                            engine.engine().chat_template(), "");
  if (const auto loaded = LoadConversation(path, conversation, engine)) {
    (void)conversation.Reply("b", options, sampler, [](std::string_view) {});
  }
  if (const auto loaded = LoadSession(path, SessionContent::kText, engine, engine.session())) {
    if (engine.session().tokens().empty()) return;
    (void)Generate(engine.session(), options, sampler, [](const GeneratedToken&) { return true; });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::unique_ptr<TinyEngine> engine = LoadSessionModel();
  engine->session().Clear();
  uint16_t metadata_bytes = 0;
  if (size < sizeof metadata_bytes) return 0;
  std::memcpy(&metadata_bytes, data, sizeof metadata_bytes);
  std::string bytes(sizeof(FilePreamble), '\0');
  bytes.append(reinterpret_cast<const char*>(data) + sizeof metadata_bytes,
               size - sizeof metadata_bytes);
  const auto body = std::as_writable_bytes(std::span(bytes)).subspan(sizeof(FilePreamble));
  const auto metadata = body.first(std::min<size_t>(metadata_bytes, body.size()));
  Vouch(metadata, body.subspan(metadata.size()), *engine);
  FilePreamble preamble = {.magic = kSessionMagic,
                           .format_version = kSessionFormatVersion,
                           .metadata_bytes = metadata.size(),
                           .file_bytes = bytes.size(),
                           .metadata_digest = Digest128(metadata)};
  preamble.preamble_checksum = PreambleChecksum(preamble);
  std::memcpy(bytes.data(), &preamble, sizeof preamble);
  const FileOfBytes file("session", reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  LoadAndGoOn(file.path(), *engine);
  return 0;
}
